/** Whether a person's answer counts. What does not count is put down as well, but not without end. Pure. */
import { ReveilleError } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { type IntentFold, isOver, openGates, recordOf } from '../journal/fold.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';

/** Of one intent; further ones are refused without a line in its receipt, so that nobody fills the disk. */
const REFUSALS_KEPT = 32;

export type Judged = {
  readonly entries: readonly ReceiptEntry[];
  /** What whoever answered is told; `undefined` when the answer counts. */
  readonly refusal: ReveilleError | undefined;
};

type Given = { readonly nodeId: string; readonly by: string; readonly answer: GateAnswer; readonly now: number };

const NO_GATE = 'the gates that wait are listed by GET /intents/{id}/gates';

/** Why an answer does not count. */
function objection(state: IntentFold, { nodeId, by, answer, now }: Given): string | undefined {
  if (by !== state.accepted.principal.user) return 'the intent is not theirs';
  const { gate } = recordOf(state, nodeId);
  if (!gate && isOver(state)) return `the intent is over; no question about the node ${nodeId} waits`;
  if (!gate) return `no question has been asked about the node ${nodeId}; ${NO_GATE}`;
  if (gate.answered) {
    return `the question about the node ${nodeId} was ${gate.answered.approved ? 'approved' : 'denied'} already; the first answer counts`;
  }
  if (gate.expired || now >= parseInstant(gate.asked.expires_at)!)
    return `the question about the node ${nodeId} expired at ${gate.asked.expires_at}`;
  if (isOver(state)) return `the intent is over; the question about the node ${nodeId} does not wait any more`;
  if (answer.call_sha256 === undefined) {
    const isAmbiguous = gate.times > 1 || openGates(state).length > 1;
    if (!answer.approved || !isAmbiguous) return undefined;
    return `call_sha256 must say which call is approved: ${gate.times > 1 ? 'the question was asked anew' : 'several questions wait'}; ${NO_GATE}`;
  }
  if (answer.call_sha256 === gate.asked.call_sha256) return undefined;
  return `call_sha256 is that of another call than the one that was shown (${gate.asked.call_sha256}); look at the question again`;
}

/** Judges an answer by what is on record. */
export function judgeAnswer(state: IntentFold, given: Given): Judged {
  const { nodeId, by, answer, now } = given;
  const body = { at: formatInstant(now), node_id: nodeId };
  const reason = objection(state, given);
  if (reason !== undefined) {
    const sha = answer.call_sha256 === undefined ? {} : { call_sha256: answer.call_sha256 };
    const entry: ReceiptEntry = { kind: 'gate.refused', body: { ...body, by, reason, ...sha } };
    const entries = state.refusals < REFUSALS_KEPT ? [entry] : [];
    return { entries, refusal: new ReveilleError('conflict', reason) };
  }
  const words = answer.answer === undefined ? {} : { answer: answer.answer };
  const { call_sha256 } = recordOf(state, nodeId).gate!.asked;
  const entry: ReceiptEntry = {
    kind: 'gate.answered',
    body: { ...body, call_sha256, approved: answer.approved, by, ...words },
  };
  return { entries: [entry], refusal: undefined };
}
