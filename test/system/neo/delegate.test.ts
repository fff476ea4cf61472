import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createApprovers } from '../../../src/agents/neo/delegate/approvers.ts';
import { createExecutorLink, type DelegateOptions } from '../../../src/agents/neo/delegate/delegate.ts';
import type { Conversations } from '../../../src/agents/neo/delegate/evidence.ts';
import { CONVERSATION, testCall, textOf } from '../../../src/agents/neo/testing/tool-call.ts';
import { ToolFailure, type ToolNotice } from '../../../src/agents/neo/tools/surface.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { TurnCancelled } from '../../../src/turns/agent.ts';
import { encodeJson } from '../../../src/wire/json.ts';
import { eventually } from '../../support/eventually.ts';
import { PERSON, type ScriptedGate, signedTo, startStandInExecutor } from '../../support/stand-ins/executor.ts';

const PAY: ScriptedGate = {
  nodeId: 'n1',
  question: 'Pay 12345678901234567890 wei to 0xABC?',
  tool: 'chain/transfer',
  // A parse would lose the digits and the order of the members.
  args: '{"to":"0xABC","amount":12345678901234567890,"1":1.0}',
};

/** Conversations of which nothing is known. */
const ALONE: Conversations = { evidence: () => [], notifyGate: () => {} };

async function setUp(t: TestContext, options: Partial<DelegateOptions> = {}) {
  const executor = await startStandInExecutor();
  const approvers = createApprovers(systemClock);
  const link = createExecutorLink({
    executor: { url: executor.url, token: executor.token, userId: 'alice' },
    approvers,
    conversations: ALONE,
    clock: systemClock,
    log: silentLogger,
    approverMs: 20,
    ...options,
  });
  t.after(async () => {
    await executor.stop();
    await link.close();
  });
  return { executor, approvers, link };
}

const asked = (notice: ToolNotice) => notice.type === 'gate' && notice.gate.state === 'asked';
const states = (notices: readonly ToolNotice[]) =>
  notices.flatMap((notice) => (notice.type === 'gate' ? [`${notice.gate.node_id} ${notice.gate.state}`] : []));

/** Waits until a condition holds; it is checked in each turn of the event loop. */
test('a task is submitted under the id of its call, and its result comes back digit for digit', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ result: '{"tx":"0xfe","wei":12345678901234567890}' });
  const answer = await link.delegate('pay Bob', testCall('call-7'));
  assert.equal(answer.isError, false);
  assert.match(textOf(answer), /Intent intent-1 was completed\.\nResult:\n\{"tx":"0xfe","wei":12345678901234567890\}$/);
  const [intent] = executor.intents;
  assert.deepEqual([intent?.prose, intent?.user], ['pay Bob', 'alice']);
});

test('the repeated call resumes its existing intent, and makes no second one', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ end: 'held' });
  const first = testCall('call-1');
  const cut = link.delegate('pay Bob', first);
  await eventually('the intent is executed', () => executor.intents[0]?.status === 'executing');
  first.abort(new Error('Neo stops'));
  await assert.rejects(cut, /Neo stops/);
  assert.equal(executor.seen.includes('POST /intents/intent-1/cancel'), false);
  const again = link.delegate('pay Bob', testCall('call-1'));
  executor.finish(executor.intents[0]!, 'completed');
  assert.match(textOf(await again), /intent-1 was completed/);
  assert.equal(executor.intents.length, 1);
});

test('a gate is shown to the listening client, with its call as the executor wrote it, and answered once', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  const notice = await call.until(asked);
  assert.ok(notice.type === 'gate');
  assert.equal(notice.gate.question, PAY.question);
  assert.ok(encodeJson(notice.gate.call).includes(`"args":${PAY.args}`));
  const attempts = await Promise.allSettled(
    [true, false, true].map((approved) => link.answer('intent-1', 'n1', signedTo(PAY, { approved }))),
  );
  assert.deepEqual(
    attempts.map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected'],
  );
  assert.match(textOf(await answer), /was completed/);
  assert.equal(executor.intents[0]?.answers.length, 1);
  const [taken] = executor.intents[0]!.answers;
  assert.equal(taken?.answer.approver, PERSON.approver, 'it is the person who answered, and not Neo');
  assert.deepEqual(states(call.notices), ['n1 asked', 'n1 approved']);
  await assert.rejects(link.answer('intent-1', 'n1', signedTo(PAY, { approved: false })), {
    code: 'conflict',
    message: /already been approved/,
  });
});

test('a person who denies a gate ends the task, and the model learns of the failure', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(undefined);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(asked);
  await link.answer('intent-1', 'n1', signedTo(PAY, { approved: false, answer: 'too much' }));
  const result = await answer;
  assert.equal(result.isError, true);
  assert.match(textOf(result), /was denied: the gate n1 was denied/);
  assert.equal(executor.intents[0]?.answers[0]?.answer.answer, 'too much');
});

