import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { parseExecutorConfig } from '../../../src/executor/config.ts';
import { startExecutor } from '../../../src/executor/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { testApprover } from '../../../src/kit/identity/testing/approver.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { canonicalJson } from '../../../src/wire/canonical-json.ts';
import {
  gateListSchema,
  INTENT_BODY_MAX_BYTES,
  intentAcceptedSchema,
  intentStateSchema,
  parkedSchema,
} from '../../../src/wire/executor.ts';
import { intentReceiptSchema } from '../../../src/wire/intent-receipt.ts';
import { intentListSchema, intentViewSchema } from '../../../src/wire/intent-view.ts';
import { ADMIN_TOKEN, asOperator } from '../../support/cluster/approval.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { callerOf, executorSettings, readOnlyPlan, startedExecutor, TOKEN, transfer } from './executor-bench.ts';

async function open(t: TestContext, more: Record<string, string> = {}) {
  const executor = await startedExecutor(t, temporaryFolder(t), more);
  return { executor, ada: callerOf(executor, 'ada'), eve: callerOf(executor, 'eve') };
}

/** Collects the events of a stream. */
async function follow(t: TestContext, url: string, headers: Record<string, string>, intentId: string) {
  const over = new AbortController();
  t.after(() => over.abort());
  const response = await fetch(`${url}/events?intent_id=${intentId}`, { headers, signal: over.signal });
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  const events: { event: string; data: Record<string, unknown> }[] = [];
  let changed = Promise.withResolvers<void>();
  const ended = (async () => {
    let rest = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop()!;
      for (const block of blocks) {
        const [, event, data] = /^event: (.*)\ndata: (.*)$/m.exec(block) ?? [];
        if (event?.match(/^(gate\.invoked|intent\.(attest|fail|cancel))$/))
          events.push({ event, data: JSON.parse(data!) });
      }
      changed.resolve();
      changed = Promise.withResolvers();
    }
  })().catch(() => {});
  return {
    events,
    ended,
    async until(count: number) {
      while (events.length < count) await changed.promise;
      return events;
    },
  };
}

test('a transfer completes over HTTP: submitted, asked, approved, done, and proved', async (t) => {
  const { ada } = await open(t);
  const accepted = await ada.data('POST', '/messages/async', { intent: transfer(), conversation_id: 'c-1' });
  const { intent_id: id } = intentAcceptedSchema.strict().parse(accepted);
  const gate = await ada.waiting(id);
  assert.deepEqual(Object.keys(gate).sort(), [
    ...['call', 'displayed_sha256', 'expires_at', 'node_id', 'options', 'question'],
  ]);
  assert.equal(gate.displayed_sha256, createHash('sha256').update(gate.question).digest('hex'));
  assert.equal(gate.call.tool, 'ledger/transfer');
  assert.deepEqual(
    { ...gate.call.args, idempotency_key: undefined },
    { ...transfer().plan.args, idempotency_key: undefined },
  );
  const { tool, args } = gate.call;
  const digest = createHash('sha256').update(canonicalJson({ tool, args })).digest('hex');
  assert.equal(gate.call.call_sha256, digest);
  const { status } = intentStateSchema.parse(await ada.state(id));
  assert.equal(status, 'awaiting_approval');
  const answered = await ada.answer(id, 'pay', { approved: true, call_sha256: digest });
  assert.deepEqual(answered.data, { intent_id: id, node_id: 'pay', approved: true });
  const done = intentStateSchema.strict().parse(await ada.until(id, 'completed'));
  assert.ok(done.result !== undefined);
  const view = intentViewSchema.strict().parse(await ada.data('GET', `/intents/${id}`));
  assert.deepEqual([view.intent?.verb, view.nodes[0]?.state, view.conversation_id], ['transfer', 'done', 'c-1']);
  const receipt = intentReceiptSchema.parse(await ada.data('GET', `/intents/${id}/receipt`));
  assert.equal(receipt.envelopes.at(-1)?.kind, 'intent.completed');
  assert.deepEqual(gateListSchema.parse(await ada.data('GET', `/intents/${id}/gates`)).pending, []);
  const { intents } = intentListSchema.parse(await ada.data('GET', '/intents?status=completed&limit=1'));
  assert.deepEqual(
    intents.map(({ intent_id }) => intent_id),
    [id],
  );
});

