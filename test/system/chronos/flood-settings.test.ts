/** That each setting of a bound reaches its bound, and each refusal its metric; how they bound is tested in http-floods. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type ChronosClient, createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { didOf } from '../../../src/wire/did.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** More than any bound below, and less than the other bounds as they are. */
const TRIES = 60;
const LONG = 'w'.repeat(60_000);

type Bench = { url: string; client: ChronosClient; another(): ChronosClient; page(): Promise<string> };

async function startedWith(t: TestContext, settings: Record<string, string>): Promise<Bench> {
  const config = parseChronosConfig({
    ...{ CHRONOS_DATA_DIR: temporaryFolder(t), CHRONOS_PORT: '0', CHRONOS_DEV: '1' },
    // Nobody listens there: what is triggered stays to be delivered.
    ...{ CHRONOS_TOKEN: 'a-token-of-the-tests', CHRONOS_ROUTER_WAKE_URL: 'http://127.0.0.1:1/wake', ...settings },
  });
  const chronos = await startChronos({ config, clock: systemClock, log: silentLogger });
  t.after(() => chronos.close());
  let made = 0;
  const another = () =>
    createChronosClient({
      ...{ url: chronos.url, token: 'a-token-of-the-tests', clock: systemClock },
      ...{ identity: agentIdentity(`agent-${++made}`, generateKey()), principal: holdPrincipal() },
    });
  return {
    url: chronos.url,
    client: another(),
    another,
    page: async () => (await fetch(`${chronos.url}/metrics`)).text(),
  };
}

const set = ({ client }: Bench, wake_message = 'words') =>
  client.createAlarm({ kind: 'once', wake_message, delay_seconds: 3600 });

/** Each asks for one thing more. */
const ask = {
  create: (bench: Bench) => set(bench),
  fill: (bench: Bench) => set(bench, LONG),
  prove: ({ client }: Bench) => client.authenticate(),
  join: ({ another }: Bench) => another().authenticate(),
  async trigger(bench: Bench) {
    const { alarms } = await bench.client.listAlarms();
    await bench.client.triggerAlarm((alarms[0] ?? (await set(bench))).id);
  },
};

const cases: [setting: string, value: number, what: keyof typeof ask, bound: string, said: RegExp][] = [
  ['CHALLENGES_PER_MINUTE', 6, 'prove', 'challenges', /^you ask .*\(CHRONOS_CHALLENGES_PER_MINUTE\)/],
  ['CHALLENGES_PER_MINUTE_IN_ALL', 12, 'prove', 'challenges', /^all clients .*_CHALLENGES_PER_MINUTE_IN_ALL\)/],
  ['CREATES_PER_MINUTE', 3, 'create', 'creates', /^you ask .*\(CHRONOS_CREATES_PER_MINUTE\)/],
  ['CREATES_PER_MINUTE_IN_ALL', 8, 'create', 'creates', /^all clients .*_CREATES_PER_MINUTE_IN_ALL\)/],
  ['TRIGGERS_PER_MINUTE', 3, 'trigger', 'triggers', /^you ask .*\(CHRONOS_TRIGGERS_PER_MINUTE\)/],
  ['TRIGGERS_PER_MINUTE_IN_ALL', 8, 'trigger', 'triggers', /^all clients .*_TRIGGERS_PER_MINUTE_IN_ALL\)/],
  ['NEW_OWNERS_PER_HOUR', 3, 'join', 'new_owners', /^3 new agents .*\(CHRONOS_NEW_OWNERS_PER_HOUR\)/],
  ['MAX_OWNERS', 3, 'join', 'owners', /^3 agents are known.*\(CHRONOS_MAX_OWNERS\)/],
  ['MAX_ACTIVE_ALARMS', 3, 'create', 'active_alarms', /^you have 3 waiting alarms/],
  ['MAX_STORED_ALARMS', 3, 'create', 'stored_alarms', /^3 of your alarms .*\(CHRONOS_MAX_STORED_ALARMS\)/],
  ['MAX_STORED_MIB', 1, 'fill', 'stored_bytes', /may at present take up 1\.0 MiB/],
  ['MAX_STORED_MIB_IN_ALL', 1, 'fill', 'stored_bytes', /may at present take up 0\.0 MiB/],
  ['MAX_WAITING_TRIGGERS', 3, 'trigger', 'waiting_triggers', /^3 triggers .*\(CHRONOS_MAX_WAITING_TRIGGERS\)/],
];

for (const [setting, value, what, bound, said] of cases)
  test(`CHRONOS_${setting} bounds what it says, and what is refused is counted`, async (t) => {
    const bench = await startedWith(t, { [`CHRONOS_${setting}`]: String(value) });
    let refusal: unknown;
    for (let n = 0; n < TRIES && refusal === undefined; n++)
      await ask[what](bench).catch((error: unknown) => {
        refusal = error;
      });
    assert.ok(refusal instanceof ReveilleError, `nothing was refused in ${TRIES} tries`);
    assert.equal(refusal.code, 'rate_limited', refusal.message);
    assert.match(refusal.message, said);
    assert.match(await bench.page(), new RegExp(`^chronos_refused_total\\{bound="${bound}"\\} 1$`, 'm'));
  });

test('wrong tokens are counted', async (t) => {
  const bench = await startedWith(t, {});
  const counted = async () => /^chronos_wrong_tokens_total (\d+)$/m.exec(await bench.page())?.[1];
  assert.equal(await counted(), '0');
  await set(bench);
  assert.equal(await counted(), '0');
  const wrong = createChronosClient({ url: bench.url, token: 'not-the-token-of-these-tests', clock: systemClock });
  await assert.rejects(wrong.challenge(didOf('agent', '0'.repeat(64))), { code: 'unauthorized' });
  assert.equal(await counted(), '1');
});
