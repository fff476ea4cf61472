/** Stories as an executor would write them, for receipts in tests: fixed keys, fixed instants, fixed texts. */
import { createHash } from 'node:crypto';
import type { BoundCall, ReceiptBodies, ReceiptEntry } from '../../../src/executor/receipt/bodies.ts';
import { AgentKey } from '../../../src/kit/identity/keys.ts';
import { type AnswerStatement, answerText } from '../../../src/wire/approver.ts';
import { canonicalJson } from '../../../src/wire/canonical-json.ts';
import type { PlanNode } from '../../../src/wire/intent.ts';
import type { ReceiptKind } from '../../../src/wire/intent-receipt.ts';

export const INTENT_ID = 'intent-1';
export const USER = 'alice';

type Args = Readonly<Record<string, unknown>>;

export const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const MANIFEST = sha256('the manifest');
const POLICY = sha256('the policy');
export const DEFINITION = sha256('the definition of the tool');
const OTHER_DEFINITION = sha256('another definition of the tool');

export const TRANSFER: Args = {
  from: 'alice-main',
  to: 'bob',
  amount: '100.00',
  currency: 'EUR',
  key: `${INTENT_ID}.pay`,
};

/** An instant of the story, in seconds since its beginning. */
export const second = (seconds: number) => new Date(Date.UTC(2026, 5, 15, 8, 10, seconds)).toISOString();

export const entry = <Kind extends ReceiptKind>(kind: Kind, body: ReceiptBodies[Kind]): ReceiptEntry =>
  ({ kind, body }) as ReceiptEntry;

export function bound(tool: string, args: Args, definition = DEFINITION): BoundCall {
  const argsSha256 = sha256(canonicalJson(args));
  const callSha256 = sha256(canonicalJson({ tool, args }));
  return { tool, args, call_sha256: callSha256, args_sha256: argsSha256, definition_sha256: definition };
}

export const PAY = bound('ledger/transfer', TRANSFER);

export const payNode: PlanNode = { id: 'pay', kind: 'call', tool: 'ledger/transfer', args: TRANSFER };
const readNode: PlanNode = { id: 'look', kind: 'call', tool: 'ledger/balance', args: { account: 'alice-main' } };
const waitNode: PlanNode = { id: 'rest', kind: 'wait', seconds: 60 };

export const accepted = (change: Partial<ReceiptBodies['intent.accepted']> = {}) =>
  entry('intent.accepted', {
    at: second(0),
    intent_id: INTENT_ID,
    principal: { user: USER, conversation_id: 'c-1', origin: 'person' },
    prose: 'Pay 100.00 EUR from alice-main to bob.',
    manifest_sha256: MANIFEST,
    policy_sha256: POLICY,
    ...change,
  });

export const compiled = (plan: PlanNode, change: Partial<ReceiptBodies['intent.compiled']> = {}) =>
  entry('intent.compiled', {
    at: second(2),
    intent: { verb: 'transfer', plan },
    compiler: 'a-model',
    reads: [],
    tools: { 'ledger/transfer': DEFINITION },
    ...change,
  });

export const decided = (change: Partial<ReceiptBodies['call.decided']> = {}) =>
  entry('call.decided', {
    at: second(3),
    node_id: 'pay',
    call: PAY,
    surface: 'escalate',
    effect: 'ask',
    rule: 'default',
    reason: 'no rule speaks of this tool, and it needs consent',
    policy_sha256: POLICY,
    amount: { value: '100.00', currency: 'EUR' },
    ...change,
  });

const SHOWN = 'ledger/transfer\namount: 100.00 EUR\nfrom: alice-main\nto: bob';
export const SHOWN_SHA256 = sha256(SHOWN);

export const asked = (change: Partial<ReceiptBodies['gate.asked']> = {}) =>
  entry('gate.asked', {
    at: second(4),
    node_id: 'pay',
    call_sha256: PAY.call_sha256,
    displayed: SHOWN,
    displayed_sha256: sha256(SHOWN),
    expires_at: second(86_400),
    ...change,
  });

export const answered = (change: Partial<ReceiptBodies['gate.answered']> = {}) =>
  entry('gate.answered', {
    at: second(30),
    node_id: 'pay',
    call_sha256: PAY.call_sha256,
    approved: true,
    by: USER,
    ...change,
  });

/** The seed of the third test of RFC 8032 §7.1. */
const APPROVER = new AgentKey('c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7');
export const APPROVER_KEY = APPROVER.publicKeyHex;