test('a wrong caller is refused before anything else, on every route', async (t) => {
  const { executor, ada } = await open(t);
  const id = await ada.submit({ intent: transfer() });
  const asked = await ada.waiting(id);
  const routes: [method: 'GET' | 'POST', path: string, body?: object][] = [
    ['POST', '/messages/async', { intent: readOnlyPlan() }],
    ['GET', `/messages/async/${id}`],
    ['GET', '/intents'],
    ['GET', `/intents/${id}`],
    ['GET', `/intents/${id}/receipt`],
    ['GET', `/intents/${id}/gates`],
    ['POST', `/intents/${id}/gates/pay/answer`, testApprover().answer(id, asked)],
    ['POST', `/intents/${id}/cancel`],
    ['POST', `/intents/${id}/reconcile`],
    ['POST', `/intents/${id}/park`, { conversation_id: 'c' }],
    ['GET', `/events?intent_id=${id}`],
  ];
  // Each wrong token is answered late, so they are all sent at once.
  const unknown = routes.flatMap(([method, path, body]) =>
    ['', 'another-token-of-the-same-kind'].map(async (token) => {
      const { status, error } = await callerOf({ url: executor.url }, 'ada', token).call(method, path, body);
      assert.deepEqual([path, status, error.code], [path, 401, 'unauthorized']);
    }),
  );
  await Promise.all(unknown);
  for (const [method, path, body] of routes) {
    for (const user of [undefined, '', 'a b', 'x'.repeat(65), 'a/b']) {
      const { status, error } = await callerOf(executor, user).call(method, path, body);
      assert.deepEqual([path, status, error.code], [path, 400, 'invalid_request']);
      assert.match(error.message, /X-Matrix-User/);
    }
    if (!path.includes(id)) continue;
    const { status, error } = await callerOf(executor, 'eve').call(method, path, body);
    assert.deepEqual([path, status, error.code], [path, 404, 'not_found']);
  }
  assert.deepEqual((await callerOf(executor, 'eve').data('GET', '/intents')).intents, []);
  assert.equal((await ada.state(id)).status, 'awaiting_approval', 'no other user has moved it');
});

test('a label that is a UUID is the same user in every case', async (t) => {
  const { executor } = await open(t);
  const label = '0191E4F2-0000-4000-8000-0000000000AB';
  const id = await callerOf(executor, label).submit({ intent: readOnlyPlan() });
  assert.equal((await callerOf(executor, label.toLowerCase()).call('GET', `/intents/${id}`)).status, 200);
});

test('unexpected fields and parameters are named, not ignored', async (t) => {
  const { ada } = await open(t);
  const id = await ada.submit({ intent: transfer() });
  await ada.waiting(id);
  const right = await ada.signed(id, 'pay');
  const cases: [method: 'GET' | 'POST', path: string, body: unknown, named: RegExp][] = [
    ['POST', '/messages/async', { prose: 'x', priority: 1 }, /unknown field "priority"/],
    ['POST', '/messages/async', { prose: 'x', intent: readOnlyPlan() }, /exactly one of prose and intent/],
    ['POST', '/messages/async', {}, /exactly one of prose and intent/],
    ['POST', '/messages/async', { prose: '' }, /prose must not be empty/],
    ['POST', '/messages/async', { prose: 'x', context: [{ from: 'agent', text: 'y' }] }, /context\.0\.from/],
    ['POST', '/messages/async', '{"prose":', /JSON/],
    ['POST', '/messages/async', '[]', /JSON object/],
    ['POST', '/messages/async?dry=1', { intent: readOnlyPlan() }, /unknown field "dry"/],
    ['GET', '/intents?limit=0', undefined, /limit must be a whole number from 1 to 500/],
    ['GET', '/intents?status=done', undefined, /status must be one of/],
    ['GET', '/intents?cursor=1', undefined, /unknown field "cursor"/],
    ['GET', `/messages/async/${id}?x=1`, undefined, /unknown field "x"/],
    ['POST', `/intents/${id}/cancel`, { why: 'x' }, /unknown field "why"/],
    ['POST', `/intents/${id}/reconcile`, { force: true }, /unknown field "force"/],
    ['POST', `/intents/${id}/park`, {}, /conversation_id is required/],
    ['POST', `/intents/${id}/park`, { conversation_id: 'a b' }, /conversation_id/],
    ['POST', `/intents/${id}/gates/pay/answer`, { ...right, approved: 'yes' }, /approved must be/],
    ['POST', `/intents/${id}/gates/pay/answer`, { ...right, call_sha256: 'abc' }, /call_sha256 must be 64/],
    ['POST', `/intents/${id}/gates/pay/answer`, { ...right, always: true }, /unknown field "always"/],
    ['POST', `/intents/${id}/gates/pay/answer`, { approved: true }, /signature is required/],
    ['POST', `/intents/${id}/gates/pay/answer`, { ...right, expires_at: '2026-06-15T08:10:00Z' }, /expires_at must be/],
    ['GET', `/events?intent_id=${id}&last_event_id=4`, undefined, /unknown field "last_event_id"/],
  ];
  for (const [method, path, body, named] of cases) {
    const { status, error } = await ada.call(method, path, body);
    assert.deepEqual([path, status], [path, 400], JSON.stringify(body));
    assert.match(error.message, named);
  }
  for (const path of ['/intents/.', '/intents/%2e%2e%2fx', '/intents/a b/receipt', '/messages/async/..%00']) {
    assert.equal((await ada.call('GET', path)).status, 404, path);
  }
  assert.equal((await ada.state(id)).status, 'awaiting_approval');
});

