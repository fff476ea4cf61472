/**
 * What a user's key signs (see test/contract/receipt-vectors/README.md): statements about the roster of approvers, and answers to
 * questions of the executor. An answer contains the digests of the displayed call and question, computed here from the
 * displayed texts.
 */
import { digestsOf, type ExecutorAdmin, type WaitingGate } from '../../executor/client.ts';
import type { AgentKey } from '../../kit/identity/keys.ts';
import {
  type ApproverRequest,
  type ApproverView,
  answerText,
  type EnrollmentStatement,
  enrollmentText,
  type RevocationRequest,
  type RevocationStatement,
  revocationText,
} from '../../wire/approver.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import { type PasskeyRequest, passkeyEnrollmentText } from '../../wire/passkey.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Settings } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { loadOrMakeApprover, openApprover } from './approver-key.ts';
import { askPassphrase } from './passphrase.ts';

/** Validity of a signed statement: long enough for clock differences, short enough against later use. */
const SIGNED_FOR_MS = 15 * 60 * 1000;

/** Expiry of a statement that is signed now. */
export const signedUntil = (now: number): string => formatInstant(now + SIGNED_FOR_MS);

/** Whether a key may approve. */
export const isActive = ({ revoked_at, forged }: ApproverView) => revoked_at === undefined && !forged;

type Ours = Omit<EnrollmentStatement, 'expires_at'>;

/** A key's request to become an approver, signed by itself. An active approver must sign it too, unless it is the first. */
export function enrollmentRequest(key: AgentKey, about: Omit<Ours, 'approver'>, now: number): ApproverRequest {
  const statement = { ...about, approver: key.publicKeyHex, expires_at: signedUntil(now) };
  return { ...statement, signature: key.sign(enrollmentText(statement)) };
}

/** The request with the signature of an active approver. */
export function vouchedFor<Request extends ApproverRequest | PasskeyRequest>(request: Request, key: AgentKey): Request {
  const signature = key.sign('passkey' in request ? passkeyEnrollmentText(request) : enrollmentText(request));
  return { ...request, voucher: { approver: key.publicKeyHex, signature } };
}

/** The revocation of a key, signed by an active one. */
export function revocationRequest(
  key: AgentKey,
  about: Omit<RevocationStatement, 'expires_at'>,
  now: number,
): RevocationRequest {
  const statement = { ...about, expires_at: signedUntil(now) };
  const signature = key.sign(revocationText(statement));
  return { ...statement, voucher: { approver: key.publicKeyHex, signature } };
}

/** The digests of the displayed call and question. @throws ReveilleError `conflict` when the executor's differ */
export function shownDigests(gate: WaitingGate): { call_sha256: string; displayed_sha256: string } {
  const { call_sha256, displayed_sha256 } = digestsOf(gate);
  const refuse = (digest: string, what: string) =>
    new ReveilleError('conflict', `the executor's digest ${digest} does not match the displayed ${what}`);
  if (call_sha256 !== gate.call.call_sha256) throw refuse(gate.call.call_sha256, 'call; nothing was approved');
  if (displayed_sha256 !== gate.displayed_sha256) throw refuse(gate.displayed_sha256, 'question; nothing was answered');
  return { call_sha256, displayed_sha256 };
}

/**
 * Signs an answer after checking the displayed texts.
 *
 * @param given.words the user's remark
 * @throws ReveilleError `conflict` when call or question do not match their digests; as `openApprover`
 */
export async function signedAnswer(
  context: CliContext,
  given: { intentId: string; gate: WaitingGate; approved: boolean; words?: string | undefined },
): Promise<GateAnswer> {
  const { intentId, gate, approved, words } = given;
  const shown = shownDigests(gate);
  const key = await openApprover(context.environment, askPassphrase(context));
  const answer = words === undefined ? {} : { answer: words };
  return answerBy(key, { approved, ...shown, ...answer }, { intentId, nodeId: gate.node_id }, context.clock.now());
}

/** An answer with its expiry, signed by a key. */
export function answerBy<Said extends Omit<GateAnswer, 'expires_at' | 'approver' | 'signature'>>(
  key: AgentKey,
  said: Said,
  { intentId, nodeId }: { intentId: string; nodeId: string },
  now: number,
) {
  const answer = { ...said, expires_at: signedUntil(now) };
  const signature = key.sign(answerText({ ...answer, intent_id: intentId, node_id: nodeId }));
  return { ...answer, approver: key.publicKeyHex, signature };
}

type Given = { readonly environment: Settings; readonly user: string; readonly now: number };

/** A sealed key cannot be enrolled without the user. */
const isSealed = () =>
  Promise.reject(new ReveilleError('forbidden', 'the key is sealed; enroll it with: reveille approver enroll'));

/**
 * Creates and enrolls the user's key if the user never had an approver. No question is asked.
 *
 * @returns why nothing can be approved from here, as a sentence; `undefined` when approval is possible
 */
export async function ensureApprover(
  admin: ExecutorAdmin,
  { environment, user, now }: Given,
): Promise<string | undefined> {
  try {
    const { executor, approvers, resets } = await admin.approvers(user);
    const reset = resets.at(-1)?.at ?? '';
    const standing = approvers.filter(isActive);
    const { publicKey, name, file } = await loadOrMakeApprover(environment, now);
    if (standing.some(({ approver }) => approver === publicKey)) return undefined;
    if (standing.length > 0)
      return `the key in ${file} is not among the approvers of ${user}; to approve from here: reveille approver enroll`;
    // After a reset the user decides which key is enrolled next.
    if (reset !== '')
      return `the approvers of ${user} were reset at ${reset}; enroll your key with: reveille approver enroll`;
    const key = await openApprover(environment, isSealed);
    await admin.enroll(enrollmentRequest(key, { name, user, executor }, now));
    return undefined;
  } catch (thrown) {
    return `intents cannot be approved: ${thrownText(thrown)}`;
  }
}
