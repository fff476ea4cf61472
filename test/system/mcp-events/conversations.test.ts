/** A client reads the conversations of its own alarms; those of others need a scope that the user selects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { openEventsBench, startReceiver } from './mcp-events-bench.ts';

const SCOPES = 'alarms:read alarms:write';

test('lists, answers to changes, polls and webhooks have conversations of others only with the scope', async (t) => {
  const receivers = [await startReceiver(t), await startReceiver(t)];
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receivers.map(({ host }) => host).join(',') });
  const bearers = [
    await bench.token({ client_id: 'without', scope: SCOPES }),
    await bench.token({ client_id: 'with', scope: `${SCOPES} conversations:read` }),
  ];
  const id = await bench.set('x', {
    kind: 'cron',
    delay_seconds: undefined,
    cron_expr: '@daily',
    conversation_id: 'secret',
  });
  const tool = async (bearer: string, name: string, args: object) => {
    const { result } = await bench.call('tools/call', { name, arguments: args }, { bearer });
    return JSON.stringify(result);
  };
  const cursors: string[] = [];
  for (const [at, bearer] of bearers.entries()) {
    const { cursor } = await bench.subscribe(receivers[at]!, {}, { bearer });
    cursors.push(cursor);
    const seen = [
      await tool(bearer, 'alarm_list', { full: true }),
      await tool(bearer, 'alarm_set', { alarm_id: id, jitter_seconds: at + 1 }),
      await tool(bearer, 'alarm_set', { alarm_id: id, action: 'pause' }),
      await tool(bearer, 'alarm_set', { alarm_id: id, action: 'resume' }),
    ];
    for (const text of seen) {
      assert.match(text, new RegExp(id));
      assert.equal(text.includes('secret'), at === 1, text);
    }
  }
  assert.equal((await bench.wake('f1', { alarm_id: id, conversation_id: 'secret' })).status, 200);
  await eventually('both have it', () => receivers.every((receiver) => receiver.ids().length === 1));
  for (const [at, { delivered }] of receivers.entries()) {
    assert.equal(delivered[0]!.body.data!.message, 'message of f1');
    assert.equal(delivered[0]!.body.data!.conversation_id, at === 1 ? 'secret' : undefined);
  }
  for (const [at, bearer] of bearers.entries()) {
    const { result } = await bench.call('events/poll', { name: 'alarm.due', cursor: cursors[at] }, { bearer });
    assert.equal(result.events.length, 1);
    assert.equal(JSON.stringify(result).includes('secret'), at === 1);
  }
});

test('a client sees the conversation of an alarm that it made, and its tools have no argument of others', async (t) => {
  const bench = await openEventsBench(t);
  const bearer = await bench.token({ client_id: 'chat', scope: SCOPES });
  const { result } = await bench.call('tools/list', {}, { bearer });
  const tools = result.tools as { name: string; inputSchema: { properties: object } }[];
  const names = Object.keys(tools.find(({ name }) => name === 'alarm_set')!.inputSchema.properties);
  for (const name of ['urgent', 'wake_computer', 'deliver', 'model', 'tools', 'run']) assert.ok(!names.includes(name));
  const series = { kind: 'cron', cron_expr: '@daily', wake_message: 'x' };
  const set = async (args: object) =>
    (await bench.call('tools/call', { name: 'alarm_set', arguments: args }, { bearer })).result as unknown as {
      isError?: boolean;
      structuredContent: { id: string; code?: string };
    };
  for (const more of [{ urgent: true }, { conversation_id: 'secret' }]) {
    const { isError, structuredContent } = await set({ ...series, ...more });
    assert.deepEqual([isError, structuredContent.code], [true, 'forbidden']);
  }
  const { structuredContent } = await set(series);
  // The person moves it into a conversation of theirs, and so allows it there.
  await bench.alarms.patchAlarm(structuredContent.id, { conversation_id: 'shared' });
  assert.equal((await set({ ...series, conversation_id: 'shared' })).isError, undefined);
  const listed = await bench.call('tools/call', { name: 'alarm_list', arguments: { full: true } }, { bearer });
  assert.match(JSON.stringify(listed.result), /"conversation_id":"shared"/);
});