test('an answer counts once, for the call that was shown, and only from its user', async (t) => {
  const { ada, eve } = await open(t);
  const id = await ada.submit({ intent: transfer() });
  const gate = await ada.waiting(id);
  assert.equal(gate.node_id, 'pay');
  const right = await ada.signed(id, 'pay');
  assert.equal((await eve.sendAnswer(id, 'pay', right)).status, 404);
  const other = await ada.answer(id, 'pay', { call_sha256: 'f'.repeat(64) });
  assert.deepEqual([other.status, other.error.code], [409, 'conflict']);
  assert.equal((await ada.sendAnswer(id, 'elsewhere', right)).status, 404);
  assert.equal((await ada.state(id)).status, 'awaiting_approval');
  const answers = await Promise.all(Array.from({ length: 8 }, () => ada.sendAnswer(id, 'pay', right)));
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, ...Array(7).fill(409)], 'the first one counts');
  await ada.until(id, 'completed');
  const replayed = await ada.sendAnswer(id, 'pay', right);
  assert.deepEqual([replayed.status, replayed.error.code], [409, 'conflict']);
  const { envelopes } = intentReceiptSchema.parse(await ada.data('GET', `/intents/${id}/receipt`));
  const kinds = envelopes.map(({ kind }) => kind);
  assert.equal(kinds.filter((kind) => kind === 'call.started').length, 1);
  assert.equal(kinds.filter((kind) => kind === 'gate.answered').length, 1);
  assert.ok(kinds.includes('gate.refused'), 'an answer that does not count is on record');
});

test('an answer to one intent has no effect on another with the same call', async (t) => {
  const { ada } = await open(t);
  const first = await ada.submit({ intent: transfer() });
  await ada.waiting(first);
  const old = await ada.signed(first, 'pay');
  await ada.answer(first, 'pay', { approved: false });
  await ada.until(first, 'denied');
  const second = await ada.submit({ intent: transfer() });
  await ada.waiting(second);
  const replayed = await ada.sendAnswer(second, 'pay', old);
  assert.deepEqual([replayed.status, replayed.error.code], [409, 'conflict']);
  // Not even with the digests of the waiting question: the signature covers the other intent.
  const { call, displayed_sha256 } = await ada.waiting(second);
  const dressed = { ...old, call_sha256: call.call_sha256, displayed_sha256 };
  const refused = await ada.sendAnswer(second, 'pay', dressed);
  assert.deepEqual([refused.status, refused.error.code], [403, 'forbidden']);
  assert.equal((await ada.state(second)).status, 'awaiting_approval');
});

