import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createApprovers } from '../../../src/agents/neo/delegate/approvers.ts';
import { createExecutorLink, type DelegateOptions } from '../../../src/agents/neo/delegate/delegate.ts';
import { CONVERSATION, TURN, testCall, textOf } from '../../../src/agents/neo/testing/tool-call.ts';
import type { GateNotice, ToolNotice } from '../../../src/agents/neo/tools/surface.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { TurnCancelled } from '../../../src/turns/agent.ts';
import type { ContextPiece } from '../../../src/wire/executor.ts';
import { eventually } from '../../support/eventually.ts';
import { type ScriptedGate, signedTo, startStandInExecutor } from '../../support/stand-ins/executor.ts';

const PAY: ScriptedGate = { nodeId: 'n1', question: 'Pay Bob 3?', tool: 'bank/transfer', args: '{"amount":3}' };
const PARK = 'POST /intents/intent-1/park';
const { signal } = new AbortController();

/** A call of a turn that an alarm began. */
const nightCall = (callId?: string) => testCall(callId, { ...TURN, origin: 'chronos' });

async function setUp(t: TestContext, options: Partial<DelegateOptions> = {}) {
  const executor = await startStandInExecutor();
  const notices: (GateNotice & { conversation: string })[] = [];
  const evidence: ContextPiece[] = [{ from: 'person', text: 'Bob gets 3' }];
  const approvers = createApprovers(systemClock);
  const newLink = () =>
    createExecutorLink({
      executor: { url: executor.url, token: executor.token, userId: 'alice' },
      approvers,
      conversations: {
        evidence: () => evidence,
        notifyGate: (conversation, gate) => void notices.push({ ...gate, conversation }),
      },
      clock: systemClock,
      log: silentLogger,
      approverMs: 20,
      ...options,
    });
  const link = newLink();
  t.after(async () => {
    await executor.stop();
    await link.close();
  });
  return { executor, approvers, link, newLink, notices, evidence };
}

const states = (notices: readonly ToolNotice[]) =>
  notices.flatMap((notice) => (notice.type === 'gate' ? [`${notice.gate.node_id} ${notice.gate.state}`] : []));

test("an alarm's turn without a listening client parks its task and ends on request, and nothing is denied", async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  const call = nightCall();
  const answer = await link.delegate('pay Bob', call);
  assert.equal(answer.isError, false);
  const answerText = textOf(answer);
  assert.match(
    answerText,
    /^Intent intent-1 is still pending \(awaiting_approval\)\. It is neither done nor cancelled/,
  );
  assert.match(answerText, /waits for an answer to: Pay Bob 3\?/);
  assert.match(answerText, /An alarm wakes you in this conversation/);
  assert.match(answerText, /Do not hand the task over again.*End this turn now/);
  const [intent] = executor.intents;
  assert.deepEqual([intent?.status, intent?.parkedIn, intent?.answers], ['awaiting_approval', CONVERSATION, []]);
  assert.deepEqual(states(call.notices), ['n1 asked']);
  await link.answer('intent-1', 'n1', signedTo(PAY));
  assert.equal(intent?.status, 'completed');
  assert.deepEqual(states(call.notices), ['n1 asked', 'n1 approved']);
});

test("a task carries its origin and the conversation before it; a person's task is theirs", async (t) => {
  const { executor, link, evidence } = await setUp(t);
  await link.delegate('look', testCall('call-1'));
  await link.delegate('look', nightCall('call-2'));
  evidence.length = 0;
  await link.delegate('look', nightCall('call-3'));
  assert.deepEqual(
    executor.intents.map(({ origin, context, conversationId }) => [origin, context, conversationId]),
    [
      ['person', [{ from: 'person', text: 'Bob gets 3' }], CONVERSATION],
      ['chronos', [{ from: 'person', text: 'Bob gets 3' }], CONVERSATION],
      ['chronos', [], CONVERSATION],
    ],
  );
});

test("with a listening client an alarm's turn waits for an answer, and parks when the client has left", async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  const leave = approvers.addStream(CONVERSATION);
  const call = nightCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(({ type }) => type === 'gate');
  assert.equal(executor.seen.includes(PARK), false);
  leave();
  // The next query finds no client; a change at the executor triggers it at once.
  executor.flood(1);
  assert.match(textOf(await answer), /It is parked/);
});

