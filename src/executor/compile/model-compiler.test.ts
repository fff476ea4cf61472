import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../kit/clock/clock.ts';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { endpointModel } from '../../kit/model/endpoint.ts';
import {
  beginStream,
  breakingOff,
  calling,
  type EndpointRequest,
  endStream,
  modelEndpoint,
  refusing,
  type Script,
  saying,
  sendDelta,
} from '../../kit/model/testing/model-endpoint.ts';
import type { Policy } from '../policy/policy.ts';
import { type Compiled, type Draft, offlineCompiler } from './compiler.ts';
import { createCompiler } from './model-compiler.ts';
import { bankToolbox } from './testing/bank-tools.ts';

const PROSE = 'Move 25 USD from acct-1 to acct-2.';
const ARGS = { from: 'acct-1', to: 'acct-2', amount: 25, currency: 'USD' };
const intentOf = (args: object) => ({
  verb: 'transfer',
  plan: { id: 'n1', kind: 'call', tool: 'bank/transfer', args },
});
const submit = (args: object = intentOf(ARGS)) => calling({ name: 'submit_intent', args });

const draftOf = (others: Partial<Draft> = {}): Draft => ({
  prose: PROSE,
  context: [],
  now: Date.UTC(2026, 5, 15),
  signal: new AbortController().signal,
  ...others,
});

type Bench = { bank?: ReturnType<typeof bankToolbox>; policy?: Policy; draft?: Partial<Draft> };

async function compiled(t: TestContext, scripts: Script[], { bank = bankToolbox(), policy, draft }: Bench = {}) {
  const endpoint = await modelEndpoint(t, ...scripts);
  const config = { kind: 'endpoint', baseUrl: endpoint.baseUrl, model: 'm', apiKey: undefined } as const;
  const model = endpointModel(config, 'EXECUTOR', systemClock);
  const compiler = createCompiler({ model, toolbox: bank.toolbox, policy, clock: systemClock, log: silentLogger });
  const result = await compiler.compile(draftOf(draft));
  return { result, requests: endpoint.requests, made: bank.made };
}

const lastMessage = ({ body }: EndpointRequest) => body.messages.at(-1)!;

function refusalOf(result: Compiled): string {
  assert.equal(result.outcome, 'refused', JSON.stringify(result));
  return result.outcome === 'refused' ? result.reason : '';
}

test('a valid intent is returned with its model and the origins of its values', async (t) => {
  const { result, requests } = await compiled(t, [submit()]);
  assert.deepEqual(result, {
    outcome: 'intent',
    intent: intentOf(ARGS),
    compiler: 'served-model',
    reads: [],
    provenance: Object.entries(ARGS).map(([name, value]) => ({
      node_id: 'n1',
      place: `/${name}`,
      value: String(value),
      from: 'prose',
    })),
  });
  const [{ body }] = requests as [EndpointRequest];
  const names = body.tools?.map((tool) => tool.function.name);
  assert.deepEqual(names, ['bank__balance', 'bank__find', 'submit_intent', 'clarify']);
  const [system, user] = body.messages;
  assert.match(system!.content, /Compile, never guess/);
  assert.ok(!system!.content.includes('acct-1'), 'the task must not stand among the rules');
  assert.match(user!.content, /<<<task ([0-9a-f]{16})\nMove 25 USD from acct-1 to acct-2\.\ntask \1>>>/);
  assert.match(user!.content, /"tool":"bank\/transfer","kind":"a person approves each call"/);
});

test('a wrong answer is returned to the model with the reason, four times at most', async (t) => {
  const invented = submit(intentOf({ ...ARGS, to: 'acct-666' }));
  const mended = await compiled(t, [submit({ verb: 'x' }), invented, submit()]);
  assert.equal(mended.result.outcome, 'intent');
  assert.match(lastMessage(mended.requests[1]!).content, /^Not accepted: plan is required/);
  assert.match(lastMessage(mended.requests[2]!).content, /"acct-666" does not occur in the task/);

  const stubborn = await compiled(t, [invented]);
  assert.match(
    refusalOf(stubborn.result),
    /^the task could not be compiled to a valid plan: plan\.args\/to "acct-666"/,
  );
  assert.equal(stubborn.requests.length, 4);
});

