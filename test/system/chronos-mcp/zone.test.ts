/** The zone of a wall-clock time that a tool call names without one. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createForwarder } from '../../../src/chronos-mcp/proxy.ts';
import { readChronosTools, TOOLS_FILE } from '../../../src/chronos-mcp/tools.ts';
import { zoneOfUser } from '../../../src/cli/access/chronometric.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { type StandInChronosd, startStandInChronosd } from '../../support/stand-ins/chronosd.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { type AgentFiles, makeAgentFiles } from './agent-files.ts';

const WORDS = '"wake_message":"x","when":"tomorrow 9am"';

describe('a wall-clock time', () => {
  let chronosd: StandInChronosd;
  let agent: AgentFiles;
  before(async () => {
    chronosd = await startStandInChronosd();
    agent = makeAgentFiles();
  });
  after(async () => {
    agent.remove();
    await chronosd.close();
  });

  /** The body that chronosd received for these arguments, and how often the zone of the user was read. */
  async function sent(fields: string, userZone: string | undefined, several = false) {
    let reads = 0;
    const settings = {
      ...agent.envFor(chronosd),
      ...(several && { MATRIX_AGENT_KEYS: dirname(agent.keyFile) }),
    };
    const zone = async () => {
      reads++;
      return userZone;
    };
    const options = { settings, localDefaults: () => ({}), zone, clock: systemClock, log: silentLogger };
    const tool = readChronosTools(TOOLS_FILE).get('alarm_set')!;
    const about = several ? { user: 'executor' } : {};
    const result = await createForwarder(options)(tool, `{${fields}}`, new AbortController().signal, about);
    assert.equal(result.isError, undefined, JSON.stringify(result.structuredContent));
    const { timezone, ...rest } = JSON.parse(chronosd.seen.findLast(({ method }) => method === 'POST')!.body) as Record<
      string,
      unknown
    >;
    assert.equal(rest.wake_message, 'x');
    return { timezone, reads };
  }

  test('has the zone of the user when it names none', async () => {
    assert.deepEqual(await sent(WORDS, 'Asia/Tokyo'), { timezone: 'Asia/Tokyo', reads: 1 });
    const named = `${WORDS},"timezone":"Europe/Berlin"`;
    assert.deepEqual(await sent(named, 'Asia/Tokyo'), { timezone: 'Europe/Berlin', reads: 0 });
    const omitted = `${WORDS},"timezone":null`;
    assert.deepEqual(await sent(omitted, 'Asia/Tokyo'), { timezone: 'Asia/Tokyo', reads: 1 });
  });

  test('has no zone when the one of the user is not known: chronosd decides whether the words need one', async () => {
    assert.deepEqual(await sent(WORDS, undefined), { timezone: undefined, reads: 1 });
  });

  test('has no zone on a server of several users, whose zones differ', async () => {
    assert.deepEqual(await sent(WORDS, 'Asia/Tokyo', true), { timezone: undefined, reads: 0 });
  });

  test('is not the only time that gets one: so does every expression of wall-clock times without a zone', async () => {
    const alarm = (fields: string) => `"wake_message":"x",${fields}`;
    const withZone = ['"cron_expr":"0 9 * * *"', '"cron_expr":"@daily"', '"rrule":"RRULE:FREQ=DAILY"'];
    const without = [
      ...['"cron_expr":"@every 90s"', '"delay_seconds":60', '"fire_at":"2999-01-01T00:00:00Z"'],
      '"rrule":"DTSTART;TZID=Europe/Berlin:20260101T090000\\nRRULE:FREQ=DAILY"',
      '"rrule":"DTSTART:20260101T090000Z\\nRRULE:FREQ=DAILY"',
    ];
    for (const fields of withZone)
      assert.deepEqual(await sent(alarm(fields), 'Asia/Tokyo'), { timezone: 'Asia/Tokyo', reads: 1 }, fields);
    for (const fields of without)
      assert.deepEqual(await sent(alarm(fields), 'Asia/Tokyo'), { timezone: undefined, reads: 0 }, fields);
  });
});

test('the zone of the user is that of the profile, else that of the computer', async (t) => {
  const home = temporaryFolder(t);
  const zoneWith = (settings: Record<string, string>) =>
    zoneOfUser({ settings: { HOME: home, ...settings }, clock: systemClock });
  assert.equal(await zoneWith({ TZ: 'Asia/Kolkata' }), 'Asia/Kolkata');
  assert.equal(await zoneWith({ TZ: 'CET-1CEST,M3.5.0,M10.5.0/3' }), undefined);
  const file = join(home, '.config', 'reveille', 'profile.yaml');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, 'chronometric:\n  timezone: Australia/Lord_Howe\n');
  assert.equal(await zoneWith({ TZ: 'Asia/Kolkata' }), 'Australia/Lord_Howe');
  writeFileSync(file, 'chronometric:\n  timezone: Mars/Olympus\n');
  assert.equal(await zoneWith({ TZ: 'Asia/Kolkata' }), 'Asia/Kolkata');
});
