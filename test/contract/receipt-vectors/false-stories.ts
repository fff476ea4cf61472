/** Impossible stories with valid signatures: the rule that each breaks, and the envelope. */

import type { ReceiptEntry, ResolvedValue } from '../../../src/executor/receipt/bodies.ts';
import type { InvariantRule } from '../../../src/executor/receipt/invariants.ts';
import type { PlanNode } from '../../../src/wire/intent.ts';
import { FALSE_PASSKEY_STORIES } from './passkey-stories.ts';
import * as tell from './stories.ts';
import { INTENT_ID, nodes, payNode, reading, sequence, TRANSFER, waiting } from './stories.ts';

export type FalseStory = {
  readonly entries: readonly ReceiptEntry[];
  /** The envelope that contradicts those before it. */
  readonly seq: number;
  readonly rule: InvariantRule;
};

const { accepted, compiled, decided, asked, answered, started, finished, transfer } = tell;

const upTo = (kinds: number) =>
  [accepted(), compiled(payNode), decided(), asked(), answered(), started()].slice(0, kinds);

/** The last entry is the contradiction. */
function wrong(rule: InvariantRule, ...entries: readonly ReceiptEntry[]): FalseStory {
  return { entries, seq: entries.length, rule };
}

const dearer = tell.bound('ledger/transfer', { ...TRANSFER, amount: '1000.00' });
const elsewhere = tell.bound('ledger/transfer', { ...TRANSFER, to: 'mallory' });
const otherTool = tell.bound('ledger/empty', TRANSFER);
const redefined = tell.bound('ledger/transfer', TRANSFER, tell.sha256('redefined'));
const submitted = { verb: 'transfer', plan: payNode };
const resting = { verb: 'rest', plan: nodes.rest };
const asNatural = { surface: 'natural', effect: 'allow' } as const;

/** A question that follows the rules of signed answers. */
const signedUpTo = [tell.acceptedSigned(), compiled(payNode), decided(), asked()];
const { signedAnswer } = tell;
const without = (...names: string[]) => {
  const { kind, body } = signedAnswer();
  const kept = Object.entries(body).filter(([name]) => !names.includes(name));
  return { kind, body: Object.fromEntries(kept) } as unknown as ReceiptEntry;
};
const changedAfter = (change: object) => {
  const { kind, body } = signedAnswer();
  return { kind, body: { ...body, ...change } } as ReceiptEntry;
};
const NEWER = 'ledger/transfer, asked anew';
const askedAnew = asked({ at: tell.second(32), displayed: NEWER, displayed_sha256: tell.sha256(NEWER) });

/** The story of a reference with a change, up to the entry that shows it. */
const told = (change: Parameters<typeof tell.exchanging>[0], entries: number) =>
  tell.exchanging(change).slice(0, entries);
const [first] = tell.REFERENCES as [(typeof tell.REFERENCES)[number]];
const late = tell.refNode;
const { BOUGHT } = tell;
const [amount, total] = tell.RESOLVED as [ResolvedValue, ResolvedValue];
const dearerParts = { to: 'bob', amount: '4975.00', parts: [{ total: 49750 }] };
/** One reference, and its claimed value. */
const at = (pointer: string, json = '"4975.00"') => ({
  plan: sequence(tell.exchangeNode, { ...late, args: { to: { $ref: `exchange#${pointer}` } } } as PlanNode),
  references: [{ node_id: 'send', place: '/to', from: 'exchange', pointer }],
  resolved: [{ place: '/to', ref: `exchange#${pointer}`, json }],
  send: tell.bound('ledger/transfer', { to: JSON.parse(json) as unknown }),
});

