import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { StrictReader } from '../../kit/json/strict-json.ts';
import type { RawJson } from '../../wire/json.ts';
import { PLAN_RESOLVED_MAX, REFERENCES_MAX } from '../intent/reference.ts';
import { valuesAt } from '../intent/result-values.ts';
import type { PolicyRequest } from '../policy/policy.ts';
import { answered } from './testing/bank.ts';
import { call, createWorkbench, planOf, type Workbench } from './testing/workbench.ts';

type Verify = (content: string, key?: string, approvers?: string[]) => { ok: boolean; ends_with?: string }[];
const VERIFIER = join(import.meta.dirname, '../../../test/contract/second-verifier/verifier.mjs');
const { verify } = (await import(VERIFIER)) as { verify: Verify };

const $ref = (pointer: string, from = 'exchange') => ({ $ref: `${from}#${pointer}` });
const exchange = call('exchange', 'exchange', { amount: '10.00', into: 'JPY' });
const send = (args: object = {}) => ({
  ...call('send', 'transfer', { to: 'bob', amount: $ref('/received/amount'), currency: 'JPY', ...args }),
});

/** Makes an exchange with the given answer of the bank, and waits for the end of the intent. */
async function afterExchange(bench: Workbench, source: string, args: object) {
  bench.bank.misbehave = (tool) =>
    tool === 'bank/exchange' ? Promise.resolve(answered({}, source, source)) : undefined;
  const id = await bench.submit(planOf(exchange, send(args)));
  await bench.approve(id, 'exchange');
  return id;
}

/** Checks the receipt with both verifiers. */
function verifiedTwice(bench: Workbench, id: string) {
  const receipt = bench.verified(id);
  const [finding] = verify(JSON.stringify(receipt), receipt.public_key);
  assert.equal(finding?.ok, true, JSON.stringify(finding));
  return receipt;
}

test('what an exchange gave is sent on: the question shows the value and its step, the receipt the reference and the value', async (t) => {
  const bench = createWorkbench(t);
  const judged: PolicyRequest[] = [];
  bench.decide = (request) => {
    judged.push(request);
    return undefined as never;
  };
  const id = await bench.submit(planOf(exchange, send()));
  await bench.gate(id, 'exchange');
  assert.deepEqual([...new Set(judged.map(({ tool }) => tool))], ['bank/exchange']);
  await bench.approve(id, 'exchange');
  const gate = await bench.gate(id, 'send');
  assert.deepEqual(gate.call.args, { to: 'bob', amount: '4975.00', currency: 'JPY', key: `${id}.send` });
  assert.match(gate.question, /^ {2}\| \/amount = "4975\.00" from step exchange: \/received\/amount/m);
  assert.match(gate.question.split('\n\n')[0]!, /Amount:\n.*4975\.00 JPY/);
  await bench.approve(id, 'send');
  await bench.reaches(id, 'completed');
  const sent = judged.filter(({ tool }) => tool === 'bank/transfer');
  assert.ok(
    sent.length > 0 && sent.every(({ args, amount }) => args.amount === '4975.00' && amount?.value === '4975.00'),
  );
  assert.deepEqual([...bench.bank.transfers.values()], [gate.call.args]);
  const { envelopes } = verifiedTwice(bench, id);
  const compiled = envelopes.find(({ kind }) => kind === 'intent.compiled')!.body;
  const decided = envelopes.findLast(({ kind }) => kind === 'call.decided')!.body;
  assert.deepEqual(compiled.references, [
    { node_id: 'send', place: '/amount', from: 'exchange', pointer: '/received/amount' },
  ]);
  assert.deepEqual(decided.resolved, [{ place: '/amount', ref: 'exchange#/received/amount', json: '"4975.00"' }]);
});

test('after a crash between two steps the value comes from the journal, not from the server', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(exchange, send()));
  await bench.approve(id, 'exchange');
  const before = await bench.gate(id, 'send');
  await bench.stop();
  bench.bank.misbehave = (tool) =>
    tool === 'bank/exchange' ? Promise.resolve(answered({ received: { amount: '9999.00' } })) : undefined;
  bench.start();
  const after = await bench.gate(id, 'send');
  assert.deepEqual([after.call, after.displayed_sha256], [before.call, before.displayed_sha256]);
  await bench.approve(id, 'send');
  await bench.reaches(id, 'completed');
  assert.deepEqual(
    bench.bank.calls.filter(({ tool }) => tool === 'bank/exchange'),
    [{ tool: 'bank/exchange', args: exchange.args }],
  );
  verifiedTwice(bench, id);
});

