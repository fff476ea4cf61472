/**
 * Checks that the named approver signed an answer, with a key or a passkey. The rail uses it to accept answers; both
 * receipt readers use it to verify them. Pure.
 */
import { verifySignature } from '../../kit/identity/keys.ts';
import { assertionProblem, passkeyId } from '../../kit/identity/passkey.ts';
import { type AnswerStatement, answerText } from '../../wire/approver.ts';
import type { PasskeySignature } from '../../wire/passkey.ts';

/** The claimed approver and one of the two signatures. */
export type AnswerSignature = {
  /** An Ed25519 public key, or the id of the passkey. */
  readonly approver: string;
  readonly signature?: string | undefined;
  readonly passkey?: PasskeySignature | undefined;
};

/**
 * Why the signature is not the approver's over this answer to this question; the text follows "the answer". `undefined`
 * when it is.
 */
export function signatureProblem(statement: AnswerStatement, by: AnswerSignature): string | undefined {
  const { approver, signature, passkey } = by;
  const text = answerText(statement);
  if ((signature === undefined) === (passkey === undefined))
    return 'must be signed with a key or with a passkey: one of the two';
  if (signature !== undefined)
    return verifySignature(approver, text, signature)
      ? undefined
      : `is not signed by ${approver}: another key signed it, or it was changed`;
  if (passkeyId(passkey!) !== approver) return `is signed with another passkey than ${approver}`;
  const wrong = assertionProblem(passkey!, passkey!, text);
  return wrong && `is not signed with the passkey ${approver}: ${wrong}`;
}
