/** Stories of answers by passkeys: entries that an executor may write, and entries that a verifier must refuse. */
import type { ReceiptEntry } from '../../../src/executor/receipt/bodies.ts';
import type { FalseStory } from './false-stories.ts';
import { changedPasskeyAnswer, KNOWN, knownPasskeyAnswer, passkeyAnswer, RECORDED } from './passkeys.ts';
import * as tell from './stories.ts';

const { acceptedSigned, compiled, decided, asked, payNode, signedTransfer } = tell;

const before = [acceptedSigned(), compiled(payNode), decided(), asked()];
const approvedBy = (answer: ReceiptEntry): ReceiptEntry[] =>
  signedTransfer.map((one) => (one.kind === 'gate.answered' ? answer : one));

/** The transfer of the other stories, approved with a passkey. */
export const passkeyTransfer = approvedBy(knownPasskeyAnswer());

/** Name to entries. */
export const TRUE_PASSKEY_STORIES: Readonly<Record<string, readonly ReceiptEntry[]>> = {
  'approved-with-a-passkey': passkeyTransfer,
  'approved-with-a-passkey-of-a-browser-es256': approvedBy(passkeyAnswer(RECORDED.es256)),
  'approved-with-a-passkey-of-a-browser-eddsa': approvedBy(passkeyAnswer(RECORDED.eddsa)),
  'approved-with-a-passkey-of-a-browser-rs256': approvedBy(passkeyAnswer(RECORDED.rs256)),
  'answered-no-with-a-passkey': [...before, knownPasskeyAnswer({ approved: false }), tell.failed()],
  'approved-with-a-passkey-and-words': approvedBy(knownPasskeyAnswer({ answer: 'Größe “½” 😀' })),
  'approved-with-a-passkey-that-does-not-count': approvedBy(knownPasskeyAnswer({}, {}, { count: 0 })),
  'approved-with-a-passkey-that-is-kept-elsewhere-too': approvedBy(knownPasskeyAnswer({}, {}, { flags: 0x1d })),
  'approved-with-a-passkey-without-cross-origin': approvedBy(
    knownPasskeyAnswer({}, {}, { more: { crossOrigin: undefined, extra: [1, { a: null }] } }),
  ),
  'approved-with-a-passkey-and-client-data-in-other-words': approvedBy(
    knownPasskeyAnswer(
      {},
      {},
      { clientData: (text) => ` ${text.replace('webauthn', '\\u0077ebauthn').replace(',', '\n,\t"n":1.50,')}\r\n` },
    ),
  ),
  'approved-with-a-passkey-and-extensions': approvedBy(
    knownPasskeyAnswer({}, {}, { flags: 0x85, data: (bytes) => Buffer.concat([bytes, Buffer.from('a0', 'hex')]) }),
  ),
  'approved-with-a-passkey-in-an-older-receipt': tell.transfer.map((one) =>
    one.kind === 'gate.answered' ? knownPasskeyAnswer() : one,
  ),
};

const flipped = (hex: string, at: number) => hex.slice(0, at) + (hex.at(at) === '0' ? '1' : '0') + hex.slice(at + 1);
const odd = (what: Parameters<typeof knownPasskeyAnswer>[2]) => knownPasskeyAnswer({}, {}, what);
const other = RECORDED.es256;

/** A point of P-256 that is written by one of its coordinates: the same key, and another text of it. */
const compressed = (spki: string) =>
  `3039301306072a8648ce3d020106082a8648ce3d030107032200${/[02468ace]$/.test(spki) ? '02' : '03'}${spki.slice(54, 118)}`;

