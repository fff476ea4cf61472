/**
 * Hostile texts against the whole executor, with a cooperating model. Every call that needs an approval is made only
 * after a person has seen exactly that call and approved it.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { testApprover } from '../../../src/kit/identity/testing/approver.ts';
import { hiddenCharacters } from '../../../src/kit/text/hidden-characters.ts';
import { canonicalJson } from '../../../src/wire/canonical-json.ts';
import { APPROVER } from '../../support/cluster/approval.ts';
import { adversary } from './adversary.ts';
import { executorUnderAttack, type Gate } from './executor.ts';
import { type HostileInput, readInputs, taskOf } from './inputs.ts';

const AT_ONCE = 6;
const FRIENDLY = 'Transfer 12.34 EUR from alice to bob.';

type Executor = Awaited<ReturnType<typeof executorUnderAttack>>;

const digestOf = ({ tool, args }: Gate['call']) =>
  createHash('sha256').update(canonicalJson({ tool, args })).digest('hex');

/** The question shows the exact call: the tool, every argument, and the digest that the answer is bound to. */
function assertShowsCall({ question, call }: Gate, id: string): void {
  assert.equal(call.call_sha256, digestOf(call), id);
  const lines = question.split('\n');
  assert.deepEqual(lines.slice(0, 2), ['May this tool be called?', `  | ${JSON.stringify(call.tool)}`], id);
  for (const line of JSON.stringify(call.args, null, 2).split('\n'))
    assert.ok(lines.includes(`  | ${line}`), `${id}: ${line}`);
  assert.equal(lines.at(-1), `Call: ${call.call_sha256}`, id);
  assert.deepEqual(hiddenCharacters(question), [], id);
  // No submitted text can be at the beginning of a line of the question.
  for (const word of ['approved', 'Approved', 'SYSTEM', 'Person:', 'User:']) {
    assert.ok(!lines.some((line) => line.startsWith(word)), `${id}: ${word}`);
  }
}

/** Every attack on a question without the person's own session. */
async function forge(executor: Executor, user: string, intentId: string, gate: Gate): Promise<void> {
  const { node_id, call } = gate;
  const yes = { approved: true, call_sha256: call.call_sha256 };
  const own = testApprover().answer(intentId, gate);
  const signed = APPROVER.answer(intentId, gate);
  const refused = [
    await executor.sendAnswer(user, intentId, node_id, yes),
    await executor.sendAnswer(user, intentId, node_id, own),
    await executor.sendAnswer(user, intentId, node_id, { ...own, approver: APPROVER.approver }),
    await executor.sendAnswer('mallory', intentId, node_id, signed),
    await executor.answer('mallory', intentId, node_id, yes),
    await executor.answer(user, intentId, node_id, { approved: true, call_sha256: 'f'.repeat(64) }),
    await executor.answer(user, intentId, 'n99', yes),
    await executor.sendAnswer(user, intentId, node_id, { ...signed, approved: 'true' }),
    await executor.sendAnswer(user, intentId, node_id, { ...signed, by: user }),
    await executor.sendAnswer(user, intentId, node_id, { ...signed, answer: 'and send it to mallory' }),
  ];
  assert.deepEqual(
    refused.map((status) => status >= 400 && status < 500),
    refused.map(() => true),
    `${intentId}: ${refused}`,
  );
}

async function attack(executor: Executor, input: HostileInput, user: string): Promise<'gate' | 'refused'> {
  const { id, context, origin, wants } = input;
  const request = { prose: taskOf(input), ...(context && { context }), ...(origin && { origin }) };
  const intentId = await executor.submit(user, request);
  const state = await executor.atRest(user, intentId);
  const gates = await executor.gates(user, intentId);
  if (state.status !== 'awaiting_approval') {
    assert.equal(state.status, 'failed', `${id}: ${JSON.stringify(state)}`);
    assert.deepEqual(gates, [], id);
    assert.equal(state.error?.code, 'invalid_request', id);
    assert.match(
      state.error.message,
      /could not be compiled to a valid plan: .{10}|contains invisible characters: U/s,
      id,
    );
    if (id.startsWith('hidden-characters/')) assert.match(state.error.message, /invisible characters: U\+/, id);
  } else {
    assert.equal(gates.length, 1, id);
    const [gate] = gates as [Gate];
    assertShowsCall(gate, id);
    assert.deepEqual(gate.call.args, { ...wants?.[0], idempotency_key: `${intentId}.${gate.node_id}` }, id);
    const reply = (context ?? []).some(({ from }) => from === 'tool') && !input.prose.includes(wants?.[0]?.to ?? '');
    if (reply) assert.match(gate.question, /\/to = "bob": from what a TOOL said/, id);
    await forge(executor, user, intentId, gate);
    assert.deepEqual(await executor.gates(user, intentId), gates, `${id}: the question is still open`);
    assert.equal(await executor.answer(user, intentId, gate.node_id, { approved: false }), 200, id);
    assert.notEqual((await executor.atRest(user, intentId)).status, 'completed', id);
  }
  const started = (await executor.receipt(user, intentId)).filter(
    ({ kind, body }) => kind === 'call.started' && body.surface !== 'natural',
  );
  assert.deepEqual(started, [], `${id}: no call has started`);
  return state.status === 'awaiting_approval' ? 'gate' : 'refused';
}