type SignedBody = ReceiptBodies['gate.answered'] & { displayed_sha256: string; expires_at: string };

/**
 * An answer that an approver has signed.
 *
 * @param change members of the envelope, which are signed as they are
 * @param signed the signed value instead
 */
export function signedAnswer(change: Partial<SignedBody> = {}, signed: Partial<AnswerStatement> = {}): ReceiptEntry {
  const body: SignedBody = {
    at: second(30),
    node_id: 'pay',
    call_sha256: PAY.call_sha256,
    approved: true,
    by: USER,
    displayed_sha256: sha256(SHOWN),
    approver: APPROVER_KEY,
    name: 'alice at her desk',
    expires_at: second(630),
    ...change,
  };
  const signature = APPROVER.sign(answerText({ ...body, intent_id: INTENT_ID, ...signed }));
  return entry('gate.answered', { ...body, signature, ...change });
}

export const acceptedSigned = (change: Partial<ReceiptBodies['intent.accepted']> = {}) =>
  accepted({ rules: 2, ...change });

export const expired = () =>
  entry('gate.expired', { at: second(86_401), node_id: 'pay', call_sha256: PAY.call_sha256 });

export const refused = (change: Partial<ReceiptBodies['gate.refused']> = {}) =>
  entry('gate.refused', {
    at: second(29),
    node_id: 'pay',
    by: 'mallory',
    reason: 'the intent is of another user',
    ...change,
  });

export const started = (change: Partial<ReceiptBodies['call.started']> = {}) =>
  entry('call.started', {
    at: second(31),
    node_id: 'pay',
    call: PAY,
    surface: 'escalate',
    idempotency_key: `${INTENT_ID}.pay`,
    ...change,
  });

export const finished = (change: Partial<ReceiptBodies['call.finished']> = {}) =>
  entry('call.finished', {
    at: second(32),
    node_id: 'pay',
    status: 'succeeded',
    response_sha256: sha256('{"id":"t-77"}'),
    response_bytes: 13,
    text: 'done',
    references: { '/id': 't-77' },
    result: { id: 't-77' },
    ...change,
  });

export const readBack = (change: Partial<ReceiptBodies['call.read_back']> = {}) =>
  entry('call.read_back', {
    at: second(33),
    node_id: 'pay',
    tool: 'ledger/show',
    args_sha256: sha256('{"id":"t-77"}'),
    status: 'succeeded',
    response_sha256: sha256('{"state":"booked"}'),
    response_bytes: 18,
    text: 'booked',
    ...change,
  });

export const reconciled = (change: Partial<ReceiptBodies['call.reconciled']> = {}) =>
  entry('call.reconciled', {
    at: second(100),
    node_id: 'pay',
    tool: 'ledger/status',
    args_sha256: sha256(`{"key":"${INTENT_ID}.pay"}`),
    status: 'succeeded',
    reason: 'ledger/status says "booked"',
    response_sha256: sha256('{"state":"booked"}'),
    response_bytes: 18,
    ...change,
  });

export const tried = (change: Partial<ReceiptBodies['call.tried']> = {}) => {
  const args = { from: 'alice-main', to: 'bob', amount: '100.00' };
  return entry('call.tried', {
    at: second(3),
    node_id: 'pay',
    tool: 'ledger/simulate',
    args,
    args_sha256: sha256(canonicalJson(args)),
    status: 'succeeded',
    text: 'alice-main: 900.00 left',
    response_sha256: sha256('{"left":"900.00"}'),
    response_bytes: 17,
    ...change,
  });
};

export const completed = () => entry('intent.completed', { at: second(120), result: { pay: { id: 't-77' } } });
export const failed = (code = 'denied', reason = 'the transfer was denied') =>
  entry('intent.failed', { at: second(120), code, reason });
export const cancelled = () => entry('intent.cancelled', { at: second(120), by: USER, reason: 'no longer wanted' });
export const unknown = (nodes: readonly string[] = ['pay']) =>
  entry('intent.unknown', {
    at: second(90),
    reason: 'nobody can say whether the transfer was made; look at ledger/status',
    nodes,
  });
export const broken = (goodSeq: number) =>
  entry('journal.broken', { at: second(80), good_seq: goodSeq, reason: 'envelope 4 does not hold (signature)' });

const LOOK = bound('ledger/balance', { account: 'alice-main' });