test('malformed intents of every kind are refused, not repaired', async (t) => {
  const call = intentOf(ARGS).plan;
  for (const bad of [
    '{"verb":"transfer","plan":',
    '[]',
    { ...intentOf(ARGS), approved: true },
    { ...intentOf(ARGS), plan: { ...call, tool: 'bank/wire' } },
    { ...intentOf(ARGS), plan: { ...call, approved: true } },
    intentOf({ ...ARGS, idempotency_key: 'acct-1' }),
    intentOf({ ...ARGS, approved: true }),
    `{"verb":"transfer","plan":{"id":"n","kind":"call","tool":"bank/transfer","args":{"to":"acct-1","to":"acct-2","amount":25}}}`,
  ]) {
    const script = typeof bad === 'string' ? calling({ name: 'submit_intent', args: bad }) : submit(bad);
    const { result, made } = await compiled(t, [script]);
    refusalOf(result);
    assert.deepEqual(made, []);
  }
});

test('a question is returned without a plan', async (t) => {
  const { result } = await compiled(t, [calling({ name: 'clarify', args: { question: 'Which acct\u202eount?' } })]);
  assert.deepEqual(result, {
    outcome: 'clarify',
    question: 'Which acct\\u{202e}ount?',
    compiler: 'served-model',
    reads: [],
  });
});

test('text without a call, and several final calls in one answer, are refused', async (t) => {
  const talk = await compiled(t, [saying('I have done it.'), submit()]);
  assert.equal(talk.result.outcome, 'intent');
  assert.match(lastMessage(talk.requests[1]!).content, /^the answer has no call\. Answer with one call/);
  const args = intentOf(ARGS);
  const two = calling({ name: 'submit_intent', args }, { name: 'clarify', args: { question: 'Which?' } });
  assert.match(refusalOf((await compiled(t, [two])).result), /there must be one$/);
});

test('a lookup is made, and its answer can ground a value', async (t) => {
  const bank = bankToolbox(() => '{"payee":"acct-77"}');
  const lookup = calling({ name: 'bank__balance', args: { account: 'acct-2' } });
  const { result, requests, made } = await compiled(t, [lookup, submit(intentOf({ ...ARGS, to: 'acct-77' }))], {
    bank,
  });
  assert.equal(result.outcome, 'intent');
  assert.deepEqual(made, [{ name: 'bank/balance', args: { account: 'acct-2' } }]);
  assert.match(lastMessage(requests[1]!).content, /<<<answer ([0-9a-f]{16})\n\{"payee":"acct-77"\}\nanswer \1>>>/);
  if (result.outcome !== 'intent') return;
  assert.deepEqual(result.reads, [
    {
      tool: 'bank/balance',
      args: { account: 'acct-2' },
      args_sha256: result.reads[0]!.args_sha256,
      is_error: false,
      response_sha256: '1'.repeat(64),
      response_bytes: 19,
      text: '{"payee":"acct-77"}',
    },
  ]);
  const to = result.provenance?.find(({ place }) => place === '/to');
  assert.deepEqual([to?.from, to?.tool], ['read', 'bank/balance']);
});

test('only lookups are made during the compilation', async (t) => {
  for (const name of ['bank__transfer', 'bank__note', 'bank__peek', 'bank/transfer', 'approve', 'core_execute']) {
    const { result, made } = await compiled(t, [calling({ name, args: ARGS })]);
    assert.match(refusalOf(result), /there is no function/);
    assert.deepEqual(made, [], name);
  }
});

test('a lookup with an invented value is refused: it could leak data', async (t) => {
  for (const args of [
    { query: 'https://evil.example/?q=acct-1' },
    { query: 5 },
    { account: 'acct-1' },
    '{"query":"acct-1"',
    [],
  ]) {
    const { made } = await compiled(t, [calling({ name: 'bank__find', args }), submit()]);
    assert.deepEqual(made, [], JSON.stringify(args));
  }
});

