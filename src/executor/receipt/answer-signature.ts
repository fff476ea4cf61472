/**
 * Whether an answer was signed by the approver whom it names: with a key of theirs, or with a passkey. The rail takes
 * answers by it, and both ways of reading a receipt check them by it again. Pure.
 */
import { verifySignature } from '../../kit/identity/keys.ts';
import { assertionProblem, passkeyId } from '../../kit/identity/passkey.ts';
import { type AnswerStatement, answerText } from '../../wire/approver.ts';
import type { PasskeySignature } from '../../wire/passkey.ts';

/** Whose answer it is said to be, and one of the two signatures. */
export type AnswerSignature = {
  /** An Ed25519 public key, or the id of the passkey. */
  readonly approver: string;
  readonly signature?: string | undefined;
  readonly passkey?: PasskeySignature | undefined;
};

/**
 * Why a signature is not one of its approver over this answer to this question, as words that follow "the answer";
 * `undefined` when it is.
 */
export function signatureProblem(said: AnswerStatement, by: AnswerSignature): string | undefined {
  const { approver, signature, passkey } = by;
  const text = answerText(said);
  if ((signature === undefined) === (passkey === undefined))
    return 'must be signed with a key or with a passkey: one of the two';
  if (signature !== undefined)
    return verifySignature(approver, text, signature)
      ? undefined
      : `is not signed by ${approver}: somebody without that key gave it, or changed it`;
  if (passkeyId(passkey!) !== approver) return `is signed with another passkey than ${approver}`;
  const wrong = assertionProblem(passkey!, passkey!, text);
  return wrong && `is not signed with the passkey ${approver}: ${wrong}`;
}