test('without a listening client the intent is cancelled in no person’s name, and the model learns the reason', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY, { ...PAY, nodeId: 'n2' }] });
  approvers.addStream('another-conversation');
  const call = testCall();
  const answer = await link.delegate('pay Bob', call);
  assert.equal(answer.isError, true);
  assert.match(textOf(answer), /No approver was there/);
  const [intent] = executor.intents;
  assert.deepEqual([intent?.status, intent?.answers], ['cancelled', []], 'nobody has answered');
  assert.match(textOf(answer), /no client was listening on GET \/events/);
  assert.deepEqual(states(call.notices), ['n1 asked', 'n2 asked', 'n1 lapsed', 'n2 lapsed']);
});

test('a task whose question is too long to be shown is cancelled, with or without a listening client', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [{ ...PAY, args: JSON.stringify({ to: 'x'.repeat(300_000) }) }] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = await link.delegate('pay Bob', call);
  assert.match(textOf(answer), /was cancelled: its effect is too long to be shown/);
  assert.deepEqual([executor.intents[0]?.status, executor.intents[0]?.answers], ['cancelled', []]);
  assert.deepEqual(states(call.notices), ['n1 asked', 'n1 lapsed']);
  assert.ok(JSON.stringify(call.notices).length < 2000);
});

test('a client that begins to listen a moment later is asked', async (t) => {
  const { executor, approvers, link } = await setUp(t, { approverMs: 60_000 });
  executor.course = () => ({ gates: [PAY] });
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(asked);
  approvers.addStream(CONVERSATION);
  await link.answer('intent-1', 'n1', signedTo(PAY));
  assert.match(textOf(await answer), /was completed/);
});

test('without events the executor is polled, and nothing is missed', async (t) => {
  const { executor, approvers, link } = await setUp(t, { safetyMs: 100 });
  executor.telling = false;
  executor.misbehave = (request, response) => {
    if (!request.url?.startsWith('/events')) return false;
    response.writeHead(500).end('no events today');
    return true;
  };
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(asked);
  await link.answer('intent-1', 'n1', signedTo(PAY));
  assert.match(textOf(await answer), /was completed/);
});

test('an event stream that breaks is opened again', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ end: 'held' });
  const answer = link.delegate('pay Bob', testCall());
  await eventually('a stream of events is open', () => executor.streams() === 1);
  executor.dropStreams();
  await eventually('the stream of events has ended', () => executor.streams() === 0);
  await eventually('a stream of events is open', () => executor.streams() === 1);
  executor.finish(executor.intents[0]!, 'completed');
  assert.match(textOf(await answer), /was completed/);
});

test('the end of an intent reaches the waiting turn within 200 ms', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ end: 'held' });
  const answer = link.delegate('pay Bob', testCall());
  await eventually('a stream of events is open', () => executor.streams() === 1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const queries = executor.seen.length;
  await new Promise((resolve) => setTimeout(resolve, 700));
  assert.equal(executor.seen.length, queries, 'nothing is polled');
  executor.finish(executor.intents[0]!, 'completed');
  const began = Date.now();
  assert.match(textOf(await answer), /was completed/);
  assert.ok(Date.now() - began < 200, `${Date.now() - began} ms`);
});

test('a flood of events does not become a flood of queries', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ end: 'held' });
  const answer = link.delegate('pay Bob', testCall());
  await eventually('a stream of events is open', () => executor.streams() === 1);
  for (let n = 0; n < 50; n++) {
    executor.flood(200);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const queries = executor.seen.filter((at) => at === 'GET /messages/async/intent-1').length;
  assert.ok(queries < 50, `${queries} queries at 10,000 events`);
  executor.finish(executor.intents[0]!, 'completed');
  assert.match(textOf(await answer), /was completed/);
});

test('an executor that restarts meanwhile is queried again, and clients are notified during the outage', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(asked);
  await executor.stop();
  await assert.rejects(link.answer('intent-1', 'n1', signedTo(PAY)), {
    code: 'unavailable',
    message: /still open/,
  });
  await call.until(({ type }) => type === 'status');
  await executor.start();
  await link.answer('intent-1', 'n1', signedTo(PAY));
  assert.match(textOf(await answer), /was completed/);
  assert.deepEqual(states(call.notices), ['n1 asked', 'n1 approved']);
});