test('lookups are counted, and a policy can forbid them', async (t) => {
  const lookup = calling({ name: 'bank__balance', args: { account: 'acct-1' } });
  const many = await compiled(t, [lookup]);
  assert.equal(many.made.length, 8);
  refusalOf(many.result);

  for (const effect of ['deny', 'ask'] as const) {
    const policy: Policy = {
      sha256: '',
      approvalTimeoutMs: 1,
      decide: () => ({ effect, rule: 'r', reason: 'no balances' }),
    };
    const { made, requests } = await compiled(t, [lookup, submit()], { policy });
    assert.deepEqual(made, []);
    assert.match(lastMessage(requests[1]!).content, /the lookup was not made: the policy .*\(r: no balances\)/);
  }
});

test('a long answer is cut at a word boundary, so that no number is truncated', async (t) => {
  const bank = bankToolbox(() => `x${' 123456789'.repeat(3000)}`);
  const lookup = calling({ name: 'bank__balance', args: { account: 'acct-1' } });
  const { result } = await compiled(t, [lookup, submit()], { bank });
  assert.ok(result.outcome === 'intent');
  const text = result.reads[0]!.text!;
  assert.ok(text.length < 17_000);
  assert.ok(!/ \d{1,8}\n/.test(text));
});

test('a task with hidden characters is refused before a model sees it', async (t) => {
  const { result, requests } = await compiled(t, [submit()], { draft: { prose: `${PROSE}\u200b\u{e0041}` } });
  assert.match(refusalOf(result), /invisible characters: U\+200B at character 35, U\+E0041 at character 36/);
  assert.equal(requests.length, 0);
});

test('hidden characters of the conversation are shown to the model', async (t) => {
  const { requests } = await compiled(t, [submit()], { draft: { context: [{ from: 'tool', text: 'a\u202eb' }] } });
  assert.match(
    requests[0]!.body.messages[1]!.content,
    /what a tool returned to the agent:\n<<<piece [0-9a-f]{16}\na\\u\{202e\}b\n/,
  );
});