test('an approval of one resolved call does not count for another', async (t) => {
  const bench = createWorkbench(t);
  const ids = [await bench.submit(planOf(exchange, send())), await bench.submit(planOf(exchange, send()))];
  const [first, second] = ids as [string, string];
  await bench.approve(first, 'exchange');
  const answer = await bench.answerTo(first, 'send');
  await bench.approve(first, 'send');
  bench.bank.misbehave = (tool) =>
    tool === 'bank/exchange' ? Promise.resolve(answered({ received: { amount: '9999.00' } })) : undefined;
  await bench.approve(second, 'exchange');
  await bench.gate(second, 'send');
  await assert.rejects(bench.rail.answer('alice', second, 'send', answer), {
    code: 'conflict',
    message: /call_sha256/,
  });
});

test('a value is taken digit for digit, and data that looks like a reference stays data', async (t) => {
  const bench = createWorkbench(t);
  const huge = '115792089237316195423570985008687907853269984665640564039457584007913129639935';
  const cases: readonly (readonly [source: string, pointer: string, amount: unknown])[] = [
    [`{"wei":"${huge}","id":${huge}}`, '/wei', huge],
    ['{"a/b":{"m~n":[["x"]]}}', '/a~1b/m~0n/0/0', 'x'],
    ['{"~1":"one","/":"two"}', '/~01', 'one'],
    ['{"":{"":"empty"}}', '//', 'empty'],
    ['{"größe 😀":"\\u0034975\\u002e00"}', '/größe 😀', '4975.00'],
    ['{"constructor":"c"}', '/constructor', 'c'],
    ['{"__proto__":{"amount":"p"}}', '/__proto__/amount', 'p'],
    ['{"amount":"exchange#/received/amount"}', '/amount', 'exchange#/received/amount'],
    ['["first"]', '/0', 'first'],
    [`{"amount":"${'9'.repeat(60_000)}"}`, '/amount', '9'.repeat(60_000)],
  ];
  for (const [source, pointer, amount] of cases) {
    const id = await afterExchange(bench, source, { amount: $ref(pointer) });
    const gate = await bench.gate(id, 'send');
    assert.equal((gate.call.args as { amount: unknown }).amount, amount, source.slice(0, 60));
    await bench.approve(id, 'send');
    await bench.reaches(id, 'completed');
    verifiedTwice(bench, id);
  }
});

test('a reference without a value, or with one that the tool does not accept, ends the intent before the call', async (t) => {
  const bench = createWorkbench(t);
  const nine = '[9,[9]]';
  const cases: readonly (readonly [source: string, pointer: string, words: RegExp])[] = [
    ['{"received":{"sum":"1"}}', '/received/amount', /nothing: the value at \/received has "sum"/],
    [nine, '/01', /is a list of 2/],
    [nine, '/-', /is a list of 2/],
    [nine, '/2', /is a list of 2/],
    [nine, '/length', /is a list of 2/],
    ['{"a":"text"}', '/a/length', /the value at \/a is neither an object nor a list/],
    ['{"a":1}', '/toString', /nothing: the result has "a"/],
    ['{"a":1}', '/__proto__', /nothing: the result has "a"/],
    ['{"amount":"1","amount":"2"}', '/amount', /"amount" is duplicated/],
    ['{"a":{"x":1,"\\u0078":2},"amount":"2"}', '/amount', /is duplicated/],
    ['{"amount":"\\ud800"}', '/amount', /a lone surrogate/],
    ['{"amount":12345678901234567890}', '/amount', /cannot be represented exactly.*as text/],
    ['{"amount":1e400}', '/amount', /cannot be represented exactly/],
    ['{"amount":4975.00}', '/amount', /args .*amount must be string.*\/amount is 4975\.00 from exchange#\/amount/],
    ['{"amount":null}', '/amount', /amount must be string/],
    ['{"amount":{"$ref":"exchange#/amount"}}', '/amount', /amount must be string/],
    ['{"amount":{"constructor":1}}', '/amount', /a member named constructor/],
    [`{"amount":"1","rest":"${'x'.repeat(70_000)}"}`, '/amount', /no usable result/],
  ];
  for (const [source, pointer, words] of cases) {
    const id = await afterExchange(bench, source, { amount: $ref(pointer) });
    await bench.reaches(id, 'failed');
    const { error } = bench.rail.state('alice', id);
    assert.match(error!.code!, /^(unresolved|unfit)_reference$/);
    assert.match(error!.message, words, source.slice(0, 60));
    assert.match(error!.message, /Completed before: bank\/exchange \(node exchange\)/);
    verifiedTwice(bench, id);
  }
  assert.equal(bench.bank.transfers.size, 0);
});

test('a plain-text result and a lost result cannot be referred to', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.misbehave = (tool) =>
    tool === 'bank/exchange' ? Promise.resolve(answered(undefined, 'you got 4975.00')) : undefined;
  const words = await bench.submit(planOf(exchange, send()));
  await bench.approve(words, 'exchange');
  await bench.reaches(words, 'failed');
  assert.match(bench.rail.state('alice', words).error!.message, /no usable result/);
  bench.bank.misbehave = async (tool, _args, carryOut) => {
    const report = carryOut();
    return tool === 'bank/transfer' ? { status: 'unknown', message: 'the line went dead' } : report;
  };
  const lost = await bench.submit(
    planOf({ ...send({ amount: '1.00' }), id: 'exchange' }, send({ to: $ref('/to'), amount: '1.00' })),
  );
  await bench.approve(lost, 'exchange');
  await bench.reaches(lost, 'failed');
  assert.match(bench.rail.state('alice', lost).error!.message, /its answer was lost/);
  verifiedTwice(bench, lost);
});

