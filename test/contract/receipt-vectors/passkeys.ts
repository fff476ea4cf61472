/**
 * Answers with passkey signatures, for receipts in tests. Some were made once by a browser; some are by an
 * authenticator with a public key pair, which can sign any statement.
 */
import { readFileSync } from 'node:fs';
import type { ReceiptBodies, ReceiptEntry } from '../../../src/executor/receipt/bodies.ts';
import { passkeyId } from '../../../src/kit/identity/passkey.ts';
import { type AssertionFault, testPasskey } from '../../../src/kit/identity/testing/passkey.ts';
import { type AnswerStatement, answerText } from '../../../src/wire/approver.ts';
import type { PasskeySignature } from '../../../src/wire/passkey.ts';
import { entry, INTENT_ID, PAY, SHOWN_SHA256, second, USER } from './stories.ts';

type Body = ReceiptBodies['gate.answered'];

/**
 * The statement of {@link passkeyAnswer} unchanged, signed by the virtual authenticator of Chromium 153 for
 * `http://localhost:8087`.
 */
export const RECORDED = JSON.parse(
  readFileSync(new URL('./recorded-passkeys.json', import.meta.url), 'utf8'),
) as Readonly<Record<'es256' | 'eddsa' | 'rs256', PasskeySignature>>;

/** The key of the first test of RFC 8032 §7.1 in PKCS#8: its signatures are the same each time. */
const KNOWN_KEY = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----`;
export const KNOWN = testPasskey({ key: KNOWN_KEY, credentialId: 'c0ffee' });

const SAID = {
  ...{ at: second(30), node_id: 'pay', call_sha256: PAY.call_sha256, approved: true, by: USER },
  ...{ displayed_sha256: SHOWN_SHA256, expires_at: second(630), name: 'alice on her phone' },
} as const;

/** An answer with a given passkey signature. */
export const passkeyAnswer = (passkey: PasskeySignature, change: Partial<Body> = {}): ReceiptEntry =>
  entry('gate.answered', { ...SAID, approver: passkeyId(passkey), passkey, ...change });

/**
 * An answer that the known passkey has signed.
 *
 * @param change members of the envelope, which are signed as they are
 * @param signed the signed value instead
 * @param odd changed data of browser and authenticator
 */
export function knownPasskeyAnswer(
  change: Partial<Body> = {},
  signed: Partial<AnswerStatement> = {},
  odd: AssertionFault = {},
): ReceiptEntry {
  const body = { ...SAID, ...change };
  const assertion = KNOWN.assertion(answerText({ ...body, intent_id: INTENT_ID, ...signed }), { count: 7, ...odd });
  return passkeyAnswer({ ...KNOWN.passkey, ...assertion }, change);
}

/** The same with members of the signature exchanged after signing. */
export function changedPasskeyAnswer(change: (passkey: PasskeySignature) => Partial<PasskeySignature>): ReceiptEntry {
  const { body } = knownPasskeyAnswer() as { body: Body };
  const passkey = { ...body.passkey!, ...change(body.passkey!) };
  return entry('gate.answered', { ...body, passkey });
}