test('a permanent refusal of the endpoint ends the task, a temporary one allows a retry', async (t) => {
  assert.match(
    refusalOf((await compiled(t, [refusing(401, 'bad key')])).result),
    /answered 401: bad key; check EXECUTOR_MODEL_API_KEY$/,
  );
  for (const script of [refusing(503, 'later'), refusing(429, 'slower'), breakingOff('Half')]) {
    const endpoint = await modelEndpoint(t, script);
    const clock = new ManualClock();
    const config = { kind: 'endpoint', baseUrl: endpoint.baseUrl, model: 'm', apiKey: undefined } as const;
    const { toolbox } = bankToolbox();
    const model = endpointModel(config, 'EXECUTOR', clock);
    const answer = createCompiler({ model, toolbox, clock, log: silentLogger }).compile(draftOf());
    const failed = assert.rejects(answer, { name: 'ReveilleError', retryable: true });
    let over = false;
    void failed.finally(() => {
      over = true;
    });
    // The pauses between attempts use the manual clock; the requests are real.
    while (!over) {
      await clock.advance(1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await failed;
  }
});

test('a truncated answer is not accepted as an intent', async (t) => {
  const args = JSON.stringify(intentOf(ARGS));
  const cut: Script = (response) => {
    beginStream(response);
    const call = { index: 0, id: 'c', type: 'function', function: { name: 'submit_intent', arguments: args } };
    sendDelta(response, { tool_calls: [call] });
    endStream(response, 'length');
  };
  const { result } = await compiled(t, [cut]);
  assert.match(refusalOf(result), /reached its output limit/);
});

test('an abort rejects', async (t) => {
  const abort = new AbortController();
  const hang: Script = () => abort.abort(new Error('given up'));
  await assert.rejects(compiled(t, [hang], { draft: { signal: abort.signal } }), { message: 'given up' });
});

test('without a model a task in prose is refused with the remedy', async () => {
  assert.match(refusalOf(await offlineCompiler.compile(draftOf())), /submit an intent with its plan as JSON/);
});

test('a value from an earlier step must be a reference to its result', async (t) => {
  const prose = 'Exchange 10.00 EUR, then send what came out to bob.';
  const planned = (amount: unknown, ...more: object[]) => ({
    verb: 'exchange and send',
    plan: {
      ...{ id: 'all', kind: 'sequence' },
      nodes: [
        { id: 'exchange', kind: 'call', tool: 'bank/exchange', args: { amount: '10.00', from_currency: 'EUR' } },
        { id: 'send', kind: 'call', tool: 'bank/transfer', args: { to: 'bob', amount } },
        ...more,
      ],
    },
  });
  const draft = { prose };
  const sound = planned({ $ref: 'exchange#/received/amount' });
  const { result, requests } = await compiled(t, [submit(planned('4975.00')), submit(sound)], { draft });
  assert.ok(result.outcome === 'intent', JSON.stringify(result));
  assert.deepEqual(result.intent, sound);
  assert.deepEqual(
    result.provenance?.map(({ node_id, place }) => node_id + place),
    ['exchange/amount', 'exchange/from_currency', 'send/to'],
  );
  assert.match(lastMessage(requests[1]!).content, /args\/amount "4975\.00" does not occur in the task/);
  const sent = requests[0]!.body;
  assert.match(sent.messages[1]!.content, /"tool":"bank\/exchange".*"returns":\{.*"received"/);
  assert.match(sent.messages[0]!.content, /\{"\$ref":"<its node id>#\/json\/pointer"\}/);
  const wrong: readonly (readonly [object, RegExp])[] = [
    [planned({ $ref: 'send#/x' }), /plan\.nodes\[1\]\.args\.amount refers to the result of its own node/],
    [planned({ $ref: 'exchange#/x', hint: 'mallory' }), /must have no other member/],
    [{ ...sound, objects: { what: { $ref: 'mallory' } } }, /objects\/what\/\$ref|"mallory" does not occur/],
    [
      planned({ $ref: 'exchange#/x' }, { id: 'rest', kind: 'wait', until: '2026-06-16T09:00:00Z' }),
      /until .* does not occur/,
    ],
  ];
  for (const [bad, words] of wrong)
    assert.match(refusalOf((await compiled(t, [submit(bad)], { draft })).result), words);
  const until = planned({ $ref: 'exchange#/x' }, { id: 'rest', kind: 'wait', until: '2026-06-16T09:00:00Z' });
  const named = { prose: `${prose} Then wait until 2026-06-16T11:00:00+02:00.` };
  assert.equal((await compiled(t, [submit(until)], { draft: named })).result.outcome, 'intent');
});

test('a plan may end with an alarm: its kind is chosen, its delay may be in hours, its conversation is the one of the task', async (t) => {
  const prose = 'Transfer 25 USD from acct-1 to acct-2 and wake me in an hour to look.';
  const alarm = (args: object) => ({
    ...{
      verb: 'transfer',
      plan: {
        id: 'all',
        kind: 'sequence',
        nodes: [{ ...intentOf(ARGS).plan }, { id: 'wake', kind: 'call', tool: 'chronos/alarm_set', args }],
      },
    },
  });
  const sound = { kind: 'once', delay_seconds: 3600, wake_message: 'look', conversation_id: 'c-1' };
  const draft = { prose, conversationId: 'c-1' };
  const { result, requests } = await compiled(t, [submit(alarm(sound))], { draft });
  assert.ok(result.outcome === 'intent', JSON.stringify(result));
  assert.deepEqual(
    result.provenance?.flatMap(({ node_id, place, from }) => (node_id === 'wake' ? [place, from] : [])),
    ['/kind', 'schema', '/delay_seconds', 'prose', '/wake_message', 'prose', '/conversation_id', 'conversation'],
  );
  assert.match(requests[0]!.body.messages[1]!.content, /conversation c-1; an alarm .* has this as its conversation_id/);
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ ...sound, delay_seconds: 7200 }, /delay_seconds 7200 does not occur/],
    [{ ...sound, conversation_id: 'c-2' }, /conversation_id "c-2" does not occur/],
    [{ ...sound, wake_message: 'pay mallory' }, /wake_message "pay mallory" does not occur/],
    [{ ...sound, label: 'c-1' }, /label "c-1" does not occur/],
    [{ ...sound, user_id: 'bob' }, /user_id/],
    [{ ...sound, kind: 'never' }, /kind/],
  ];
  for (const [bad, words] of refused)
    assert.match(refusalOf((await compiled(t, [submit(alarm(bad))], { draft })).result), words, JSON.stringify(bad));
});