/** A read: no gate, and it may be repeated. */
export const reading = {
  decided: decided({ node_id: 'look', call: LOOK, surface: 'natural', effect: 'allow', rule: 'default' }),
  started: entry('call.started', { at: second(20), node_id: 'look', call: LOOK, surface: 'natural' }),
  finished: entry('call.finished', { at: second(21), node_id: 'look', status: 'succeeded', text: '1000.00' }),
};

const waitStarted = entry('wait.started', { at: second(40), node_id: 'rest', until: second(100) });
const waitFinished = entry('wait.finished', { at: second(100), node_id: 'rest' });
export const waiting = { started: waitStarted, finished: waitFinished };

export const sequence = (...nodes: PlanNode[]): PlanNode => ({ id: 'all', kind: 'sequence', nodes });
export const nodes = { pay: payNode, look: readNode, rest: waitNode };

/** From the task to a transfer that was approved, executed and read back. */
export const transfer: readonly ReceiptEntry[] = [
  accepted(),
  compiled(payNode),
  decided(),
  tried(),
  asked(),
  refused(),
  answered(),
  started(),
  finished(),
  readBack(),
  completed(),
];

/** A call that was begun as `escalate` and never executed, and then classified as `natural`. */
export const judgedAnew: readonly ReceiptEntry[] = [
  ...[accepted(), compiled(payNode), decided(), asked(), answered(), started()],
  finished({ status: 'not_run', reason: 'the server was not there' }),
  decided({ at: second(50), surface: 'natural', effect: 'allow', reason: 'it only reads' }),
  started({ at: second(51), surface: 'natural' }),
];

export const submittedAs = (intent: string) => accepted({ prose: undefined, intent } as never);

const jsonIntent = { verb: 'transfer', plan: { ...payNode, args: { ...TRANSFER, key: undefined } } };

/** The same in the form that an executor writes since answers are signed. */
export const signedTransfer: readonly ReceiptEntry[] = transfer.map((one) => {
  if (one.kind === 'intent.accepted') return acceptedSigned();
  return one.kind === 'gate.answered' ? signedAnswer() : one;
});

export const BOUGHT = '{"received":{"amount":4975.00,"currency":"JPY","a/b~c":["x","4975.00"]},"id":9007199254740993}';
export const refNode: PlanNode = {
  ...{ id: 'send', kind: 'call', tool: 'ledger/transfer' },
  args: {
    to: 'bob',
    amount: { $ref: 'exchange#/received/a~1b~0c/1' },
    parts: [{ total: { $ref: 'exchange#/received/amount' } }],
  },
};
export const exchangeNode: PlanNode = {
  id: 'exchange',
  kind: 'call',
  tool: 'bank/exchange',
  args: { amount: '10.00' },
};
export const EXCHANGED = sequence(exchangeNode, refNode);
export const REFERENCES = [
  { node_id: 'send', place: '/amount', from: 'exchange', pointer: '/received/a~1b~0c/1' },
  { node_id: 'send', place: '/parts/0/total', from: 'exchange', pointer: '/received/amount' },
];
const EXCHANGE = bound('bank/exchange', { amount: '10.00' });
const SEND = bound('ledger/transfer', { to: 'bob', amount: '4975.00', parts: [{ total: 4975 }] });
export const RESOLVED = [
  { place: '/amount', ref: 'exchange#/received/a~1b~0c/1', json: '"4975.00"' },
  { place: '/parts/0/total', ref: 'exchange#/received/amount', json: '4975.00' },
];

const judgedNatural = { surface: 'natural', effect: 'allow' } as const;

/** An exchange, and a transfer of its result: each part can be changed. */
export function exchanging(
  changes: {
    references?: ReceiptBodies['intent.compiled']['references'];
    plan?: PlanNode;
    bought?: string;
    resolved?: ReceiptBodies['call.decided']['resolved'];
    send?: BoundCall;
    status?: 'succeeded' | 'failed';
  } = {},
): readonly ReceiptEntry[] {
  const { references = REFERENCES, plan = EXCHANGED, bought = BOUGHT, send = SEND, status = 'succeeded' } = changes;
  const { resolved = RESOLVED } = changes;
  const of = (node_id: string, call: BoundCall) => ({ node_id, call, surface: 'natural' as const });
  return [
    acceptedSigned(),
    compiled(plan, { references }),
    decided({ ...of('exchange', EXCHANGE), ...judgedNatural }),
    entry('call.started', { at: second(20), ...of('exchange', EXCHANGE) }),
    entry('call.finished', { at: second(21), node_id: 'exchange', status, result_text: bought }),
    decided({ ...of('send', send), ...judgedNatural, resolved }),
    entry('call.started', { at: second(31), ...of('send', send) }),
    entry('call.finished', { at: second(32), node_id: 'send', status: 'succeeded' }),
    completed(),
  ];
}

