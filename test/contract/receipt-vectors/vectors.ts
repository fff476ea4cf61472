/** The checked-in vectors: receipts as text, and the expected verdict of a verifier for each. */

import type { ReceiptEntry } from '../../../src/executor/receipt/bodies.ts';
import type { BrokenProperty } from '../../../src/executor/receipt/verify.ts';
import { canonicalJson } from '../../../src/wire/canonical-json.ts';
import type { PasskeySignature } from '../../../src/wire/passkey.ts';
import { FALSE_STORIES } from './false-stories.ts';
import { passkeyTransfer, TRUE_PASSKEY_STORIES } from './passkey-stories.ts';
import { KNOWN, knownPasskeyAnswer } from './passkeys.ts';
import { KEY, OTHER_KEY, receiptOf, seal } from './sealing.ts';
import {
  APPROVER_KEY,
  accepted,
  asked,
  compiled,
  decided,
  INTENT_ID,
  PAY,
  payNode,
  sha256,
  signedAnswer,
  signedTransfer,
  started,
  TRUE_STORIES,
  transfer,
  tried,
} from './stories.ts';

export type Expected =
  | { readonly valid: true; readonly envelopes: number; readonly ended: boolean; readonly last_kind: string }
  /** `seq` 0 is the receipt around the envelopes; text that cannot be read at all has none. */
  | {
      readonly valid: false;
      readonly seq?: number;
      readonly property: BrokenProperty | 'unreadable';
      readonly rule?: string;
    };

export type Vector = {
  readonly name: string;
  /** The file's text. */
  readonly text: string;
  /** The expected signer key, when the verifier gets one. */
  readonly key?: string;
  /** The expected approvers, when the verifier gets them. */
  readonly approver?: string;
  readonly expected: Expected;
};

const ENDINGS = new Set(['intent.completed', 'intent.failed', 'intent.cancelled', 'intent.unknown']);

const listsOf = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as unknown;
const inAnswer = (text: string) => `{"ok":true,"data":${text}}`;

/** The maximum depth: the receipt, its list, an envelope and a body are around the lists. */
function deepest(): string {
  const { kind, body } = TRUE_STORIES['not-at-its-end']![0]!;
  return canonicalJson(receiptOf(seal([{ kind, body: { ...body, more: listsOf(252) } } as never])));
}

function nestedVectors(): Vector[] {
  const expected = { valid: true, envelopes: 1, ended: false, last_kind: 'intent.accepted' } as const;
  return [
    { name: 'nested-256-deep', text: deepest(), expected },
    { name: 'nested-256-deep-in-an-answer', text: inAnswer(deepest()), expected },
  ];
}

function trueVectors(): Vector[] {
  const stories = Object.entries({ ...TRUE_STORIES, ...TRUE_PASSKEY_STORIES }).map(([name, entries]): Vector => {
    const ended = entries.some(({ kind }) => ENDINGS.has(kind));
    const expected = { valid: true, envelopes: entries.length, ended, last_kind: entries.at(-1)!.kind } as const;
    return { name, text: canonicalJson(receiptOf(seal(entries))), expected };
  });
  const plain = stories[0]!;
  const receipt = JSON.parse(plain.text) as object;
  return [
    ...stories,
    { ...plain, name: 'in-the-answer-of-an-executor', text: JSON.stringify({ ok: true, data: receipt }) },
    {
      ...plain,
      name: 'written-in-another-way',
      text: `${JSON.stringify(receipt, null, 2).replace('alice', '\\u0061lice')}\n`,
    },
    { ...plain, name: 'behind-a-byte-order-mark', text: `\ufeff${plain.text}` },
    ...nestedVectors(),
    { ...plain, name: 'expected-by-its-key', key: KEY.publicKeyHex },
    { ...plain, name: 'expected-by-its-key-id', key: KEY.keyId },
    ...approvedVectors(),
  ];
}

/** Receipts whose approver the reader has named. */
function approvedVectors(): Vector[] {
  const named = (name: string, entries: readonly ReceiptEntry[], approver = APPROVER_KEY): Vector => {
    const ended = entries.some(({ kind }) => ENDINGS.has(kind));
    const expected = { valid: true, envelopes: entries.length, ended, last_kind: entries.at(-1)!.kind } as const;
    return { name, text: canonicalJson(receiptOf(seal(entries))), approver, expected };
  };
  return [
    named('approved-by-whom-the-reader-named', signedTransfer),
    named('approved-with-the-passkey-that-the-reader-named', passkeyTransfer, KNOWN.approver),
    named('nothing-started-whoever-was-named', TRUE_STORIES['answered-no-by-a-key']!),
    named('only-looked-whoever-was-named', TRUE_STORIES['read-repeated-after-a-crash']!),
  ];
}

