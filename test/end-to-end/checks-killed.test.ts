/** `kill -9` of chronosd and of the router while checks run: each change wakes once, and a skip never woke anybody. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, realpathSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createChronosClient, holdPrincipal } from '../../src/chronos/client.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { freePort } from '../../src/router/providers/process-provider.ts';
import { ADMIN_TOKEN, clientOf, eventsOf, fixtureMachine, WAKE_TOKEN } from '../../src/router/testing/bench.ts';
import type { FireView } from '../../src/wire/alarm.ts';
import { PROGRAM } from '../support/cluster/processes.ts';
import { eventually } from '../support/eventually.ts';
import { diceOf, rounds } from '../support/random/random.ts';
import { atEnd, temporaryFolder } from '../support/temporary.ts';

const ALARMS = 8;
const ROUNDS = rounds(1, 8);
const TOKEN = 'transport-token-of-this-test';

async function processes(t: TestContext) {
  const home = realpathSync(temporaryFolder(t));
  const work = join(home, 'work');
  mkdirSync(work);
  const [routerPort, chronosPort] = [(await freePort(new Set()))!, (await freePort(new Set()))!];
  const env = {
    ...{ PATH: process.env.PATH, HOME: home, REVEILLE_HOME: join(home, '.reveille'), REVEILLE_LOG: 'error' },
    ...{ ROUTER_PORT: `${routerPort}`, ROUTER_PUBLIC_PORT: '0', ROUTER_ORPHAN_SECONDS: '30' },
    ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN },
    ...{ CHRONOS_PORT: `${chronosPort}`, CHRONOS_TOKEN: TOKEN, CHRONOS_WAKE_TOKEN: WAKE_TOKEN },
    ...{ CHRONOS_AGENT_AUTH_SECRET: 'a secret for principals', CHRONOS_ADMIN_TOKEN: 'the-operator-of-this-test' },
    ...{ CHRONOS_MIN_INTERVAL_SECONDS: '1', CHRONOS_ROUTER_WAKE_URL: `http://127.0.0.1:${routerPort}/internal/wake` },
  };
  const running = new Map<string, ChildProcess>();
  const start = async (name: 'router' | 'chronosd') => {
    const child = spawn(process.execPath, [PROGRAM, name, '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    running.set(name, child);
    await once(createInterface({ input: child.stdout }), 'line');
  };
  const kill = async (name: 'router' | 'chronosd') => {
    const child = running.get(name)!;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    await start(name);
  };
  atEnd(t, async () => {
    // The router ends its machine.
    const ended = [...running.values()].map((child) => once(child, 'exit'));
    for (const child of running.values()) child.kill('SIGTERM');
    await Promise.all(ended);
  });
  await start('router');
  await start('chronosd');
  const router = clientOf(`http://127.0.0.1:${routerPort}`);
  const machine = fixtureMachine(work);
  await router.put('alice', { ...machine, spec: { ...machine.spec, cwd: work, sandbox: false, checks: 'commands' } });
  const principal = holdPrincipal();
  const identity = agentIdentity('alice', generateKey());
  const chronos = () =>
    createChronosClient({ url: `http://127.0.0.1:${chronosPort}`, token: TOKEN, identity, principal });
  return { home, work, kill, chronos };
}

type Chat = { alarm_id: string; fire_id: string; check?: { output?: string } };
const chatsIn = (work: string) =>
  eventsOf(work, 'chat').map(({ body }) => JSON.parse(Buffer.from(body!, 'base64').toString()) as Chat);

test(`${ROUNDS} kills of each daemon: each change wakes each alarm once`, { timeout: 240_000 }, async (t) => {
  const dice = diceOf(t);
  const { work, kill, chronos } = await processes(t);
  const flag = (n: number) => join(work, `flag-${n}`);
  const set = (round: number) => {
    for (let n = 0; n < ALARMS; n++) {
      // In one step: a file that is half written is a change too.
      writeFileSync(`${flag(n)}.new`, `${round}`);
      renameSync(`${flag(n)}.new`, flag(n));
    }
  };
  set(0);
  const ids: string[] = [];
  for (let n = 0; n < ALARMS; n++) {
    // Half of them by a command, whose last line is its value.
    const script = `sleep 0.$(($$ % 5)); now=$(cat flag-${n}); [ "$now" = "$REVEILLE_LAST_VALUE" ] && exit 1; echo "$now"`;
    const check =
      n % 2 === 0
        ? { path: { path: flag(n) } }
        : { command: { argv: ['sh', '-c', script] }, on_error: 'skip' as const };
    const { id } = await chronos().createAlarm({
      ...{ kind: 'rrule', rrule: 'RRULE:FREQ=SECONDLY;INTERVAL=1', wake_message: 'look', check },
      ...{ catch_up: 'latest', idempotency_key: `n-${n}` },
    });
    ids.push(id);
  }
  const firesWoken = () =>
    ids.map(
      (id) =>
        new Set(
          chatsIn(work)
            .filter((chat) => chat.alarm_id === id)
            .map((chat) => chat.fire_id),
        ).size,
    );
  const expected = (round: number) => ids.map(() => round + 1);
  await eventually('each is woken at first', () => firesWoken().every((count) => count >= 1));
  for (let round = 1; round <= ROUNDS; round++) {
    await delay(dice(700));
    set(round);
    await delay(dice(1200));
    await kill(dice(2) === 0 ? 'router' : 'chronosd');
    await delay(dice(400));
    await kill(dice(2) === 0 ? 'router' : 'chronosd');
    await eventually(`all are woken by change ${round}`, () => firesWoken().every((count) => count > round), 90_000);
    assert.deepEqual(firesWoken(), expected(round));
  }
  await delay(2500);
  assert.deepEqual(firesWoken(), expected(ROUNDS), 'no wake without a change');
  const woken = new Set(chatsIn(work).map((chat) => chat.fire_id));
  let skips = 0;
  for (const id of ids) {
    let cursor: string | undefined;
    const fires: FireView[] = [];
    do {
      const page = await chronos().listFires(id, { limit: 200, ...(cursor === undefined ? {} : { cursor }) });
      fires.push(...page.fires);
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    for (const fire of fires) {
      if (fire.outcome === 'delivered') assert.ok(woken.has(fire.fire_id), JSON.stringify(fire));
      if (fire.outcome !== 'skipped') continue;
      skips++;
      assert.ok(!woken.has(fire.fire_id), JSON.stringify(fire));
    }
    assert.equal((await chronos().getAlarm(id)).fire_count, ROUNDS + 1);
  }
  assert.ok(skips > ALARMS, `${skips} skips`);
});

test('a command ends with a killed router', async (t) => {
  const { kill, chronos } = await processes(t);
  const argv = ['sh', '-c', 'sleep 4321; exit 1'];
  await chronos().createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: 1, check: { command: { argv } } });
  const sleeps = () => execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes('\nsleep 4321');
  await eventually('the command runs', sleeps);
  await kill('router');
  // The wake is repeated, so the end of the first one shows only in between.
  await kill('chronosd');
  await eventually('it has ended', () => !sleeps(), 10_000);
});