test('the same key and task give the same intent, another task under it is a conflict', async (t) => {
  const { ada, eve } = await open(t);
  const task = { intent: transfer(), idempotency_key: 'k-1' };
  const ids = await Promise.all(Array.from({ length: 5 }, () => ada.submit(task)));
  assert.equal(new Set(ids).size, 1);
  const { status, error } = await ada.call('POST', '/messages/async', { ...task, intent: transfer('13.00') });
  assert.deepEqual([status, error.code], [409, 'conflict']);
  assert.notEqual(await eve.submit(task), ids[0]);
});

test('numbers that JavaScript would round are refused, and others keep their digits', async (t) => {
  const { ada } = await open(t);
  const rounded =
    '{"intent":{"verb":"x","plan":{"id":"a","kind":"call","tool":"ledger/accounts","args":{"n":12345678901234567890}}}}';
  const refused = await ada.call('POST', '/messages/async', rounded);
  assert.equal(refused.status, 400);
  assert.match(refused.error.message, /args\.n/);
  const twice = '{"intent":{"verb":"x","verb":"y","plan":{"id":"a","kind":"wait","seconds":1}}}';
  assert.equal((await ada.call('POST', '/messages/async', twice)).status, 400);
});

test('a body beyond the limit is refused with 413, one with a long conversation is taken', async (t) => {
  const { ada } = await open(t);
  const pieces = (count: number) =>
    Array.from({ length: count }, () => ({ from: 'tool', text: 'x'.repeat(60 * 1024) }));
  await ada.submit({ intent: readOnlyPlan(), context: pieces(30) });
  const { status, error } = await ada.call('POST', '/messages/async', { prose: 'x', context: pieces(40) });
  assert.equal(status, 413);
  assert.match(error.message, new RegExp(String(INTENT_BODY_MAX_BYTES)));
});

test('without a model a text task is refused on submission, with the missing setting and the calls that still work', async (t) => {
  const { ada } = await open(t);
  const prose = { prose: 'Transfer 10 EUR from alice to bob', idempotency_key: 'once' };
  for (const _ of [1, 2]) {
    const { status, error } = await ada.call('POST', '/messages/async', prose);
    assert.equal(status, 503);
    const { code, message, retryable } = error;
    assert.deepEqual([code, retryable], ['unavailable', false]);
    assert.match(message, /Set EXECUTOR_MODEL and EXECUTOR_MODEL_BASE_URL .*JSON/);
  }
  assert.deepEqual((await ada.data('GET', '/intents')).intents, [], 'nothing was stored');
});

test('an intent can be cancelled while it waits, and is then not executed', async (t) => {
  const { ada } = await open(t);
  const id = await ada.submit({ intent: transfer() });
  const gate = await ada.waiting(id);
  assert.equal((await ada.data('POST', `/intents/${id}/cancel`, {})).status, 'cancelled');
  const late = await ada.answer(id, 'pay', { approved: true, call_sha256: gate.call.call_sha256 });
  assert.equal(late.status, 409);
  assert.equal((await ada.data('POST', `/intents/${id}/cancel`)).status, 'cancelled', 'harmless when repeated');
});

test('one intent of a user executes at a time, and the other names the one that it waits for', async (t) => {
  const { ada, eve } = await open(t);
  const first = await ada.submit({ intent: transfer() });
  await ada.waiting(first);
  const second = await ada.submit({ intent: readOnlyPlan() });
  const others = await eve.submit({ intent: readOnlyPlan() });
  await eve.until(others, 'completed');
  const { status, queued_behind } = await ada.until(second, 'planned');
  assert.deepEqual([status, queued_behind], ['planned', first]);
  await ada.answer(first, 'pay', { approved: false });
  await ada.until(second, 'completed');
});

test('an intent is parked once for a conversation, and shows it', async (t) => {
  // No process listens there: the wake that the agent is owed waits for its time.
  const { ada } = await open(t, { EXECUTOR_CHRONOS_URL: 'http://127.0.0.1:9', EXECUTOR_CHRONOS_TOKEN: 'x'.repeat(16) });
  const id = await ada.submit({ intent: transfer(), origin: 'chronos' });
  await ada.waiting(id);
  for (let times = 0; times < 2; times++) {
    const parked = await ada.data('POST', `/intents/${id}/park`, { conversation_id: 'c-1' });
    assert.deepEqual(parkedSchema.strict().parse(parked), { intent_id: id, status: 'awaiting_approval', parked: true });
  }
  assert.equal((await ada.state(id)).parked, true);
  await ada.data('POST', `/intents/${id}/cancel`);
  const over = await ada.data('POST', `/intents/${id}/park`, { conversation_id: 'c-1' });
  assert.deepEqual([over.status, over.parked], ['cancelled', false]);
});