/** Valid receipts that do not match the reader's expectations. */
function notApproved(): Vector[] {
  const vector = (name: string, entries: readonly ReceiptEntry[], approver = APPROVER_KEY): Vector => {
    const seq = entries.findIndex(({ kind }) => kind === 'call.started') + 1;
    const expected = { valid: false, seq, property: 'approver' } as const;
    return { name, text: canonicalJson(receiptOf(seal(entries))), approver, expected };
  };
  return [
    vector('approved-by-another-than-the-reader-named', signedTransfer, KEY.publicKeyHex),
    vector('approved-with-a-passkey-and-the-reader-named-a-key', passkeyTransfer),
    vector('approved-by-no-key-and-the-reader-named-one', transfer),
    vector('allowed-by-a-rule-and-the-reader-named-one', TRUE_STORIES['allowed-by-a-rule-since-answers-are-signed']!),
  ];
}

function falseVectors(): Vector[] {
  return Object.entries(FALSE_STORIES).map(([name, { entries, seq, rule }]) => ({
    name,
    text: canonicalJson(receiptOf(seal(entries))),
    expected: { valid: false, seq, property: 'story', rule },
  }));
}

type Json = Record<string, unknown>;

/** A transfer's receipt with one change. */
function changed(
  name: string,
  seq: number,
  property: BrokenProperty,
  change: (envelopes: Json[], receipt: Json) => void,
): Vector {
  const receipt = JSON.parse(JSON.stringify(receiptOf(seal(transfer)))) as Json;
  change(receipt.envelopes as Json[], receipt);
  return { name, text: JSON.stringify(receipt), expected: { valid: false, seq, property } };
}

const bodyOf = (envelopes: Json[], at: number) => envelopes[at]!.body as Json;

function brokenChains(): Vector[] {
  const foreign = seal(transfer, OTHER_KEY) as unknown as Json[];
  const other = seal([compiled(payNode), ...transfer.slice(1)]) as unknown as Json[];
  return [
    changed('removed', 4, 'seq', (all) => void all.splice(3, 1)),
    changed('first-removed', 1, 'seq', (all) => void all.shift()),
    changed('swapped', 4, 'seq', (all) => void all.splice(3, 2, all[4]!, all[3]!)),
    changed('repeated', 5, 'seq', (all) => void all.splice(4, 0, all[3]!)),
    changed('removed-and-renumbered', 4, 'prev_hash', (all) => {
      all.splice(3, 1);
      for (const [at, envelope] of all.entries()) envelope.seq = at + 1;
    }),
    changed('from-another-chain', 2, 'prev_hash', (all) => void all.splice(1, 1, other[1]!)),
    changed('by-another-key', 3, 'key_id', (all) => void all.splice(2, 1, foreign[2]!)),
    changed('all-by-another-key', 1, 'key_id', (all) => void all.splice(0, all.length, ...foreign)),
    changed('by-another-key-in-the-name-of-this-one', 1, 'signature', (all) => {
      all[0]!.signature = foreign[0]!.signature;
    }),
    changed('key-exchanged', 1, 'key_id', (_all, receipt) => {
      receipt.public_key = OTHER_KEY.publicKeyHex;
    }),
    changed('signature-changed', 6, 'signature', (all) => {
      all[5]!.signature = String(all[5]!.signature).replace(/^./, (digit) => (digit === '0' ? '1' : '0'));
    }),
    changed('signature-of-the-one-before', 6, 'signature', (all) => {
      all[5]!.signature = all[4]!.signature;
    }),
    changed('amount-changed', 2, 'signature', (all) => {
      const { plan } = bodyOf(all, 1).intent as { plan: { args: Json } };
      plan.args.amount = '900.00';
    }),
    changed('kind-changed', 7, 'signature', (all) => {
      all[6]!.kind = 'gate.refused';
    }),
    changed('no-made-yes', 7, 'signature', (all) => {
      bodyOf(all, 6).approved = false;
    }),
    changed('member-added-to-a-body', 9, 'signature', (all) => {
      bodyOf(all, 8).note = '';
    }),
    changed('member-that-languages-take-for-something-else', 9, 'signature', (all) => {
      Object.defineProperty(bodyOf(all, 8), '__proto__', { value: 1, enumerable: true });
    }),
    changed('member-removed-from-a-body', 9, 'signature', (all) => {
      delete bodyOf(all, 8).text;
    }),
    changed('beginning-changed', 1, 'signature', (all) => {
      bodyOf(all, 0).prose = 'Pay 900.00 EUR from alice-main to bob.';
    }),
    changed('does-not-begin-with-nothing', 1, 'prev_hash', (all) => {
      all[0]!.prev_hash = '1'.repeat(64);
    }),
    changed('without-envelopes', 0, 'malformed', (all) => void all.splice(0)),
    changed('another-format', 0, 'malformed', (_all, receipt) => {
      receipt.format = 'reveille-receipt/2';
    }),
    changed('member-added-to-the-receipt', 0, 'malformed', (_all, receipt) => {
      receipt.note = '';
    }),
    changed('public-key-too-short', 0, 'malformed', (_all, receipt) => {
      receipt.public_key = KEY.publicKeyHex.slice(1);
    }),
    changed('receipt-that-could-be-an-answer', 0, 'malformed', (_all, receipt) => {
      Object.assign(receipt, { ok: true, data: receiptOf(seal(transfer)) });
    }),
    changed('numbered-from-zero', 1, 'malformed', (all) => {
      all[0]!.seq = 0;
    }),
    changed('number-as-text', 3, 'malformed', (all) => {
      all[2]!.seq = '3';
    }),
    changed('kind-that-nobody-knows', 3, 'malformed', (all) => {
      all[2]!.kind = 'call.wished';
    }),
    changed('member-added-to-an-envelope', 3, 'malformed', (all) => {
      all[2]!.note = '';
    }),
    changed('member-removed-from-an-envelope', 3, 'malformed', (all) => {
      delete all[2]!.prev_hash;
    }),
    changed('hash-in-capitals', 3, 'malformed', (all) => {
      all[2]!.key_id = KEY.keyId.toUpperCase();
    }),
    { ...changed('expected-another-key', 0, 'key', () => {}), key: OTHER_KEY.publicKeyHex },
  ];
}

