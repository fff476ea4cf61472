/** The end of an access ends what was set with it: alarms, addresses, subscriptions, push targets and tasks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createChronosClient, type PersonProver } from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import type { AlarmsOf } from '../../../src/cli/access/public-services.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { clientProof } from '../../../src/kit/identity/person-rights.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { langgraphClient } from '../../../src/router/public/endings.ts';
import { ADMIN_TOKEN, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { type Ended, endedSentences } from '../../../src/wire/person.ts';
import { eventually } from '../../support/eventually.ts';
import { startHttpAgent } from '../../support/stand-ins/http-agent.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';
import { openA2aBench, textMessage } from '../a2a/bench.ts';
import { openEventsBench, startReceiver } from '../mcp-events/mcp-events-bench.ts';

const TRANSPORT = 'transport-token-of-the-tests';
const ADMIN = 'admin-token-of-chronosd-in-the-tests';
const NOTHING: Ended = { alarms: 0, addresses: 0, subscriptions: 0, push_targets: 0, tasks: 0, left: [] };

test('revoking a personal token ends what other agents and crons have set with it, and nothing of another token', async (t) => {
  const receiver = await startHttpAgent((_, response) => void response.writeHead(204).end());
  atEnd(t, () => receiver.close());
  const chronos = await startChronos({
    config: parseChronosConfig({
      ...{ CHRONOS_PORT: '0', CHRONOS_DATA_DIR: temporaryFolder(t), CHRONOS_DEV: '1' },
      ...{ CHRONOS_TOKEN: TRANSPORT, CHRONOS_ADMIN_TOKEN: ADMIN, CHRONOS_WAKE_TOKEN: WAKE_TOKEN },
      ...{ CHRONOS_AGENT_AUTH_SECRET: 'a secret for principals', CHRONOS_ENROLLMENT: 'tofu' },
      CHRONOS_ROUTER_WAKE_URL: 'http://127.0.0.1:1/internal/wake',
    }),
    ...{ clock: systemClock, log: silentLogger },
  });
  atEnd(t, () => chronos.close());
  const identity = agentIdentity('ada', generateKey());
  const alarmsOf: AlarmsOf = async ({ clientId, ownsConversation = false }) => {
    const person: PersonProver = (request) =>
      clientProof({ client_id: clientId, ownsConversation }, request, { secret: ADMIN, now: Date.now() });
    return createChronosClient({ url: chronos.url, token: TRANSPORT, identity, person });
  };
  const own = createChronosClient({ url: chronos.url, token: TRANSPORT, identity });
  const bench = await openA2aBench(t, { alarmsOf, settings: { ROUTER_A2A_ALLOW: new URL(receiver.url).host } });
  const tokens = [bench.tokens.ada, await bench.anotherToken('ada')];
  const series = { kind: 'cron', cron_expr: '@daily', wake_message: 'x' } as const;

  /** Everything that can be set with a token, and what the revocation of the token says of it. */
  const kinds: Record<string, { set: (token: string, id: string) => Promise<unknown>; ended: Partial<Ended> }> = {
    'an alarm of another agent': {
      set: (token) =>
        bench.rest('POST', '/message:send', { message: alarmMessage({ ...series, label: token }) }, token),
      ended: { alarms: 1 },
    },
    'an address': {
      set: async (token, id) =>
        (await alarmsOf({ userId: 'ada', clientId: id })).createAlarm({
          ...{ kind: 'event', event: { source: 'webhook' }, wake_message: 'x', label: token },
        }),
      ended: { alarms: 1, addresses: 1 },
    },
    'a cron of LangGraph': {
      set: async (token, id) =>
        (await alarmsOf({ userId: 'ada', clientId: langgraphClient(id) })).createAlarm({ ...series, label: token }),
      ended: { alarms: 1 },
    },
    'a task with a push target': {
      set: (token) =>
        bench.rest(
          ...(['POST', '/message:send'] as const),
          {
            ...textMessage('go'),
            configuration: { returnImmediately: true, taskPushNotificationConfig: { url: receiver.url } },
          },
          token,
        ),
      ended: { push_targets: 1, tasks: 1 },
    },
  };
  const expected: Ended = { ...NOTHING };
  for (const [kind, { set, ended }] of Object.entries(kinds)) {
    for (const token of tokens) {
      const answer = (await set(token, token.slice(4, 16))) as { status?: number; text?: string };
      if (typeof answer.status === 'number') assert.equal(answer.status, 200, `${kind}: ${answer.text}`);
    }
    for (const [name, count] of Object.entries(ended) as ['alarms', number][]) expected[name] += count;
  }
  await eventually('both tasks run', () => bench.ada.turns.length === 2);
  await eventually('their callers know', () => receiver.seen.length >= 2);

  const [revoked, other] = tokens as [string, string];
  const answer = await bench.revoke('ada', revoked.slice(4, 16));
  const { ended } = answer.json.data as unknown as { ended: Ended };
  assert.deepEqual(ended, expected, answer.text);
  assert.deepEqual(endedSentences(ended), ['Paused 3 alarms.', 'Ended 1 address of them, 1 push target, 1 task.']);
  for (const { label, status } of (await own.listAlarms()).alarms)
    assert.equal(status, label === revoked ? 'paused' : 'active', label);
  const tasks = await bench.rest('GET', '/tasks', undefined, other);
  assert.deepEqual(tasks.json.tasks.map((task: { status: { state: string } }) => task.status.state).toSorted(), [
    'TASK_STATE_COMPLETED',
    'TASK_STATE_SUBMITTED',
  ]);
  // The end of the revoked task is not sent to the receiver, that of the other one is.
  for (const turn of bench.ada.turns) bench.ada.end(turn, 'done');
  const done = () => receiver.seen.filter(({ text }) => text.includes('TASK_STATE_COMPLETED')).length;
  await eventually('the other caller knows', () => done() === 1);
  assert.doesNotMatch(receiver.seen.map(({ text }) => text).join('\n'), /CANCELED/);

  const again = await bench.router.send('POST', '/admin/users/ada/clients/end', ADMIN_TOKEN, {
    client_id: revoked.slice(4, 16),
  });
  assert.equal((again.json.data as unknown as Ended).tasks, 0);
});

