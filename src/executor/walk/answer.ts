/**
 * Whether a person's answer counts: it must be about the question that waits, and signed by an approver who stands.
 * What does not count is put down as well, but not without end. Pure.
 */
import { signCountOf } from '../../kit/identity/passkey.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import { answeredWords } from '../../wire/intent-view.ts';
import type { PasskeySignature } from '../../wire/passkey.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { refuseStale, type StandingApprover } from '../journal/roster.ts';
import { signatureProblem } from '../receipt/answer-signature.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, isOver, recordOf } from '../receipt/chain-state.ts';

/** Of one intent; further ones are refused without a line in its receipt, so that nobody fills the disk. */
const REFUSALS_KEPT = 32;

export type Judged = {
  readonly entries: readonly ReceiptEntry[];
  /** What whoever answered is told; `undefined` when the answer counts. */
  readonly refusal: ReveilleError | undefined;
};

type Given = {
  readonly nodeId: string;
  readonly by: string;
  readonly answer: GateAnswer;
  readonly now: number;
  /** What the roster knows of whoever answers; `undefined` when they do not stand for the intent's user. */
  readonly approver: StandingApprover | undefined;
};

/** An assertion together with the credential that the roster has: what a browser says of that does not count. */
function passkeyOf({ answer, approver }: Given): PasskeySignature | undefined {
  return answer.passkey && approver?.passkey && { ...approver.passkey.credential, ...answer.passkey };
}

const NO_GATE = 'the gates that wait are listed by GET /intents/{id}/gates';

/** Why a question does not take an answer. */
function closed(state: ChainState, nodeId: string, now: number): string | undefined {
  const { gate } = recordOf(state, nodeId);
  if (!gate && isOver(state)) return `the intent is over; no question about the node ${nodeId} waits`;
  if (!gate) return `no question has been asked about the node ${nodeId}; ${NO_GATE}`;
  if (gate.answered) {
    return `the question about the node ${nodeId} was already ${answeredWords(gate.answered)}; the first answer counts`;
  }
  if (gate.expired || now >= parseInstant(gate.asked.expires_at)!)
    return `the question about the node ${nodeId} expired at ${gate.asked.expires_at}`;
  return isOver(state) ? `the intent is over; the question about the node ${nodeId} does not wait any more` : undefined;
}

/** Why whoever signed cannot have answered this question; nothing here depends on who has sent it. */
function unsigned(state: ChainState, given: Given): ReveilleError | undefined {
  const { nodeId, answer, now, approver } = given;
  const { approver: key, expires_at, signature } = answer;
  const { intent_id, principal } = state.accepted;
  const forbidden = (message: string) => new ReveilleError('forbidden', message);
  if (approver === undefined) return forbidden(`approver ${key} does not stand as an approver of ${principal.user}`);
  const passkey = passkeyOf(given);
  if ((answer.passkey === undefined) !== (approver.passkey === undefined))
    return forbidden(`approver ${key} is ${approver.passkey ? 'a passkey' : 'a key'} and answers as what it is`);
  const wrong = signatureProblem({ ...answer, intent_id, node_id: nodeId }, { approver: key, signature, passkey });
  if (wrong !== undefined) return forbidden(`the answer ${wrong}`);
  if (passkey && hasGoneBack(signCountOf(passkey.authenticator_data), approver.passkey!.signCount))
    return forbidden(`the passkey ${key} has counted back: it may have been copied; look at "reveille approver list"`);
  try {
    refuseStale(expires_at, now);
  } catch (thrown) {
    if (thrown instanceof ReveilleError) return thrown;
    throw thrown;
  }
  return undefined;
}

/** WebAuthn §6.1.1: an authenticator that counts goes on with every signature; many do not count and say 0. */
const hasGoneBack = (count: number, before: number) => (count !== 0 || before !== 0) && count <= before;

/** Why an answer does not count. */
function objection(state: ChainState, given: Given): ReveilleError | undefined {
  const { nodeId, by, answer, now } = given;
  const conflict = (message: string) => new ReveilleError('conflict', message);
  if (by !== state.accepted.principal.user) return conflict('the intent is not theirs');
  const shut = closed(state, nodeId, now);
  if (shut !== undefined) return conflict(shut);
  const { asked } = recordOf(state, nodeId).gate!;
  if (answer.call_sha256 !== asked.call_sha256)
    return conflict(
      `call_sha256 is that of another call than the one that was shown (${asked.call_sha256}); look at the question again`,
    );
  if (answer.displayed_sha256 !== asked.displayed_sha256)
    return conflict(
      `displayed_sha256 is that of another question than the one that waits (${asked.displayed_sha256}); look at the question again`,
    );
  return unsigned(state, given);
}

/** Judges an answer by what is on record, and by the roster. */
export function judgeAnswer(state: ChainState, given: Given): Judged {
  const { nodeId, by, answer, now, approver } = given;
  const body = { at: formatInstant(now), node_id: nodeId };
  const refusal = objection(state, given);
  if (refusal !== undefined) {
    const entry: ReceiptEntry = {
      kind: 'gate.refused',
      body: { ...body, by, reason: refusal.message, call_sha256: answer.call_sha256, approver: answer.approver },
    };
    return { entries: state.refusals < REFUSALS_KEPT ? [entry] : [], refusal };
  }
  const { answer: words, passkey: _, signature, ...said } = answer;
  const passkey = passkeyOf(given);
  const entry: ReceiptEntry = {
    kind: 'gate.answered',
    body: {
      ...{ ...body, by, ...said, name: approver!.name },
      ...(signature === undefined ? {} : { signature }),
      ...(passkey === undefined ? {} : { passkey }),
      ...(words === undefined ? {} : { answer: words }),
    },
  };
  return { entries: [entry], refusal: undefined };
}