test('without a chronosd nothing is parked: no agent waits for an alarm that is never set', async (t) => {
  const { ada } = await open(t);
  const id = await ada.submit({ intent: transfer(), origin: 'chronos' });
  await ada.waiting(id);
  const answer = await ada.data('POST', `/intents/${id}/park`, { conversation_id: 'c-1' });
  assert.deepEqual(answer, { intent_id: id, status: 'awaiting_approval', parked: false });
  assert.equal((await ada.state(id)).parked, undefined);
});

test('events begin with the current state, report changes, and end with the executor', async (t) => {
  const { executor, ada, eve } = await open(t);
  const id = await ada.submit({ intent: transfer() });
  const early = await follow(t, executor.url, ada.headers, id);
  const gate = await ada.waiting(id);
  const asked = { event: 'gate.invoked', data: { type: 'gate.invoked', intent_id: id, node_id: 'pay' } };
  assert.partialDeepStrictEqual((await early.until(1))[0], asked);
  const late = await follow(t, executor.url, ada.headers, id);
  assert.deepEqual((await late.until(1))[0], asked, 'a later client learns that it waits');
  await ada.answer(id, 'pay', { approved: true, call_sha256: gate.call.call_sha256 });
  const attested = { event: 'intent.attest', data: { type: 'intent.attest', intent_id: id } };
  assert.partialDeepStrictEqual((await early.until(2))[1], attested);
  const afterwards = await follow(t, executor.url, ada.headers, id);
  assert.deepEqual((await afterwards.until(1))[0], attested);
  assert.equal((await eve.call('GET', `/events?intent_id=${id}`)).status, 404);

  const cancelled = await ada.submit({ intent: transfer() });
  await ada.waiting(cancelled);
  const third = await follow(t, executor.url, ada.headers, cancelled);
  await ada.data('POST', `/intents/${cancelled}/cancel`);
  assert.equal((await third.until(2))[1]?.event, 'intent.cancel');
  const failed = await ada.submit({ intent: transfer() });
  await ada.waiting(failed);
  const fourth = await follow(t, executor.url, ada.headers, failed);
  await ada.answer(failed, 'pay', { approved: false });
  assert.equal((await fourth.until(2))[1]?.event, 'intent.fail');
  await executor.close();
  await Promise.all([early, late, third, fourth].map(({ ended }) => ended));
});

test('health and readiness are open to every caller', async (t) => {
  const { executor } = await open(t);
  const plain = callerOf(executor, undefined, '');
  assert.equal((await plain.data('GET', '/')).name, 'executor');
  assert.equal((await plain.call('GET', '/healthz')).status, 200);
  assert.equal((await plain.call('GET', '/readyz')).status, 200);
});

test('without an operator token no roster opens, on loopback and in development as well', async (t) => {
  const folder = temporaryFolder(t);
  const { EXECUTOR_TOKEN: _, EXECUTOR_ADMIN_TOKEN: __, ...bare } = executorSettings(folder, { EXECUTOR_DEV: '1' });
  const config = parseExecutorConfig(bare);
  const executor = await startExecutor({ config, clock: systemClock, log: silentLogger, drainMs: 1000 });
  t.after(() => executor.close());
  for (const token of ['', TOKEN, ADMIN_TOKEN])
    for (const path of ['/approvers?user=ada', '/submitters?user=ada']) {
      const { status, error } = await asOperator(executor.url, 'GET', path, undefined, token);
      assert.equal(status, 403, path);
      assert.match(
        error!.message,
        /^EXECUTOR_ADMIN_TOKEN is not set at this executor, so approvers and submitters cannot be enrolled/,
      );
    }
  // Routes without a roster exist.
  assert.equal((await callerOf(executor, 'ada').call('GET', '/intents')).status, 200);
});