let made = 0;
const alarmMessage = (alarm: unknown) => ({
  ...{ messageId: `alarm-${++made}`, role: 'ROLE_USER', parts: [{ data: { alarm } }] },
});

test('the end of a client ends its subscriptions and its alarms, and says how many', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  const bearers = await Promise.all(['client-1', 'client-2'].map((client_id) => bench.token({ client_id })));
  for (const bearer of bearers) {
    await bench.subscribe(receiver, {}, { bearer });
    await bench.call(
      'tools/call',
      { name: 'alarm_set', arguments: { kind: 'cron', cron_expr: '@daily', wake_message: 'x' } },
      { bearer },
    );
  }
  assert.equal((await bench.alarms.listAlarms({ status: 'active' })).alarms.length, 2);
  const end = () => bench.internal.send('POST', '/admin/users/ada/clients/end', ADMIN_TOKEN, { client_id: 'client-1' });
  const ended = (await end()).json.data as unknown as Ended;
  assert.deepEqual(ended, { ...NOTHING, alarms: 1, subscriptions: 1 });
  const { alarms } = await bench.alarms.listAlarms({ status: 'paused' });
  assert.deepEqual(
    alarms.map(({ made_by }) => made_by),
    [{ client_id: 'client-1' }],
  );
  await eventually('its callback is notified', () => receiver.controls().some(({ type }) => type === 'terminated'));
  assert.equal((await bench.wake('f1')).status, 200, 'the other subscription is the delivery');
  await eventually('one has it', () => receiver.ids().length === 1);
  assert.deepEqual((await end()).json.data, NOTHING, 'again');
});
