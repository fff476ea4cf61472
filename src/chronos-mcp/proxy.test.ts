import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AlarmQuery, ChronosClient } from '../chronos/client.ts';
import { systemClock } from '../kit/clock/clock.ts';
import { silentLogger } from '../kit/log/log.ts';
import type { Settings } from '../wire/settings.ts';
import { createForwarder, forwarderOf } from './proxy.ts';
import { readChronosTools, TOOLS_FILE } from './tools.ts';

const CHRONOS = { MATRIX_CHRONOS_URL: 'http://127.0.0.1:9', MATRIX_CHRONOS_TOKEN: 'a-token' };

/** The refusal of a call for this user, before any request to chronosd. */
async function refusal(settings: Settings, user: unknown) {
  const forward = createForwarder({
    settings,
    localDefaults: () => ({}),
    zone: async () => undefined,
    clock: systemClock,
    log: silentLogger,
  });
  const tool = readChronosTools(TOOLS_FILE).get('alarm_list')!;
  const { isError, structuredContent } = await forward(tool, '{}', new AbortController().signal, { user });
  assert.equal(isError, true);
  return structuredContent as { code: string; message: string };
}

test('a server of one user makes no call for another', async () => {
  const own = { ...CHRONOS, MATRIX_USER_ID: 'alice', MATRIX_EXECUTOR_KEYFILE: '/nowhere/agent.key' };
  for (const user of ['bob', 'Alice', '', 7, null, ['alice']]) {
    const { code, message } = await refusal(own, user);
    assert.equal(code, 'forbidden', JSON.stringify(user));
    assert.match(message, /sets alarms of alice only/);
  }
  for (const user of [undefined, 'alice']) assert.equal((await refusal(own, user)).code, 'not_found');
});

test('a server of several users requires a user, and refuses a name that leads elsewhere', async () => {
  const several = { ...CHRONOS, MATRIX_AGENT_KEYS: '/nowhere', MATRIX_USER_ID: 'alice' };
  for (const user of [undefined, '', 7, '../alice', 'a/b', 'a\u0000b', 'x'.repeat(65)]) {
    const { code, message } = await refusal(several, user);
    assert.equal(code, 'invalid_request', JSON.stringify(user));
    assert.match(message, /must name its user in _meta \(reveille\/user\)/);
  }
  assert.equal((await refusal(several, 'alice')).code, 'not_found');
  const { message } = await refusal({ MATRIX_AGENT_KEYS: '/nowhere' }, 'alice');
  assert.match(message, /no chronosd is configured: set MATRIX_CHRONOS_URL and MATRIX_CHRONOS_TOKEN/);
});

test('a page that the alarms with a time fill names the next one, also when the newest event has a deadline', async () => {
  const alarm = (id: string, next_fire_at?: string) => ({
    id,
    label: id,
    status: 'active',
    kind: 'event',
    next_fire_at,
  });
  const timed = [alarm('a', '2030-01-01T00:00:00Z'), alarm('b', '2030-01-02T00:00:00Z')];
  const events = [timed[1]!, alarm('c')];
  const listAlarms = async ({ sort, limit = 0, cursor = '0' }: AlarmQuery) => {
    const all = sort === 'next' ? timed : events;
    const end = Number(cursor) + limit;
    const alarms = all.slice(Number(cursor), end);
    return { alarms, count: alarms.length, ...(end < all.length && { next_cursor: String(end) }) };
  };
  const forward = forwarderOf({
    connect: () => ({ listAlarms }) as unknown as ChronosClient,
    agentOf: () => undefined,
    zone: async () => undefined,
    log: silentLogger,
  });
  const tool = readChronosTools(TOOLS_FILE).get('alarm_list')!;
  const ids: string[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const { structuredContent } = await forward(
      tool,
      JSON.stringify({ limit: 2, cursor }),
      new AbortController().signal,
    );
    const page = structuredContent as { alarms: { id: string }[]; next_cursor?: string };
    ids.push(...page.alarms.map(({ id }) => id));
    cursor = page.next_cursor;
  }
  assert.deepEqual(ids, ['a', 'b', 'c']);
});