const intentWith = (change: object) => compiled(payNode, { intent: { verb: 'transfer', plan: payNode, ...change } });

/** Signed by the executor's key, and false. */
function wrongInside(): Vector[] {
  const wrong = sha256('something else');
  const vector = (name: string, seq: number, property: BrokenProperty, entry: unknown): Vector => {
    const entries = [...transfer.slice(0, seq - 1), entry as (typeof transfer)[number]];
    return { name, text: canonicalJson(receiptOf(seal(entries))), expected: { valid: false, seq, property } };
  };
  const knownPasskey = (knownPasskeyAnswer() as { body: { passkey: PasskeySignature } }).body.passkey;
  const read = { tool: 'ledger/balance', args: {}, args_sha256: wrong, is_error: false };
  return [
    vector('wrong-hash-of-arguments', 3, 'digest', decided({ call: { ...PAY, args_sha256: wrong } })),
    vector('wrong-hash-of-a-call', 3, 'digest', decided({ call: { ...PAY, call_sha256: wrong } })),
    vector('wrong-hash-at-the-start', 8, 'digest', started({ call: { ...PAY, call_sha256: wrong } })),
    vector('wrong-hash-of-a-dry-run', 4, 'digest', tried({ args_sha256: wrong })),
    vector('wrong-hash-of-what-was-shown', 5, 'digest', asked({ displayed_sha256: wrong })),
    vector('wrong-hash-of-a-read', 2, 'digest', compiled(payNode, { reads: [read] })),
    vector('instant-without-an-offset', 3, 'malformed', decided({ at: '2026-06-15T08:10:00' })),
    vector('instant-that-does-not-exist', 3, 'malformed', decided({ at: '2026-02-30T08:10:00.000Z' })),
    vector('instant-with-a-small-t', 3, 'malformed', decided({ at: '2026-06-15t08:10:03.000Z' })),
    vector('instant-with-a-small-z', 3, 'malformed', decided({ at: '2026-06-15T08:10:03.000z' })),
    vector('instant-without-milliseconds', 3, 'malformed', decided({ at: '2026-06-15T08:10:03Z' })),
    vector('instant-with-microseconds', 3, 'malformed', decided({ at: '2026-06-15T08:10:03.000000Z' })),
    vector('instant-with-an-offset', 3, 'malformed', decided({ at: '2026-06-15T08:10:03.000+00:00' })),
    vector('expiry-without-milliseconds', 5, 'malformed', asked({ expires_at: '2026-06-16T08:10:00Z' })),
    vector('deadline-of-ten-digits', 2, 'malformed', intentWith({ deadline: '2026-06-15T10:10:31.0000000000+02:00' })),
    vector(
      'no-hash-of-a-tool-that-languages-overlook',
      2,
      'malformed',
      compiled(payNode, { tools: JSON.parse('{"__proto__":1}') as never }),
    ),
    vector('verb-of-101-emoji', 2, 'malformed', intentWith({ verb: '😀'.repeat(101) })),
    vector('effect-that-nobody-knows', 3, 'malformed', decided({ effect: 'maybe' as 'ask' })),
    vector('question-without-its-text', 5, 'malformed', {
      kind: 'gate.asked',
      body: { ...asked().body, displayed: undefined },
    }),
    vector('rules-that-nobody-knows', 1, 'malformed', accepted({ rules: 3 as 2 })),
    vector('rules-as-text', 1, 'malformed', accepted({ rules: '2' as never })),
    vector('rules-of-before-by-name', 1, 'malformed', accepted({ rules: 1 as never })),
    vector('approver-in-capitals', 7, 'malformed', signedAnswer({ approver: APPROVER_KEY.toUpperCase() })),
    vector('signature-of-an-approver-too-short', 7, 'malformed', signedAnswer({ signature: 'ab' })),
    vector(
      'expiry-of-an-answer-without-milliseconds',
      7,
      'malformed',
      signedAnswer({ expires_at: '2026-06-15T08:20:30Z' }),
    ),
    ...Object.entries({
      'passkey-that-is-no-object': 'c0ffee',
      'passkey-without-client-data': { ...knownPasskey, client_data: undefined },
      'passkey-with-client-data-as-an-object': { ...knownPasskey, client_data: {} },
      'passkey-with-an-empty-signature': { ...knownPasskey, signature: '' },
      'passkey-with-half-a-byte': { ...knownPasskey, credential_id: 'c0ffe' },
      'passkey-with-a-key-in-capitals': { ...knownPasskey, public_key: knownPasskey.public_key.toUpperCase() },
    }).map(([name, passkey]) =>
      vector(name, 7, 'malformed', knownPasskeyAnswer({ passkey: JSON.parse(JSON.stringify(passkey)) } as never)),
    ),
    vector('plan-of-another-shape', 2, 'malformed', compiled({ id: 'x', kind: 'loop' } as never)),
  ];
}