test('a task that ended before it was parked is reported with its outcome', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  executor.misbehave = (request) => {
    if (!request.url?.endsWith('/park')) return false;
    const [intent] = executor.intents;
    intent!.pending = [];
    executor.finish(intent!, 'completed');
    return false;
  };
  assert.match(textOf(await link.delegate('pay Bob', nightCall())), /intent-1 was completed\./);
  assert.equal(executor.intents[0]?.parkedIn, undefined);
});

test('an executor that cannot wake any agent is not described as able to, and the turn ends all the same', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  executor.waking = false;
  const words = textOf(await link.delegate('pay Bob', nightCall()));
  assert.match(words, /still pending \(awaiting_approval\).*Pay Bob 3\?.*Report to the user that it is pending/s);
  assert.doesNotMatch(words, /alarm|parked/);
  assert.equal(executor.intents[0]?.status, 'awaiting_approval');
});

test('a call that is repeated after a crash finds its task parked, says so at once, and makes no second one', async (t) => {
  const { executor, approvers, link, newLink } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  await link.delegate('pay Bob', nightCall());
  const again = newLink();
  approvers.addStream(CONVERSATION);
  const words = textOf(await again.delegate('pay Bob', nightCall()));
  assert.match(words, /It is parked.*waits? .*/s);
  assert.match(words, /waits for an answer to: Pay Bob 3\?/);
  assert.equal(executor.intents.length, 1);
  await again.answer('intent-1', 'n1', signedTo(PAY));
  const third = newLink();
  assert.match(textOf(await third.delegate('pay Bob', nightCall())), /intent-1 was completed/);
  assert.equal(executor.intents.length, 1);
});

test('a lost answer to parking is requested again', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  let lost = 0;
  executor.misbehave = (request, response) => {
    if (!request.url?.endsWith('/park') || lost > 0) return false;
    lost++;
    response.destroy();
    return true;
  };
  assert.match(textOf(await link.delegate('pay Bob', nightCall())), /It is parked/);
  assert.deepEqual([lost, executor.seen.filter((at) => at === PARK).length], [1, 2]);
});

test('after the wait limit any turn parks; where the executor cannot park, the task is still reported as pending', async (t) => {
  const { executor, approvers, link, newLink } = await setUp(t, { waitMs: 50 });
  approvers.addStream(CONVERSATION);
  executor.course = () => ({ gates: [PAY] });
  const answerText = textOf(await link.delegate('pay Bob', testCall('call-1')));
  assert.match(answerText, /still pending after 0 minutes .*Pay Bob 3\?.*An alarm wakes you/s);
  assert.equal(executor.intents[0]?.parkedIn, CONVERSATION);
  executor.misbehave = (request, response) => {
    if (!request.url?.endsWith('/park')) return false;
    response.writeHead(404).end('{"ok":false,"error":{"code":"not_found","message":"no route","retryable":false}}');
    return true;
  };
  const other = textOf(await newLink().delegate('pay Eve', testCall('call-2')));
  assert.match(other, /intent-2 is still pending.*Report to the user that it is pending/s);
  assert.doesNotMatch(other, /alarm/);
});

test('a task behind another one parks without a client, and names the one that it waits for', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ queuedBehind: 'intent-0' });
  const call = nightCall();
  const words = textOf(await link.delegate('pay Bob', call));
  assert.match(words, /\(planned\).*begins when intent intent-0 of the same user has ended.*It is parked/s);
  assert.ok(
    call.notices.some((notice) => notice.type === 'status' && /begins when intent-0 has ended/.test(notice.text)),
  );
});

test('a task behind one that waits for an approval names the waiting call, and the command that answers it', async (t) => {
  const { executor, link, newLink } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  await link.delegate('pay Bob', nightCall());
  executor.course = () => ({ queuedBehind: 'intent-1' });
  const call = nightCall('call-2');
  const words = textOf(await newLink().delegate('pay Eve', call));
  const said = call.notices.flatMap((notice) => (notice.type === 'status' ? [notice.text] : [])).join('\n');
  for (const text of [words, said]) {
    assert.ok(text.includes(`intent-1 waits for an approval of ${PAY.tool} ${PAY.args}`), text);
    assert.ok(text.includes('Approve: reveille intent approve intent-1. Deny: reveille intent deny intent-1'), text);
  }
});