export const FALSE_STORIES: Readonly<Record<string, FalseStory>> = {
  'reference-that-the-plan-does-not-have': wrong(
    'reference',
    ...told({ references: [{ ...first, pointer: '/received' }] }, 2),
  ),
  'reference-in-another-place': wrong('reference', ...told({ references: [{ ...first, place: '/to' }] }, 2)),
  'reference-to-the-arguments-as-a-whole': wrong('reference', ...told({ references: [{ ...first, place: '' }] }, 2)),
  'reference-told-twice': wrong('reference', ...told({ references: [first, first] }, 2)),
  'reference-to-a-later-step': wrong('reference', ...told({ plan: sequence(late, tell.exchangeNode) }, 2)),
  'reference-to-a-step-beside': wrong(
    'reference',
    ...told({ plan: { ...tell.EXCHANGED, kind: 'parallel' } as typeof tell.EXCHANGED }, 2),
  ),
  'value-with-another-digit': wrong('reference', ...told({ resolved: [{ ...amount, json: '"4975.0"' }, total] }, 6)),
  'value-spelt-otherwise': wrong('reference', ...told({ resolved: [amount, { ...total, json: '4975' }] }, 6)),
  'value-left-out': wrong('reference', ...told({ resolved: [amount] }, 6)),
  'value-of-no-reference': wrong('reference', ...told({ resolved: [amount, total, { ...total, place: '/to' }] }, 6)),
  'value-sent-otherwise': wrong('plan', ...told({ send: tell.bound('ledger/transfer', dearerParts) }, 6)),
  'value-of-a-result-without-it': wrong('reference', ...told({ bought: '{"received":{"amount":4975.00}}' }, 6)),
  'value-of-a-result-with-a-member-twice': wrong(
    'reference',
    ...told({ bought: BOUGHT.replace('{', '{"received":{"amount":1,"a/b~c":["x","1"]},') }, 6),
  ),
  'value-at-an-index-with-a-zero': wrong('reference', ...told(at('/received/a~1b~0c/01'), 6)),
  'value-behind-the-end-of-a-list': wrong('reference', ...told(at('/received/a~1b~0c/-'), 6)),
  'value-that-a-double-rounds': wrong('reference', ...told(at('/id', '9007199254740993'), 6)),
  'value-of-a-call-that-failed': wrong('reference', ...told({ status: 'failed' }, 6)),
  'value-before-there-is-a-result': wrong('reference', ...told({}, 4), tell.exchanging()[5]!),
  'waited-until-another-instant': wrong(
    'wait',
    ...[accepted(), compiled({ id: 'rest', kind: 'wait', until: '2026-06-15T08:11:39Z' }), waiting.started],
  ),
  'begins-in-the-middle': wrong('begin', decided()),
  'accepted-twice': wrong('begin', accepted(), accepted()),
  'of-another-intent': wrong('intent', accepted({ intent_id: 'intent-2' })),
  'prose-and-json': wrong('task', accepted({ intent: JSON.stringify(submitted) })),
  'compiled-twice': wrong('compiled', accepted(), compiled(payNode), compiled(payNode)),
  'compiled-after-asking-back': wrong('compiled', ...tell.TRUE_STORIES['asked-back']!, compiled(payNode)),
  'one-id-for-two-nodes': wrong('compiled', accepted(), compiled(sequence(payNode, payNode))),
  'not-what-was-submitted': wrong(
    'compiled',
    accepted({ prose: undefined, intent: JSON.stringify(submitted) } as never),
    compiled({ id: 'pay', kind: 'call', tool: dearer.tool, args: dearer.args }, { compiler: 'none' }),
  ),
  'submitted-with-a-member-twice': wrong(
    'compiled',
    tell.submittedAs(JSON.stringify(submitted).replace('{', '{"verb":"transfer",')),
    compiled(payNode, { compiler: 'none' }),
  ),
  'submitted-with-a-number-that-is-rounded': wrong(
    'compiled',
    tell.submittedAs(JSON.stringify(resting).replace(':60', ':60.00000000000000000001')),
    compiled(nodes.rest, { compiler: 'none', intent: resting }),
  ),
  'submitted-with-something-behind': wrong(
    'compiled',
    tell.submittedAs(`${JSON.stringify(resting)} {}`),
    compiled(nodes.rest, { compiler: 'none', intent: resting }),
  ),
  'submitted-with-a-member-that-languages-overlook': wrong(
    'compiled',
    tell.submittedAs(JSON.stringify(submitted).replace('"from"', '"__proto__":1,"from"')),
    compiled(payNode, { compiler: 'none' }),
  ),
  'call-before-it-was-compiled': wrong('node', accepted(), decided()),
  'call-that-was-not-planned': wrong('node', ...upTo(2), decided({ node_id: 'more' })),
  'call-with-other-arguments': wrong('plan', ...upTo(2), decided({ call: dearer })),
  'call-of-another-tool': wrong('plan', ...upTo(2), decided({ call: otherTool })),
  'other-arguments-at-the-start': wrong('plan', ...upTo(5), started({ call: elsewhere })),
  'idempotency-key-of-another-call': wrong('plan', ...upTo(5), started({ idempotency_key: `${INTENT_ID}.other` })),
  'second-step-first': wrong(
    'order',
    ...[accepted(), compiled(sequence(nodes.look, nodes.pay)), decided(), asked(), answered(), started()],
  ),
  'second-step-after-a-failure': wrong(
    'order',
    ...[accepted(), compiled(sequence(nodes.look, nodes.pay)), reading.decided, reading.started],
    tell.entry('call.finished', { at: tell.second(21), node_id: 'look', status: 'failed' }),
    ...[decided(), asked(), answered(), started()],
  ),
  'wait-out-of-turn': wrong('order', accepted(), compiled(sequence(nodes.pay, nodes.rest)), waiting.started),
  'start-without-a-decision': wrong('decision', ...upTo(2), started()),
  'start-that-was-denied': wrong('decision', ...upTo(2), decided({ effect: 'deny' }), started()),
  'start-under-another-definition': wrong('decision', ...upTo(5), started({ call: redefined })),
  'start-as-another-class': wrong('decision', ...upTo(5), started({ surface: 'natural' })),
  'denied-after-the-approval': wrong('decision', ...upTo(5), decided({ effect: 'deny' }), started()),
  'asked-without-reason': wrong('question', ...upTo(2), decided({ effect: 'allow' }), asked()),
  'asked-about-another-call': wrong('question', ...upTo(3), asked({ call_sha256: elsewhere.call_sha256 })),
  'answer-without-a-question': wrong('answer', ...upTo(3), answered()),
  'answer-about-another-call': wrong('answer', ...upTo(4), answered({ call_sha256: elsewhere.call_sha256 })),
  'two-answers': wrong('answer', ...upTo(5), answered()),
  'answer-of-another-user': wrong('answer', ...upTo(4), answered({ by: 'mallory' })),
  'approval-that-came-too-late': wrong('answer', ...upTo(4), answered({ at: tell.second(86_401) })),
  'answer-after-expiry': wrong('answer', ...upTo(4), tell.expired(), answered()),
  'expiry-after-the-answer': wrong('answer', ...upTo(5), tell.expired()),
  'approval-without-a-signature': wrong('approver', ...signedUpTo, answered()),
  'no-without-a-signature': wrong('approver', ...signedUpTo, answered({ approved: false })),
  'approval-without-its-key': wrong('approver', ...signedUpTo, without('approver')),
  'approval-without-its-question': wrong('approver', ...signedUpTo, without('displayed_sha256')),
  'approval-without-its-expiry': wrong('approver', ...signedUpTo, without('expires_at')),
  'half-a-signature-in-an-older-receipt': wrong('approver', ...upTo(4), without('signature')),
  'wrong-signature-in-an-older-receipt': wrong('approver', ...upTo(4), changedAfter({ approved: false })),
  'approval-that-another-key-signed': wrong(
    'approver',
    ...signedUpTo,
    changedAfter({ approver: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a' }),
  ),
  'signed-no-made-yes': wrong('approver', ...signedUpTo, signedAnswer({}, { approved: false })),
  'signed-yes-made-no': wrong('approver', ...signedUpTo, changedAfter({ approved: false })),
  'signed-for-another-node': wrong('approver', ...signedUpTo, signedAnswer({}, { node_id: 'other' })),
  'signed-for-another-intent': wrong('approver', ...signedUpTo, signedAnswer({}, { intent_id: 'intent-2' })),
  'signed-for-another-call': wrong('approver', ...signedUpTo, signedAnswer({}, { call_sha256: dearer.call_sha256 })),
  'signed-for-another-question': wrong(
    'approver',
    ...signedUpTo,
    signedAnswer({ displayed_sha256: tell.sha256('something harmless') }),
  ),
  'signed-for-another-question-and-dressed-up': wrong(
    'approver',
    ...signedUpTo,
    signedAnswer({}, { displayed_sha256: tell.sha256('something harmless') }),
  ),
  'words-added-after-signing': wrong('approver', ...signedUpTo, changedAfter({ answer: 'and hurry' })),
  'words-taken-away-after-signing': wrong('approver', ...signedUpTo, signedAnswer({}, { answer: 'only this once' })),
  'signed-for-longer-than-it-says': wrong('approver', ...signedUpTo, changedAfter({ expires_at: tell.second(631) })),
  'signature-expired-when-it-was-taken': wrong(
    'approver',
    ...signedUpTo,
    signedAnswer({ expires_at: tell.second(30) }),
  ),
  'signature-of-a-day-before': wrong('approver', ...signedUpTo, signedAnswer({ expires_at: tell.second(-86_370) })),
  'signature-for-more-than-a-day': wrong(
    'approver',
    ...signedUpTo,
    signedAnswer({ expires_at: '2026-06-16T08:10:30.001Z' }),
  ),
  'approval-of-the-question-before': wrong('approver', ...signedUpTo, askedAnew, signedAnswer({ at: tell.second(40) })),
  'signed-no-and-started': wrong('consent', ...signedUpTo, signedAnswer({ approved: false }), started()),
  'never-answered-and-started': wrong('consent', ...signedUpTo, started()),
  'start-without-an-answer': wrong('consent', ...upTo(4), started()),
  'start-after-a-no': wrong('consent', ...upTo(4), answered({ approved: false }), started()),
  'start-after-expiry': wrong('consent', ...upTo(4), tell.expired(), started()),
  'approval-of-another-definition': wrong(
    'consent',
    ...upTo(5),
    decided({ call: redefined }),
    started({ call: redefined }),
  ),
  'asked-anew-and-not-answered': wrong('consent', ...upTo(5), asked(), started()),
  'transfer-twice': wrong('once', ...upTo(6), finished(), decided(), asked(), answered(), started()),
  'transfer-repeated-after-a-crash': wrong('once', ...upTo(6), decided(), asked(), answered(), started()),
  'read-repeated-after-it-succeeded': wrong(
    'once',
    ...[accepted(), compiled(nodes.look), reading.decided, reading.started, reading.finished, reading.started],
  ),
  'transfer-repeated-as-a-read': wrong(
    'once',
    ...[...upTo(6), finished({ status: 'unknown' }), decided(asNatural), started({ surface: 'natural' })],
  ),
  'transfer-repeated-as-a-read-after-a-crash': wrong(
    'once',
    ...[...upTo(6), decided(asNatural), started({ surface: 'natural' })],
  ),
  'failed-call-repeated-as-a-read': wrong(
    'once',
    ...[...upTo(6), finished({ status: 'failed' }), decided(asNatural), started({ surface: 'natural' })],
  ),
  'one-consent-for-two-calls': wrong(
    'decision',
    ...upTo(6),
    finished({ status: 'not_run', reason: 'the server was not there' }),
    started(),
  ),
  'result-without-a-call': wrong('started', ...upTo(5), finished()),
  'two-results': wrong('started', ...upTo(6), finished(), finished()),
  'reconciled-without-a-call': wrong('started', ...upTo(5), tell.reconciled()),
  'reconciled-against-its-result': wrong('started', ...upTo(6), finished({ status: 'failed' }), tell.reconciled()),
  'read-back-without-a-call': wrong('started', ...upTo(5), tell.readBack()),
  'start-after-the-deadline': wrong(
    'deadline',
    accepted(),
    compiled(payNode, { intent: { verb: 'transfer', plan: payNode, deadline: '2026-06-15T10:10:30+02:00' } }),
    ...[decided(), asked(), answered(), started()],
  ),
  'wait-twice': wrong('wait', accepted(), compiled(nodes.rest), waiting.started, waiting.started),
  'wait-over-before-it-began': wrong('wait', accepted(), compiled(nodes.rest), waiting.finished),
  'wait-that-was-not-planned': wrong('node', accepted(), compiled(payNode), waiting.started),
  'call-after-the-end': wrong('end', ...upTo(5), tell.cancelled(), started()),
  'two-ends': wrong('end', ...transfer, tell.failed()),
  'unknown-made-good-without-a-look': wrong('end', ...upTo(6), tell.unknown(), tell.failed()),
  'completed-with-nothing-done': wrong('outcome', ...upTo(5), tell.completed()),
  'completed-without-a-plan': wrong('outcome', accepted(), tell.completed()),
  'completed-with-a-step-left-out': wrong(
    'outcome',
    ...[accepted(), compiled(sequence(nodes.pay, nodes.rest)), decided(), asked(), answered(), started(), finished()],
    tell.completed(),
  ),
  'failed-though-nobody-knows': wrong('outcome', ...upTo(6), tell.failed('failed', 'it did not work')),
  'cancelled-though-nobody-knows': wrong('outcome', ...upTo(6), finished({ status: 'unknown' }), tell.cancelled()),
  'unknown-of-another-call': wrong('outcome', ...upTo(6), tell.unknown(['other'])),
  'unknown-though-all-is-known': wrong('outcome', ...upTo(6), finished(), tell.unknown()),
  'completed-after-a-look-in-vain': wrong(
    'outcome',
    ...[...upTo(6), tell.unknown(), tell.reconciled({ status: 'unknown' }), tell.completed()],
  ),
  'failed-though-nobody-knows-of-what-was-a-transfer-first': wrong('outcome', ...tell.judgedAnew, tell.failed()),
  'unknown-without-what-was-a-transfer-first': wrong('outcome', ...tell.judgedAnew, tell.unknown([])),
  'completed-with-a-wait-that-was-reconciled': wrong(
    'outcome',
    ...[accepted(), compiled(nodes.rest), tell.broken(2), tell.unknown([])],
    ...[tell.reconciled({ node_id: 'rest' }), tell.completed()],
  ),
  'broken-somewhere-else': wrong('journal', ...upTo(6), tell.broken(4)),
  'goes-on-after-a-broken-journal': wrong('journal', ...upTo(5), tell.broken(5), started()),
  ...FALSE_PASSKEY_STORIES,
};