function unreadable(): Vector[] {
  const whole = canonicalJson(receiptOf(seal(transfer)));
  const text = (name: string, broken: string): Vector => ({
    name,
    text: broken,
    expected: { valid: false, property: 'unreadable' },
  });
  const deeper = deepest().replace('[[[', '[[[[').replace(']]]', ']]]]');
  const named = `"intent_id":"${INTENT_ID}"`;
  return [
    text('cut-off', whole.slice(0, -100)),
    text('cut-off-in-a-string', whole.slice(0, whole.indexOf('alice') + 2)),
    text('no-json', 'this is no receipt'),
    text('member-twice', whole.replace(named, `"intent_id":"intent-2",${named}`)),
    text('number-that-is-rounded', whole.replace('"seq":1,', '"seq":1.00000000000000000001,')),
    text('half-a-character', whole.replace('Pay 100', 'Pay \\ud800 100')),
    text('nested-too-deep', '['.repeat(300) + ']'.repeat(300)),
    text('nested-257-deep', deeper),
    text('nested-257-deep-in-an-answer', inAnswer(deeper)),
    text('two-byte-order-marks', `\ufeff\ufeff${whole}`),
    text('garbage-behind', `${whole}}`),
    { ...text('another-value', '[]'), expected: { valid: false, seq: 0, property: 'malformed' } },
    {
      ...text('an-error', '{"ok":false,"error":{"code":"not_found","message":"no such intent","retryable":false}}'),
      expected: { valid: false, seq: 0, property: 'malformed' },
    },
  ];
}

/** File name to vectors. */
export function allVectors(): Readonly<Record<string, readonly Vector[]>> {
  return {
    'valid.jsonl': trueVectors(),
    'broken.jsonl': [...brokenChains(), ...wrongInside(), ...falseVectors(), ...notApproved(), ...unreadable()],
  };
}

/** A file's text: a vector in each line. */
export const linesOf = (vectors: readonly Vector[]) => vectors.map((vector) => `${JSON.stringify(vector)}\n`).join('');