test('an answer whose confirmation is lost counts as given when the gate no longer waits', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY], end: 'held' });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(asked);
  executor.misbehave = (request, response) => {
    if (!request.url?.endsWith('/answer')) return false;
    executor.misbehave = undefined;
    const [intent] = executor.intents;
    intent!.pending = [];
    executor.finish(intent!, 'completed');
    response.destroy();
    return true;
  };
  await link.answer('intent-1', 'n1', signedTo(PAY));
  assert.match(textOf(await answer), /was completed/);
  assert.ok(states(call.notices).includes('n1 approved'));
});

test('after the wait limit the answer says so, names the intent, and leaves it unchanged', async (t) => {
  const { executor, approvers, link } = await setUp(t, { waitMs: 50 });
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const answer = await link.delegate('pay Bob', testCall());
  assert.equal(answer.isError, false);
  assert.match(textOf(answer), /Intent intent-1 is still pending .*awaiting_approval.*neither done nor cancelled/s);
  assert.match(textOf(answer), /waits for an answer to: Pay 12345678901234567890 wei/);
  assert.equal(executor.seen.includes('POST /intents/intent-1/cancel'), false);
  // The gate is still open, and a late answer reaches it.
  await link.answer('intent-1', 'n1', signedTo(PAY));
  assert.equal(executor.intents[0]?.status, 'completed');
});

test('a cancelled turn cancels its intent', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ end: 'held' });
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await eventually('the intent is executed', () => executor.intents[0]?.status === 'executing');
  call.abort(new TurnCancelled());
  await assert.rejects(answer, { name: 'TurnCancelled' });
  await link.close();
  assert.equal(executor.intents[0]?.status, 'cancelled');
});

test('the questions of a cancelled turn lapse', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(asked);
  call.abort(new TurnCancelled());
  await assert.rejects(answer);
  await link.close();
  assert.deepEqual(states(call.notices), ['n1 asked', 'n1 lapsed']);
  await assert.rejects(link.answer('intent-1', 'n1', signedTo(PAY)), { code: 'conflict' });
});

test('a turn that is cancelled during the submission of its task cancels the resulting intent', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ end: 'held' });
  const call = testCall();
  executor.misbehave = () => {
    executor.misbehave = undefined;
    call.abort(new TurnCancelled());
    return false;
  };
  await assert.rejects(link.delegate('pay Bob', call), { name: 'TurnCancelled' });
  await link.close();
  assert.deepEqual(
    executor.intents.map(({ status }) => status),
    ['cancelled'],
  );
});

test('a submission whose answer is lost is repeated and makes one intent', async (t) => {
  const { executor, link } = await setUp(t);
  let lost = 0;
  executor.misbehave = (request, response) => {
    if (request.url !== '/messages/async' || lost === 2) return false;
    lost++;
    response.destroy();
    return true;
  };
  assert.match(textOf(await link.delegate('pay Bob', testCall())), /was completed/);
  assert.equal(executor.seen.filter((at) => at === 'POST /messages/async').length, 3);
  assert.equal(executor.intents.length, 1);
});

test('a missing executor is a failure that may be retried and had no effect', {
  timeout: 60_000,
}, async (t) => {
  const { executor, link } = await setUp(t);
  await executor.stop();
  await assert.rejects(link.delegate('pay Bob', testCall()), (thrown) => {
    assert.ok(thrown instanceof ToolFailure);
    assert.deepEqual([thrown.mayHaveRun, thrown.repeatable], [false, true]);
    return true;
  });
});

test('a token that the executor refuses is a failure that names the variable', async (t) => {
  const { executor } = await setUp(t);
  const link = createExecutorLink({
    executor: { url: executor.url, token: 'another-token-altogether', userId: 'alice' },
    approvers: createApprovers(systemClock),
    conversations: ALONE,
    clock: systemClock,
    log: silentLogger,
  });
  await assert.rejects(link.delegate('pay Bob', testCall()), (thrown) => {
    assert.ok(thrown instanceof ToolFailure);
    assert.deepEqual([thrown.mayHaveRun, thrown.repeatable], [false, false]);
    assert.match(thrown.message, /NEO_EXECUTOR_TOKEN/);
    assert.doesNotMatch(thrown.message, /another-token/);
    return true;
  });
});

test('a question of the executor returns to the model, and nothing is reported as done', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ clarify: 'Which Bob?' });
  const answer = await link.delegate('pay Bob', testCall());
  assert.equal(answer.isError, true);
  assert.match(textOf(answer), /Nothing was done.*Which Bob\?/s);
});

test('an unknown outcome is reported as unknown, with the advice not to repeat it', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ end: 'unknown', error: { code: 'unavailable', message: 'the chain did not answer' } });
  const answer = await link.delegate('pay Bob', testCall());
  assert.equal(answer.isError, true);
  assert.match(textOf(answer), /It is not known whether intent intent-1 was carried out: the chain did not answer/);
});

