/**
 * Whether a person's answer counts: it must be about the question that waits, and signed by an approver who stands.
 * What does not count is put down as well, but not without end. Pure.
 */
import { verifySignature } from '../../kit/identity/keys.ts';
import { answerText } from '../../wire/approver.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { refuseStale } from '../journal/roster.ts';
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
  /** What the roster calls the key that answers; `undefined` when it does not stand for the intent's user. */
  readonly approver: string | undefined;
};

const NO_GATE = 'the gates that wait are listed by GET /intents/{id}/gates';

/** Why a question does not take an answer. */
function closed(state: ChainState, nodeId: string, now: number): string | undefined {
  const { gate } = recordOf(state, nodeId);
  if (!gate && isOver(state)) return `the intent is over; no question about the node ${nodeId} waits`;
  if (!gate) return `no question has been asked about the node ${nodeId}; ${NO_GATE}`;
  if (gate.answered) {
    return `the question about the node ${nodeId} was ${gate.answered.approved ? 'approved' : 'denied'} already; the first answer counts`;
  }
  if (gate.expired || now >= parseInstant(gate.asked.expires_at)!)
    return `the question about the node ${nodeId} expired at ${gate.asked.expires_at}`;
  return isOver(state) ? `the intent is over; the question about the node ${nodeId} does not wait any more` : undefined;
}

/** Why whoever signed cannot have answered this question; nothing here depends on who has sent it. */
function unsigned(state: ChainState, { nodeId, answer, now, approver }: Given): ReveilleError | undefined {
  const { approver: key, expires_at, signature } = answer;
  const { intent_id, principal } = state.accepted;
  if (approver === undefined)
    return new ReveilleError('forbidden', `approver ${key} does not stand as an approver of ${principal.user}`);
  if (!verifySignature(key, answerText({ ...answer, intent_id, node_id: nodeId }), signature))
    return new ReveilleError('forbidden', `signature is not one of ${key} over this answer to this question`);
  try {
    refuseStale(expires_at, now);
  } catch (thrown) {
    if (thrown instanceof ReveilleError) return thrown;
    throw thrown;
  }
  return undefined;
}

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
  const { answer: words, ...signed } = answer;
  const entry: ReceiptEntry = {
    kind: 'gate.answered',
    body: { ...body, by, ...signed, name: approver!, ...(words === undefined ? {} : { answer: words }) },
  };
  return { entries: [entry], refusal: undefined };
}
