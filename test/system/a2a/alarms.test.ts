/** Another agent sets an alarm at a real chronosd: it belongs to the user, says who set it, and wakes the agent. */
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
import { WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';
import { openA2aBench, textMessage } from './bench.ts';

const TRANSPORT = 'transport-token-of-the-tests';
const ADMIN = 'admin-token-of-chronosd-in-the-tests';
let made = 0;
const alarmMessage = (alarm: unknown, messageId = `alarm-${++made}`) => ({
  message: { messageId, role: 'ROLE_USER', parts: [{ data: { alarm } }] },
});

test('an alarm of another agent', async (t) => {
  const identity = agentIdentity('ada', generateKey());
  let chronosUrl = '';
  const alarmsOf: AlarmsOf = async ({ userId, clientId, clientName, ownsConversation = false }) => {
    if (userId !== 'ada') throw new ReveilleError('forbidden', 'not here');
    const client = { client_id: clientId, ...(clientName !== undefined && { name: clientName }), ownsConversation };
    const person: PersonProver = (request) => clientProof(client, request, { secret: ADMIN, now: Date.now() });
    return createChronosClient({ url: chronosUrl, token: TRANSPORT, identity, person });
  };
  const bench = await openA2aBench(t, { alarmsOf });
  bench.ada.replyTo = () => 'woken';
  const chronos = await startChronos({
    config: parseChronosConfig({
      ...{ CHRONOS_PORT: '0', CHRONOS_DATA_DIR: temporaryFolder(t), CHRONOS_DEV: '1' },
      ...{ CHRONOS_TOKEN: TRANSPORT, CHRONOS_ADMIN_TOKEN: ADMIN, CHRONOS_WAKE_TOKEN: WAKE_TOKEN },
      ...{ CHRONOS_AGENT_AUTH_SECRET: 'a secret for principals', CHRONOS_ENROLLMENT: 'tofu' },
      CHRONOS_ROUTER_WAKE_URL: `${bench.router.url}/internal/wake`,
    }),
    ...{ clock: systemClock, log: silentLogger },
  });
  atEnd(t, () => chronos.close());
  chronosUrl = chronos.url;
  const own = createChronosClient({ url: chronosUrl, token: TRANSPORT, identity });
  await own.listAlarms();

  await t.test(
    'it is stored for the user, with the caller as its author, and once for a repeated message',
    async () => {
      const payload = '{"n":12345678901234567890}';
      const body = JSON.stringify(
        alarmMessage({ kind: 'once', delay_seconds: 1, wake_message: 'Compare the offers.', payload: 0 }, 'offers'),
      ).replace('"payload":0', `"payload":${payload}`);
      const answers = await Promise.all([1, 2, 3].map(() => bench.rest('POST', '/message:send', body)));
      for (const { status, json } of answers) {
        assert.equal(status, 200);
        assert.equal(json.task.status.state, 'TASK_STATE_COMPLETED');
        assert.equal(json.task.id, answers[0]!.json.task.id);
      }
      const { id } = answers[0]!.json.task.artifacts[0].parts[0].data.alarm;
      const { alarms } = await own.listAlarms();
      assert.equal(alarms.length, 1);
      assert.equal(alarms[0]!.id, id);
      assert.deepEqual(alarms[0]!.set_by, {
        ...{ kind: 'client', client_id: bench.tokens.ada.slice(4, 16), name: 'the agent' },
      });
      const turn = await eventually('the alarm wakes the agent', () => bench.ada.turns[0]);
      assert.equal(turn.body.message, 'Compare the offers.');
      assert.match(turn.conversation_id, /^a2a-/);
      const { text } = bench.ada.seen.find(({ path }) => path === '/chat')!;
      assert.match(text, /"payload":\{"n":12345678901234567890\}/);
      assert.match(text, /"set_by":\{"kind":"client"/);
    },
  );

  await t.test('wrong fields, and fields that are not for other agents, are refused by name', async () => {
    const base = { kind: 'once', delay_seconds: 60, wake_message: 'x' };
    const refused = {
      run: { argv: ['/bin/sh', '-c', 'id'] },
      check: { command: { argv: ['id'] } },
      conversation_id: 'the-users-own',
      idempotency_key: 'k',
      tools: ['shell'],
      deliver: ['phone'],
      model: 'x',
      after: { alarm: '018f3b1c-0000-7000-8000-000000000001', on: 'any' },
      event: { source: 'webhook' },
      set_by: { kind: 'person', name: 'Ada' },
      urgent: true,
      wake_computer: true,
    };
    const { alarms: before } = await own.listAlarms();
    for (const [name, value] of Object.entries(refused)) {
      const { status, json } = await bench.rest('POST', '/message:send', alarmMessage({ ...base, [name]: value }));
      assert.equal(status, 400, name);
      assert.match(json.error.message, new RegExp(name));
    }
    const wrong = await bench.rest('POST', '/message:send', alarmMessage({ ...base, delay_seconds: -5 }));
    assert.match(wrong.json.error.message, /delay_seconds must be/);
    assert.equal((await own.listAlarms()).alarms.length, before.length);
    t.diagnostic(`${Object.keys(refused).length} fields: 0 accepted`);
  });

  await t.test('another user of the router sets no alarms here', async () => {
    const { status } = await bench.rest(
      'POST',
      '/message:send',
      alarmMessage({ kind: 'once', delay_seconds: 60, wake_message: 'x' }),
      bench.tokens.bob,
    );
    assert.equal(status, 403);
  });

  await t.test('data beside an alarm is a question, not an alarm', async () => {
    const count = (await own.listAlarms()).alarms.length;
    const { message } = alarmMessage({ kind: 'once', delay_seconds: 60, wake_message: 'x' });
    const both = { message: { ...message, parts: [...message.parts, { data: { more: 1 } }] } };
    await bench.rest('POST', '/message:send', both);
    assert.equal((await own.listAlarms()).alarms.length, count);
    await bench.rest('POST', '/message:send', textMessage('{"alarm":{"kind":"once"}}'));
    assert.equal((await own.listAlarms()).alarms.length, count);
  });
});