test('the policy judges resolved amounts', async (t) => {
  const bench = createWorkbench(t);
  bench.decide = ({ tool, amount }) =>
    tool === 'bank/transfer'
      ? { effect: Number(amount?.value) > 1000 ? 'deny' : 'allow', rule: 'small', reason: 'at most 1000 JPY' }
      : { effect: 'allow', rule: 'any', reason: 'any' };
  const id = await bench.submit(planOf(exchange, send()));
  await bench.reaches(id, 'denied');
  assert.equal(bench.rail.state('alice', id).error?.code, 'denied_by_policy');
  assert.equal(bench.bank.transfers.size, 0);
  verifiedTwice(bench, id);
});

test('references are checked when a plan is submitted, each problem with its position', async (t) => {
  const bench = createWorkbench(t);
  const parallel = (...nodes: object[]) => ({ id: 'both', kind: 'parallel', nodes });
  const cases: readonly (readonly [RawJson, RegExp])[] = [
    [planOf(exchange, send({ to: $ref('/x', 'nobody') })), /plan\.nodes\[1\]\.args\.to refers to the node "nobody"/],
    [
      planOf(send(), exchange),
      /plan\.nodes\[0\]\.args\.amount refers to exchange, which no sequence puts before send; no call/,
    ],
    [planOf(parallel(exchange, send())), /no sequence puts before/],
    [planOf(exchange, send({ to: $ref('/x', 'send') })), /refers to the result of its own node/],
    [
      planOf({ id: 'rest', kind: 'wait', seconds: 1 }, send({ amount: $ref('/x', 'rest') })),
      /a wait, which has no result/,
    ],
    [planOf(exchange, send({ amount: $ref('received') })), /must have a JSON Pointer \(RFC 6901\) after #/],
    [planOf(exchange, send({ amount: $ref('/a~2') })), /JSON Pointer/],
    [planOf(exchange, send({ amount: $ref('/a~') })), /JSON Pointer/],
    [planOf(exchange, send({ amount: { $ref: '/received' } })), /must name a node before #/],
    [planOf(exchange, send({ amount: { $ref: '#/received' } })), /must name a node before #/],
    [planOf(exchange, send({ amount: { $ref: 7 } })), /must have a \$ref text/],
    [planOf(exchange, send({ amount: { ...$ref('/x'), unit: 'JPY' } })), /must have no other member \(it has unit\)/],
    [planOf(exchange, { ...send(), args: $ref('') }), /must not be a reference/],
  ];
  for (const [plan, message] of cases)
    await assert.rejects(bench.submit(plan), (thrown: Error & { code?: string }) => {
      assert.equal(thrown.code, 'invalid_request');
      assert.match(thrown.message, message);
      return true;
    });
  assert.deepEqual(bench.rail.list('alice', { limit: 10 }), []);
  const early = await bench.submit(planOf(exchange, send({ amuont: $ref('/received/amount') })));
  await bench.reaches(early, 'failed');
  assert.match(bench.rail.state('alice', early).error!.message, /plan\.nodes\[1\]\.args.*amuont/);
  assert.deepEqual(bench.bank.calls, []);
});

test('a reference may be in nested lists and objects, and after a completed parallel', async (t) => {
  const bench = createWorkbench(t);
  const both = { id: 'both', kind: 'parallel', nodes: [exchange, { ...exchange, id: 'again' }] };
  const id = await bench.submit(planOf(both, send({ to: $ref('/received/currency', 'again') })));
  await bench.approve(id, 'exchange');
  await bench.approve(id, 'again');
  assert.deepEqual((await bench.gate(id, 'send')).call.args, {
    ...{ to: 'JPY', amount: '4975.00', currency: 'JPY', key: `${id}.send` },
  });
  verifiedTwice(bench, id);
});

test('a wait lasts until its instant, ends at once when that has passed, and respects its limits', async (t) => {
  const bench = createWorkbench(t);
  const at = (ms: number) => new Date(bench.clock.now() + ms).toISOString();
  const until = (instant: string) => ({ id: 'rest', kind: 'wait', until: instant });
  const past = await bench.submit(planOf(until(at(-1000)), call('look', 'balance', { of: 'bob' })));
  await bench.reaches(past, 'completed');
  const ahead = await bench.submit(
    planOf(until(at(3_600_000).replace('Z', '+00:00')), call('look', 'balance', { of: 'bob' })),
  );
  await bench.reaches(ahead, 'executing');
  bench.clock.advance(3_599_000);
  assert.equal(bench.status(ahead), 'executing');
  await eventually('the wait is over', () => {
    bench.clock.advance(1000);
    return bench.status(ahead) === 'completed';
  });
  for (const id of [past, ahead]) verifiedTwice(bench, id);
  const far = await bench.submit(planOf(until(at(31 * 24 * 3_600_000))));
  await bench.reaches(far, 'failed');
  assert.match(bench.rail.state('alice', far).error!.message, /node rest: until must be at .* at the latest/);
  for (const node of [{ until: at(1), seconds: 1 }, {}])
    await assert.rejects(bench.submit(planOf({ id: 'rest', kind: 'wait', ...node })), {
      message: /exactly one of seconds and until/,
    });
  await assert.rejects(bench.submit(planOf(until('tomorrow'))), { message: /plan\.until.*RFC 3339/ });
});

const allowAll = () => ({ effect: 'allow', rule: 'any', reason: 'any' }) as const;

test('a result is parsed once for all references of a plan', async (t) => {
  const reads = t.mock.method(StrictReader.prototype, 'document').mock;
  const documents = async (references: 1 | 3) => {
    const bench = createWorkbench(t);
    bench.decide = allowAll;
    const source =
      '{"deep":'.repeat(100) + JSON.stringify({ to: 'bob', amount: '1.00', currency: 'JPY' }) + '}'.repeat(100);
    bench.bank.misbehave = (tool) =>
      tool === 'bank/exchange' ? Promise.resolve(answered({}, source, source)) : undefined;
    const at = (name: string) => $ref(`${'/deep'.repeat(100)}/${name}`);
    const args = { amount: at('amount'), ...(references === 3 && { to: at('to'), currency: at('currency') }) };
    const sends = Array.from({ length: 20 }, (_, index) => ({ ...send(args), id: `send-${index}` }));
    const before = reads.callCount();
    await bench.reaches(await bench.submit(planOf(exchange, ...sends)), 'completed');
    return reads.callCount() - before;
  };
  const [few, many] = [await documents(1), await documents(3)];
  t.diagnostic(`documents read: ${few} with 20 references, ${many} with 60`);
  assert.equal(many, few);
  const before = reads.callCount();
  valuesAt(
    '{"a":[1,2]}',
    Array.from({ length: 256 }, (_, index) => `/a/${index}`),
  );
  assert.equal(reads.callCount() - before, 1);
});

test('the number of references of a plan and the size of their values are limited', async (t) => {
  const bench = createWorkbench(t);
  bench.decide = allowAll;
  const list = (length: number) => Array.from({ length }, () => $ref('/x'));
  await bench.submit(planOf(exchange, send({ amount: list(REFERENCES_MAX) })));
  await assert.rejects(bench.submit(planOf(exchange, send({ amount: list(REFERENCES_MAX + 1) }))), {
    code: 'invalid_request',
    message: 'plan must have at most 256 references ($ref); use several plans',
  });
  const long = 'x'.repeat(60_000);
  bench.bank.misbehave = (tool) =>
    tool === 'bank/exchange'
      ? Promise.resolve(answered({}, '{}', JSON.stringify({ long })))
      : Promise.resolve(answered({ ok: true }));
  const most = Math.floor(PLAN_RESOLVED_MAX / (long.length + 2));
  const plan = (calls: number) =>
    planOf(exchange, ...Array.from({ length: calls }, (_, n) => call(`note-${n}`, 'note', { text: $ref('/long') })));
  const fits = await bench.submit(plan(most));
  await bench.reaches(fits, 'completed');
  const tooMuch = await bench.submit(plan(most + 1));
  await bench.reaches(tooMuch, 'failed');
  const { error } = bench.rail.state('alice', tooMuch);
  assert.equal(error?.code, 'unresolved_reference');
  assert.match(
    error.message,
    new RegExp(`^node note-${most}: the values of the plan's references have more than 1048576`),
  );
  for (const id of [fits, tooMuch]) verifiedTwice(bench, id);
});
