/**
 * Decides whether an answer counts: it must be about the pending question and signed by an active approver. Refused
 * answers are recorded too, up to a limit. Pure.
 */
import { signCountOf } from '../../kit/identity/passkey.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import { answeredWords } from '../../wire/intent-view.ts';
import type { PasskeySignature } from '../../wire/passkey.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { type ActiveApprover, checkExpiry } from '../journal/roster.ts';
import { signatureProblem } from '../receipt/answer-signature.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, isFinal, recordOf } from '../receipt/chain-state.ts';

/**
 * Refusals recorded per intent. Further ones are refused without an envelope, so that refusals cannot fill the disk.
 */
const REFUSALS_KEPT = 32;

export type Judged = {
  readonly entries: readonly ReceiptEntry[];
  /** The error for the caller; `undefined` when the answer counts. */
  readonly refusal: ReveilleError | undefined;
};

type AnswerContext = {
  readonly nodeId: string;
  readonly by: string;
  readonly answer: GateAnswer;
  readonly now: number;
  /** The roster's entry for the approver; `undefined` when it is not active for the intent's user. */
  readonly approver: ActiveApprover | undefined;
};

/** The assertion with the credential from the roster; the browser's copy of the credential does not count. */
function passkeyOf({ answer, approver }: AnswerContext): PasskeySignature | undefined {
  return answer.passkey && approver?.passkey && { ...approver.passkey.credential, ...answer.passkey };
}

const NO_GATE = 'GET /intents/{id}/gates lists the pending questions';

/** Why a question accepts no answer. */
function closedProblem(state: ChainState, nodeId: string, now: number): string | undefined {
  const { gate } = recordOf(state, nodeId);
  if (!gate && isFinal(state)) return `the intent has ended; no question about the node ${nodeId} is pending`;
  if (!gate) return `no question has been asked about the node ${nodeId}; ${NO_GATE}`;
  if (gate.answered) {
    return `the question about the node ${nodeId} was already ${answeredWords(gate.answered)}; only the first answer counts`;
  }
  if (gate.expired || now >= parseInstant(gate.asked.expires_at)!)
    return `the question about the node ${nodeId} expired at ${gate.asked.expires_at}`;
  return isFinal(state)
    ? `the intent has ended; the question about the node ${nodeId} is no longer pending`
    : undefined;
}

/** Why the signature is not an answer to this question; independent of the caller that sent it. */
function signatureRefusal(state: ChainState, context: AnswerContext): ReveilleError | undefined {
  const { nodeId, answer, now, approver } = context;
  const { approver: key, expires_at, signature } = answer;
  const { intent_id, principal } = state.accepted;
  const forbidden = (message: string) => new ReveilleError('forbidden', message);
  if (approver === undefined) return forbidden(`approver ${key} is not an active approver of ${principal.user}`);
  const passkey = passkeyOf(context);
  if ((answer.passkey === undefined) !== (approver.passkey === undefined))
    return forbidden(`approver ${key} is ${approver.passkey ? 'a passkey' : 'a key'} and must answer as one`);
  const wrong = signatureProblem({ ...answer, intent_id, node_id: nodeId }, { approver: key, signature, passkey });
  if (wrong !== undefined) return forbidden(`the answer ${wrong}`);
  if (passkey && hasGoneBack(signCountOf(passkey.authenticator_data), approver.passkey!.signCount))
    return forbidden(
      `the signature counter of the passkey ${key} went back: it may have been copied; check "reveille approver list"`,
    );
  try {
    checkExpiry(expires_at, now);
  } catch (thrown) {
    if (thrown instanceof ReveilleError) return thrown;
    throw thrown;
  }
  return undefined;
}

/** WebAuthn §6.1.1: an authenticator with a counter increments it with every signature; many have none and report 0. */
const hasGoneBack = (count: number, before: number) => (count !== 0 || before !== 0) && count <= before;

/** Why an answer does not count. */
function refusalOf(state: ChainState, context: AnswerContext): ReveilleError | undefined {
  const { nodeId, by, answer, now } = context;
  const conflict = (message: string) => new ReveilleError('conflict', message);
  if (by !== state.accepted.principal.user) return conflict('the intent belongs to another user');
  const closedReason = closedProblem(state, nodeId, now);
  if (closedReason !== undefined) return conflict(closedReason);
  const { asked } = recordOf(state, nodeId).gate!;
  if (answer.call_sha256 !== asked.call_sha256)
    return conflict(
      `call_sha256 must be the one of the call that was shown (${asked.call_sha256}); read the question again`,
    );
  if (answer.displayed_sha256 !== asked.displayed_sha256)
    return conflict(
      `displayed_sha256 must be the one of the pending question (${asked.displayed_sha256}); read the question again`,
    );
  return signatureRefusal(state, context);
}

/** Judges an answer by the recorded state and the roster. */
export function judgeAnswer(state: ChainState, context: AnswerContext): Judged {
  const { nodeId, by, answer, now, approver } = context;
  const body = { at: formatInstant(now), node_id: nodeId };
  const refusal = refusalOf(state, context);
  if (refusal !== undefined) {
    const entry: ReceiptEntry = {
      kind: 'gate.refused',
      body: { ...body, by, reason: refusal.message, call_sha256: answer.call_sha256, approver: answer.approver },
    };
    return { entries: state.refusals < REFUSALS_KEPT ? [entry] : [], refusal };
  }
  const { answer: text, passkey: _, signature, ...said } = answer;
  const passkey = passkeyOf(context);
  const entry: ReceiptEntry = {
    kind: 'gate.answered',
    body: {
      ...{ ...body, by, ...said, name: approver!.name },
      ...(signature === undefined ? {} : { signature }),
      ...(passkey === undefined ? {} : { passkey }),
      ...(text === undefined ? {} : { answer: text }),
    },
  };
  return { entries: [entry], refusal: undefined };
}
