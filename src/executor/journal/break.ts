/** What is put down when a chain is found changed: that it was, and an end that claims nothing which nobody can know. Pure. */
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, outcomeOf } from '../receipt/chain-state.ts';
import type { ChainReading } from './chain-reading.ts';

/** The nodes whose call has been started and has no recorded outcome. */
export function nodesInDoubt(state: ChainState): string[] {
  return [...state.nodes].flatMap(([nodeId, record]) => (outcomeOf(record) === 'unknown' ? [nodeId] : []));
}

/**
 * @param state what the envelopes that hold come to
 * @param startedByRow whether the intent's row says that an escalate-class call was started
 */
export function breakEntries(
  { head, broken, mayHaveStarted }: ChainReading,
  state: ChainState,
  { startedByRow, at }: { startedByRow: boolean; at: string },
): readonly ReceiptEntry[] {
  const reason = broken!;
  const changed: ReceiptEntry = { kind: 'journal.broken', body: { at, good_seq: head.seq, reason } };
  const words = `the journal of this intent was changed behind the executor's back: ${reason}. What stood after envelope ${head.seq} does not count`;
  if (!state.escalateStarted && !startedByRow && !mayHaveStarted) {
    const failed = `${words}. No call that moves or commits something had been started`;
    return [changed, { kind: 'intent.failed', body: { at, code: 'journal_broken', reason: failed } }];
  }
  const nodes = nodesInDoubt(state);
  const unknown = `${words}. A call that moves or commits something had been started or may have been: look at its tool's own records; the rows that do not count are kept in the table set_aside of journal.db`;
  return [changed, { kind: 'intent.unknown', body: { at, reason: unknown, nodes } }];
}