test('a cancelled turn cancels its task, also while it is being parked; a parked turn does not', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  const parked = nightCall('call-1');
  await link.delegate('pay Bob', parked);
  parked.abort(new TurnCancelled());
  await link.close();
  assert.equal(executor.intents[0]?.status, 'awaiting_approval');
  const call = nightCall('call-2');
  executor.misbehave = (request) => {
    if (request.url?.endsWith('/park')) call.abort(new TurnCancelled());
    return false;
  };
  await assert.rejects(link.delegate('pay Bob', call), { name: 'TurnCancelled' });
  await link.close();
  assert.equal(executor.intents[1]?.status, 'cancelled');
});

test("in a person's turn silence neither cancels the task nor parks it", async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  assert.match(textOf(await link.delegate('pay Bob', testCall())), /No approver was there/);
  assert.equal(executor.intents[0]?.parkedIn, undefined);
});

test('a new client is shown the waiting questions, also those raised or answered while no turn followed', async (t) => {
  const { executor, link, newLink, notices } = await setUp(t);
  executor.course = (prose) => ({ gates: [{ ...PAY, question: `${prose}?` }] });
  await link.delegate('pay Bob', nightCall('call-1'));
  const [first] = await link.openGates(CONVERSATION, signal);
  assert.deepEqual([first?.conversation_id, first?.question, first?.state], [CONVERSATION, 'pay Bob?', 'asked']);
  assert.deepEqual(await link.openGates('another', signal), []);
  assert.equal(notices.length, 0, 'it was notified already');

  // Neo sleeps. The question is answered at the executor, and another one is raised.
  const [intent] = executor.intents;
  intent!.pending = [];
  const fee = { ...PAY, nodeId: 'n2', question: 'And the fee?' };
  executor.ask(intent!, fee);
  assert.deepEqual(await link.openGates(undefined, signal), []);
  assert.deepEqual(
    notices.map(({ conversation, node_id, state }) => [conversation, node_id, state]),
    [[CONVERSATION, 'n2', 'asked']],
  );
  const restarted = newLink();
  assert.deepEqual(await restarted.openGates(CONVERSATION, signal), []);
  assert.equal(notices.length, 2);
  await restarted.answer('intent-1', 'n2', signedTo(fee));
  assert.deepEqual([intent?.status, notices[2]?.state], ['completed', 'approved']);
  await assert.rejects(link.answer('intent-1', 'n2', signedTo(fee)), { code: 'conflict' });
  assert.deepEqual(await link.openGates(undefined, signal), []);
});

test('an executor that is away, or answers garbage, keeps no client from listening', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  await link.delegate('pay Bob', nightCall());
  executor.misbehave = (_, response) => {
    response.writeHead(200).end('{"ok":true,"data":{"intents":7}}');
    return true;
  };
  assert.equal((await link.openGates(CONVERSATION, signal)).length, 1);
  await executor.stop();
  assert.equal((await link.openGates(CONVERSATION, signal)).length, 1);
  await executor.start();
});

test('a gate that is too long to be shown is sent to no client; an approver who has seen it elsewhere can answer it', async (t) => {
  const { executor, newLink, notices, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  await link.delegate('pay Bob', nightCall());
  const [intent] = executor.intents;
  const long = { ...PAY, nodeId: 'n2', args: JSON.stringify({ to: 'x'.repeat(300_000) }) };
  intent!.pending = [long];
  const restarted = newLink();
  assert.deepEqual(await restarted.openGates(CONVERSATION, signal), []);
  assert.deepEqual(notices, []);
  await restarted.answer('intent-1', 'n2', signedTo(long));
});

test('a new client does not repeat a question that a turn already follows', async (t) => {
  const { executor, approvers, link, notices } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await eventually('the call is told something', () => call.notices.length > 0);
  assert.equal((await link.openGates(CONVERSATION, signal)).length, 1);
  await link.answer('intent-1', 'n1', signedTo(PAY, { approved: false }));
  await answer;
  assert.deepEqual([states(call.notices), notices], [['n1 asked', 'n1 denied'], []]);
});