/** Name to an answer that breaks the rule `approver`. */
const FALSE_ANSWERS: Readonly<Record<string, ReceiptEntry>> = {
  'passkey-no-made-yes': knownPasskeyAnswer({}, { approved: false }),
  'passkey-for-another-node': knownPasskeyAnswer({}, { node_id: 'other' }),
  'passkey-for-another-intent': knownPasskeyAnswer({}, { intent_id: 'intent-2' }),
  'passkey-for-another-call': knownPasskeyAnswer({}, { call_sha256: tell.sha256('another call') }),
  'passkey-for-another-question': knownPasskeyAnswer({}, { displayed_sha256: tell.sha256('something harmless') }),
  'passkey-of-another-question': knownPasskeyAnswer({ displayed_sha256: tell.sha256('something harmless') }),
  'passkey-for-longer': knownPasskeyAnswer({}, { expires_at: tell.second(631) }),
  'passkey-expired': knownPasskeyAnswer({ expires_at: tell.second(30) }),
  'passkey-with-words-added': knownPasskeyAnswer({ answer: 'and hurry' }, { answer: undefined }),
  'passkey-with-a-wrong-challenge': odd({ challenge: 'A'.repeat(43) }),
  'passkey-with-a-padded-challenge': odd({ clientData: (text) => text.replace(/("challenge":"[^"]+)"/, '$1="') }),
  'passkey-at-another-origin': odd({ origin: 'http://localhost:3000' }),
  'passkey-at-an-origin-that-begins-alike': odd({ origin: 'http://localhost:8087.evil.example' }),
  'passkey-in-a-page-of-others': odd({ more: { crossOrigin: true } }),
  'passkey-below-another-page': odd({ more: { topOrigin: 'http://localhost:8087' } }),
  'passkey-that-was-made-and-not-asked': odd({ type: 'webauthn.create' }),
  'passkey-for-another-name': odd({ rpId: 'evil.example' }),
  'passkey-and-nobody-verified': odd({ flags: 0x01 }),
  'passkey-and-nobody-there': odd({ flags: 0x04 }),
  'passkey-in-a-page-of-nobody-knows': odd({ more: { crossOrigin: null } }),
  'passkey-data-too-short': odd({ data: (bytes) => bytes.subarray(0, 36) }),
  'passkey-data-changed': changedPasskeyAnswer(({ authenticator_data }) => ({
    authenticator_data: flipped(authenticator_data, 73),
  })),
  'passkey-client-data-with-a-blank': changedPasskeyAnswer(({ client_data }) => ({ client_data: `${client_data} ` })),
  'passkey-challenge-twice': odd({ clientData: (text) => text.replace('{', '{"challenge":"A",') }),
  'passkey-challenge-twice-by-an-escape': odd({ clientData: (text) => text.replace('{', '{"\\u0063hallenge":"A",') }),
  'passkey-client-data-with-a-rounded-number': odd({ clientData: (text) => text.replace('{', '{"n":1e400,') }),
  'passkey-client-data-behind-a-byte-order-mark': odd({ clientData: (text) => `\ufeff${text}` }),
  'passkey-client-data-and-more': odd({ clientData: (text) => `${text}{}` }),
  'passkey-client-data-that-is-no-json': odd({ clientData: () => 'challenge' }),
  'passkey-client-data-that-is-empty': odd({ clientData: () => '' }),
  'passkey-client-data-that-is-a-list': odd({ clientData: (text) => `[${text}]` }),
  'passkey-with-a-broken-signature': changedPasskeyAnswer(({ signature }) => ({ signature: flipped(signature, 20) })),
  'passkey-with-a-signature-cut-off': changedPasskeyAnswer(({ signature }) => ({ signature: signature.slice(0, -2) })),
  'passkey-with-another-signature': changedPasskeyAnswer(() => ({ signature: other.signature })),
  'passkey-with-another-key': changedPasskeyAnswer(() => ({ public_key: other.public_key })),
  'passkey-with-a-key-that-is-none': passkeyAnswer({ ...RECORDED.eddsa, public_key: 'ab' }),
  'passkey-with-a-compressed-key': passkeyAnswer({ ...other, public_key: compressed(other.public_key) }),
  'passkey-with-another-credential-id': changedPasskeyAnswer(() => ({ credential_id: 'c0ffef' })),
  'passkey-with-another-origin-than-enrolled': changedPasskeyAnswer(() => ({ origin: 'http://localhost:3000' })),
  'passkey-swapped-for-another': passkeyAnswer(other, { approver: KNOWN.approver }),
  'passkey-of-another-approver': knownPasskeyAnswer({ approver: tell.APPROVER_KEY }),
  'passkey-and-a-key-at-once': knownPasskeyAnswer({ signature: 'ab'.repeat(64) }),
  'passkey-without-its-approver': knownPasskeyAnswer({ approver: undefined } as never),
  'passkey-without-its-expiry': knownPasskeyAnswer({ expires_at: undefined } as never),
  'key-in-the-name-of-a-passkey': tell.signedAnswer({ approver: KNOWN.approver }),
};

export const FALSE_PASSKEY_STORIES: Readonly<Record<string, FalseStory>> = Object.fromEntries(
  Object.entries(FALSE_ANSWERS).map(([name, answer]) => [
    name,
    { entries: [...before, answer], seq: before.length + 1, rule: 'approver' },
  ]),
);