test('an intent that the executor has forgotten is reported neither as done nor as failed', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ end: 'held' });
  const answer = link.delegate('pay Bob', testCall());
  await eventually('a stream of events is open', () => executor.streams() === 1);
  executor.forget(executor.intents[0]!);
  executor.dropStreams();
  assert.match(textOf(await answer), /intent-1, but says nothing more about it.*not known whether it was carried out/s);
});

test('an executor that answers garbage is queried again and does no harm', async (t) => {
  const { executor, link } = await setUp(t);
  const garbage = ['{"ok":true,"data":{"status":"fine"}}', '<html>\u0000'];
  executor.misbehave = (request, response) => {
    const next = request.url?.startsWith('/messages/async/') ? garbage.shift() : undefined;
    if (next === undefined) return false;
    response.writeHead(200, { 'content-type': 'application/json' }).end(next);
    return true;
  };
  assert.match(textOf(await link.delegate('pay Bob', testCall())), /was completed/);
});

test('a started intent cannot be cancelled: without a listening client it waits, unanswered', async (t) => {
  const { executor, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY], isBegun: true });
  const answer = await link.delegate('pay Bob', testCall());
  assert.match(textOf(answer), /still pending \(awaiting_approval\)/);
  const [intent] = executor.intents;
  assert.deepEqual([intent?.status, intent?.parkedIn, intent?.answers], ['awaiting_approval', CONVERSATION, []]);
});

test('an answer that Neo changes, or makes itself, does not count, and the gate stays open for the valid one', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(asked);
  const signed = signedTo(PAY);
  const own = { ...signedTo(PAY), signature: 'a'.repeat(128) };
  for (const forged of [own, { ...signed, answer: 'all of it' }, { ...signed, expires_at: '2126-01-01T00:00:00.000Z' }])
    await assert.rejects(link.answer('intent-1', 'n1', forged), { code: 'forbidden' });
  await assert.rejects(link.answer('intent-1', 'n1', signedTo(PAY, { displayed_sha256: 'f'.repeat(64) })), {
    code: 'conflict',
  });
  assert.deepEqual(executor.intents[0]?.answers, []);
  await link.answer('intent-1', 'n1', signed);
  assert.match(textOf(await answer), /was completed/);
  assert.deepEqual(executor.intents[0]?.answers, [{ nodeId: 'n1', answer: signed }], 'it arrived there unchanged');
});

test('a renewed question is notified again, and the answer to the previous one is refused', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(asked);
  const again = { ...PAY, question: `${PAY.question} It is another tool by now.` };
  executor.intents[0]!.pending = [];
  executor.ask(executor.intents[0]!, again);
  await call.until((notice) => asked(notice) && notice.type === 'gate' && notice.gate.question === again.question);
  assert.deepEqual(states(call.notices), ['n1 asked', 'n1 lapsed', 'n1 asked']);
  await assert.rejects(link.answer('intent-1', 'n1', signedTo(PAY)), { code: 'conflict', message: /a new question/ });
  await link.answer('intent-1', 'n1', signedTo(again));
  assert.match(textOf(await answer), /was completed/);
});

test('after a restart of Neo a gate can be answered as before: the answer names its gate', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const cut = link.delegate('pay Bob', call);
  const notice = await call.until(asked);
  call.abort(new Error('Neo stops'));
  await assert.rejects(cut);
  const { link: restarted } = await setUp(t, {
    executor: { url: executor.url, token: executor.token, userId: 'alice' },
  });
  await assert.rejects(restarted.answer('intent-1', 'n9', signedTo({ ...PAY, nodeId: 'n9' })), { code: 'not_found' });
  await assert.rejects(restarted.answer('intent-1', 'n1', signedTo(PAY, { call_sha256: '0'.repeat(64) })), {
    code: 'conflict',
  });
  assert.ok(notice.type === 'gate');
  assert.equal(notice.gate.displayed_sha256, signedTo(PAY).displayed_sha256);
  await restarted.answer('intent-1', 'n1', signedTo(PAY));
  assert.equal(executor.intents[0]?.status, 'completed');
});

test('a gate that was answered at the executor itself is reported as lapsed', async (t) => {
  const { executor, approvers, link } = await setUp(t);
  executor.course = () => ({ gates: [PAY] });
  approvers.addStream(CONVERSATION);
  const call = testCall();
  const answer = link.delegate('pay Bob', call);
  await call.until(asked);
  executor.intents[0]!.pending = [];
  executor.finish(executor.intents[0]!, 'completed');
  assert.match(textOf(await answer), /was completed/);
  assert.deepEqual(states(call.notices), ['n1 asked', 'n1 lapsed']);
  await assert.rejects(link.answer('intent-1', 'n1', signedTo(PAY)), { code: 'conflict' });
});