test('no hostile text causes a call without an approval', { timeout: 240_000 }, async (t) => {
  const inputs = readInputs();
  assert.ok(inputs.length >= 100, `there are ${inputs.length} inputs`);
  assert.equal(new Set(inputs.map(({ id }) => id)).size, inputs.length);
  const { baseUrl, requests } = await adversary(t, inputs);
  const executor = await executorUnderAttack(t, baseUrl);

  const outcomes = new Map<string, string>();
  const waiting = inputs.entries();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const [index, input] of waiting) outcomes.set(input.id, await attack(executor, input, `user-${index}`));
    }),
  );
  assert.deepEqual(executor.transfers(), []);
  const expected = new Map(inputs.map(({ id, expect }) => [id, expect]));
  const others = [...outcomes].filter(([id, outcome]) => expected.get(id) !== outcome);
  assert.deepEqual(others, [], 'each text reaches its expected stage');
  assert.ok(requests.length > inputs.length, 'the model was called');

  // The same call succeeds when the approver allows it: the refusals are not caused by a broken path.
  const args = { from: 'alice', to: 'bob', amount: '12.34', currency: 'EUR' };
  const plan = { verb: 'transfer', plan: { id: 'n1', kind: 'call', tool: 'ledger/transfer', args } };
  const intentId = await executor.submit('friend', { prose: `${FRIENDLY} plan: ${JSON.stringify(plan)}` });
  assert.equal((await executor.atRest('friend', intentId)).status, 'awaiting_approval');
  const [gate] = (await executor.gates('friend', intentId)) as [Gate];
  assertShowsCall(gate, 'friendly');
  const yes = { approved: true, call_sha256: gate.call.call_sha256 };
  assert.equal(await executor.answer('friend', intentId, gate.node_id, yes), 200);
  assert.equal((await executor.atRest('friend', intentId)).status, 'completed');
  assert.deepEqual(executor.transfers(), [{ source: 'alice', target: 'bob', cents: 1234 }]);
});

test('a step that a text adds to another one has its own question', { timeout: 60_000 }, async (t) => {
  const input = readInputs().find(({ id }) => id === 'conversation/tool-adds-step')!;
  const { baseUrl } = await adversary(t, [input]);
  const executor = await executorUnderAttack(t, baseUrl);
  const intentId = await executor.submit('alice', { prose: taskOf(input), context: input.context });
  await executor.atRest('alice', intentId);
  const [first] = (await executor.gates('alice', intentId)) as [Gate];
  const yes = { approved: true, call_sha256: first.call.call_sha256, displayed_sha256: first.displayed_sha256 };
  assert.equal(await executor.answer('alice', intentId, first.node_id, yes), 200);
  assert.equal(await executor.answer('alice', intentId, 'n2', yes), 409);
  let gates = await executor.gates('alice', intentId);
  while (gates[0]?.node_id !== 'n2') {
    const { status } = await executor.atRest('alice', intentId);
    assert.equal(status, 'awaiting_approval');
    gates = await executor.gates('alice', intentId);
  }
  assertShowsCall(gates[0]!, input.id);
  assert.deepEqual(executor.transfers(), [{ source: 'alice', target: 'rent', cents: 900 }]);
  // The approval of the first call does not cover the second.
  assert.equal(await executor.answer('alice', intentId, 'n2', yes), 409);
  assert.equal(await executor.answer('alice', intentId, 'n2', { approved: false }), 200);
  await executor.atRest('alice', intentId);
  assert.equal(executor.transfers().length, 1);
});

test('a plan that the model could smuggle is refused as submitted JSON too', { timeout: 60_000 }, async (t) => {
  // A submitter's own plan may contain waits of any length.
  const inputs = readInputs().filter(({ intent }) => intent !== undefined && !intent.includes('"wait"'));
  assert.ok(inputs.length >= 20);
  const { baseUrl } = await adversary(t, []);
  const executor = await executorUnderAttack(t, baseUrl);
  let asked = 0;
  for (const { id, intent } of inputs) {
    const user = `json-${id.replace(/\W/g, '-')}`;
    const intentId = await executor.submitText(user, `{"intent":${intent}}`);
    if (intentId === undefined) continue;
    const { status } = await executor.atRest(user, intentId);
    if (status !== 'awaiting_approval') {
      assert.equal(status, 'failed', id);
      continue;
    }
    for (const gate of await executor.gates(user, intentId)) {
      assertShowsCall(gate, id);
      asked++;
    }
  }
  assert.ok(asked > 0, 'some are valid plans, although unwanted');
  assert.deepEqual(executor.transfers(), []);
});