const refData = { $ref: 'exchange#/received/amount' };
const ASKS = bound('bank/exchange', { schema: refData });

const untilNode: PlanNode = { id: 'rest', kind: 'wait', until: '2026-06-15T10:11:40.0009+02:00' };

const ANEW = `${SHOWN}\nasked anew`;

/** Stories that an executor may write; name to entries. */
export const TRUE_STORIES: Readonly<Record<string, readonly ReceiptEntry[]>> = {
  'transfer-approved': transfer,
  'transfer-approved-by-a-key': signedTransfer,
  'approved-with-words': signedTransfer.map((one) =>
    one.kind === 'gate.answered' ? signedAnswer({ answer: 'Größe “½” 😀\n\u0007 go on' }) : one,
  ),
  'approved-by-a-key-without-a-name': signedTransfer.map((one) =>
    one.kind === 'gate.answered' ? signedAnswer({ name: undefined } as never) : one,
  ),
  'approved-at-the-last-moment': signedTransfer.map((one) =>
    one.kind === 'gate.answered' ? signedAnswer({ expires_at: '2026-06-15T08:10:30.001Z' }) : one,
  ),
  'approved-for-24-hours': signedTransfer.map((one) =>
    one.kind === 'gate.answered' ? signedAnswer({ expires_at: second(30 + 86_400) }) : one,
  ),
  'answered-no-by-a-key': [
    ...[acceptedSigned(), compiled(payNode), decided(), asked(), signedAnswer({ approved: false }), failed()],
  ],
  'approved-by-a-key-in-an-older-receipt': transfer.map((one) => (one.kind === 'gate.answered' ? signedAnswer() : one)),
  'allowed-by-a-rule-since-answers-are-signed': [
    ...[acceptedSigned(), compiled(payNode)],
    decided({ effect: 'allow', rule: 'small amounts', reason: 'at most 200.00 EUR' }),
    ...[started(), finished(), completed()],
  ],
  'asked-anew-and-approved-by-a-key': [
    ...[acceptedSigned(), compiled(payNode), decided(), asked(), signedAnswer()],
    decided({ at: second(31), call: bound('ledger/transfer', TRANSFER, OTHER_DEFINITION) }),
    asked({ at: second(32), displayed: ANEW, displayed_sha256: sha256(ANEW) }),
    signedAnswer({ at: second(40), displayed_sha256: sha256(ANEW) }),
    started({ at: second(41), call: bound('ledger/transfer', TRANSFER, OTHER_DEFINITION) }),
    ...[finished({ at: second(42) }), completed()],
  ],
  'answer-refused-from-another-key': [
    ...[acceptedSigned(), compiled(payNode), decided(), asked()],
    refused({ by: USER, approver: sha256('a key that nobody knows'), reason: 'the key does not stand' }),
    ...[signedAnswer(), started(), finished(), completed()],
  ],
  'not-at-its-end': transfer.slice(0, 5),
  'values-of-an-earlier-result': exchanging(),
  'reference-to-a-result-that-holds-one': exchanging({
    plan: sequence(exchangeNode, { ...refNode, args: { to: { $ref: 'exchange#' } } } as PlanNode),
    references: [{ node_id: 'send', place: '/to', from: 'exchange', pointer: '' }],
    bought: '{"$ref":"exchange#/received/amount"}',
    resolved: [{ place: '/to', ref: 'exchange#', json: '{"$ref":"exchange#/received/amount"}' }],
    send: bound('ledger/transfer', { to: refData }),
  }),
  'reference-among-odd-names': exchanging({
    plan: sequence(exchangeNode, {
      ...refNode,
      args: { 'a/b': { '~': { $ref: 'exchange#/__proto__/~1/ü€' } } },
    } as PlanNode),
    references: [{ node_id: 'send', place: '/a~1b/~0', from: 'exchange', pointer: '/__proto__/~1/ü€' }],
    bought: ' {"__proto__" : {"/":{"\\u00fc€": "😀" }}} ',
    resolved: [{ place: '/a~1b/~0', ref: 'exchange#/__proto__/~1/ü€', json: '"😀"' }],
    send: bound('ledger/transfer', { 'a/b': { '~': '😀' } }),
  }),
  'reference-as-data-in-an-older-receipt': [
    accepted(),
    compiled({ id: 'exchange', kind: 'call', tool: 'bank/exchange', args: { schema: refData } }),
    decided({ node_id: 'exchange', call: ASKS, ...judgedNatural }),
    entry('call.started', { at: second(20), node_id: 'exchange', call: ASKS, surface: 'natural' }),
  ],
  'waited-until-an-instant': [accepted(), compiled(untilNode), waiting.started, waiting.finished, completed()],
  'submitted-as-json': [
    submittedAs(JSON.stringify(jsonIntent, null, 2)),
    compiled(payNode, { compiler: 'none' }),
    ...transfer.slice(2),
  ],
  'submitted-with-other-spellings': [
    submittedAs(
      '{"plan":{"args":{"n":1.50,"account":"\\u0061lice-main","e":1E+2},"tool":"ledger/balance","kind":"call","id":"look"},"verb":"look"}',
    ),
    compiled(
      { id: 'look', kind: 'call', tool: 'ledger/balance', args: { account: 'alice-main', n: 1.5, e: 100 } },
      {
        compiler: 'none',
        intent: {
          verb: 'look',
          plan: { id: 'look', kind: 'call', tool: 'ledger/balance', args: { account: 'alice-main', n: 1.5, e: 100 } },
        },
      },
    ),
  ],
  'completed-without-a-result': [...transfer.slice(0, -1), entry('intent.completed', { at: second(120) })],
  'judged-as-natural-after-it-was-not-made': [...judgedAnew, finished({ at: second(52) }), completed()],
  'begun-as-escalate-and-then-lost-as-natural': [...judgedAnew, unknown()],
  'verb-of-100-emoji': [accepted(), compiled(payNode, { intent: { verb: '😀'.repeat(100), plan: payNode } })],
  'deadline-of-nine-digits-with-an-offset': [
    accepted(),
    compiled(payNode, { intent: { verb: 'transfer', plan: payNode, deadline: '2026-06-15t10:10:31.000999999+02:00' } }),
    ...transfer.slice(2),
  ],
  'allowed-by-a-rule': [
    accepted(),
    compiled(payNode),
    decided({ effect: 'allow', rule: 'small amounts', reason: 'at most 200.00 EUR' }),
    started(),
    finished(),
    completed(),
  ],
  'answered-no': [accepted(), compiled(payNode), decided(), asked(), answered({ approved: false }), failed()],
  'question-expired': [
    accepted(),
    compiled(payNode),
    decided(),
    asked(),
    expired(),
    failed('expired', 'no answer came'),
  ],
  'denied-by-a-rule': [accepted(), compiled(payNode), decided({ effect: 'deny', rule: 'never bob' }), failed()],
  'late-answer-after-the-end': [
    ...[accepted(), compiled(payNode), decided(), asked(), expired(), failed('expired', 'no answer came')],
    refused({ by: USER, reason: 'the question has expired' }),
  ],
  'parked-by-an-alarm': [
    accepted({ principal: { user: USER, conversation_id: 'c-1', origin: 'chronos' } }),
    entry('intent.parked', { at: second(1), conversation_id: 'c-1' }),
    ...transfer.slice(1),
  ],
  'asked-back': [
    accepted({ prose: 'Pay bob.' }),
    entry('intent.clarify', { at: second(2), question: 'How much?', compiler: 'a-model', reads: [] }),
  ],
  'compiled-with-a-read': [
    accepted(),
    compiled(payNode, {
      reads: [
        {
          tool: 'ledger/balance',
          args: { account: 'alice-main' },
          args_sha256: LOOK.args_sha256,
          is_error: false,
          text: '1000.00',
        },
      ],
    }),
    ...transfer.slice(2),
  ],
  'read-then-transfer-then-wait': [
    accepted(),
    compiled(sequence(nodes.look, nodes.pay, nodes.rest)),
    ...[reading.decided, reading.started, reading.finished],
    ...[decided(), asked(), answered(), started(), finished()],
    ...[waiting.started, waiting.finished, completed()],
  ],
  'read-repeated-after-a-crash': [
    accepted(),
    compiled(nodes.look),
    ...[reading.decided, reading.started, reading.started, reading.finished, completed()],
  ],
  'in-parallel': [
    accepted(),
    compiled({ id: 'all', kind: 'parallel', nodes: [nodes.look, nodes.pay] }),
    ...[decided(), asked(), reading.decided, reading.started, answered(), started(), finished()],
    ...[reading.finished, completed()],
  ],
  'definition-changed-and-asked-anew': [
    ...[accepted(), compiled(payNode), decided(), asked(), answered()],
    decided({ at: second(31), call: bound('ledger/transfer', TRANSFER, OTHER_DEFINITION) }),
    asked({ at: second(32) }),
    answered({ at: second(40) }),
    started({ at: second(41), call: bound('ledger/transfer', TRANSFER, OTHER_DEFINITION) }),
    ...[finished({ at: second(42) }), completed()],
  ],
  'never-began-and-asked-anew': [
    ...[accepted(), compiled(payNode), decided(), asked(), answered(), started()],
    finished({
      status: 'not_run',
      reason: 'the server was not there',
      result: undefined,
      references: undefined,
    } as never),
    ...[
      decided({ at: second(50) }),
      asked({ at: second(50) }),
      answered({ at: second(60) }),
      started({ at: second(61) }),
    ],
    ...[finished({ at: second(62) }), completed()],
  ],
  'judged-again-before-the-call': [
    ...[accepted(), compiled(payNode), decided(), asked(), answered(), decided({ at: second(30) }), started()],
    ...[finished(), completed()],
  ],
  'call-failed': [
    ...[accepted(), compiled(payNode), decided(), asked(), answered(), started()],
    finished({ status: 'failed', reason: 'not enough money' }),
    failed('call_failed', 'ledger/transfer failed: not enough money'),
  ],
  'answer-lost': [accepted(), compiled(payNode), decided(), asked(), answered(), started(), unknown()],
  'answer-lost-then-found': [
    ...[accepted(), compiled(payNode), decided(), asked(), answered(), started(), unknown()],
    ...[
      reconciled({ status: 'unknown', reason: 'ledger/status did not answer' }),
      reconciled(),
      readBack(),
      completed(),
    ],
  ],
  'answer-found-before-the-end': [
    ...[accepted(), compiled(payNode), decided(), asked(), answered(), started()],
    ...[
      reconciled({ status: 'not_run', reason: 'ledger/status does not know it' }),
      failed('not_run', 'it was not made'),
    ],
  ],
  cancelled: [accepted(), compiled(payNode), decided(), asked(), cancelled()],
  'journal-broken-after-a-start': [
    accepted(),
    compiled(payNode),
    decided(),
    asked(),
    answered(),
    started(),
    broken(6),
    unknown(),
  ],
  'journal-broken-from-the-beginning': [broken(0), failed('journal', 'nothing of it could be read')],
  'journal-broken-after-the-end': [
    ...[accepted(), compiled(payNode), decided(), asked(), cancelled()],
    ...[broken(5), failed('journal', 'the journal was changed')],
  ],
  'journal-broken-after-the-end-and-nobody-knows': [
    ...[accepted(), compiled(payNode), decided(), asked(), cancelled()],
    ...[broken(5), unknown([])],
  ],
  'found-after-the-journal-was-broken': [
    ...[accepted(), compiled(payNode), decided(), broken(3), unknown([])],
    ...[reconciled({ node_id: 'lost' }), readBack({ node_id: 'lost' }), failed('interrupted', 'the rest was not done')],
  ],
  'settled-and-found-otherwise-after-the-journal-was-broken': [
    ...[accepted(), compiled(payNode), decided(), asked(), answered(), started(), finished({ status: 'failed' })],
    ...[broken(7), unknown([]), reconciled(), readBack(), completed()],
  ],
  'nothing-found-of-a-start-that-was-lost': [
    ...[accepted(), compiled(payNode), decided(), broken(3), unknown([])],
    ...[reconciled({ status: 'unknown' }), failed('interrupted', 'the rest was not done')],
  ],
  'names-and-numbers': [
    accepted({ prose: 'Größe “½” 😀 \u0007 \u2028 "\\ud800"' }),
    compiled({
      id: 'look',
      kind: 'call',
      tool: 'ledger/balance',
      args: { '\u20ac': 1e30, '\ufb33': 0.1, '😀': -1e-7, '1': [true, null, 1e21], ö: {}, '': '', A: 5e-324 },
    }),
  ],
};
