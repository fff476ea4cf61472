/** Whether an intent can have ended as it is said to have ended. Pure. */
import type { ReceiptKind } from '../../wire/intent-receipt.ts';
import { Contradiction } from './contradiction.ts';
import type { CallState } from './story.ts';

/** Whether nobody can say yet what became of a call that was started. */
export const isUnsettled = ({ status }: CallState) => status === 'started' || status === 'unknown';

/** What is known when an intent ends. */
export type Known = {
  readonly calls: Iterable<CallState>;
  /** A call or wait of the plan that is not done; `plan` where there is none. */
  readonly missing: string | undefined;
  /** The journal was found changed before. */
  readonly broken: boolean;
};

/**
 * Throws where an end says more than can be known.
 *
 * @param nodes of `intent.unknown`: the calls of which nobody can say what became of them
 */
export function holdToOutcome(kind: ReceiptKind, nodes: readonly string[], { calls, missing, broken }: Known): void {
  if (kind === 'intent.completed') {
    if (missing === undefined) return;
    throw new Contradiction('outcome', `the intent is said to be completed, but "${missing}" was not done`);
  }
  const open = [...calls].filter(isUnsettled);
  if (kind === 'intent.unknown') {
    if (open.length === 0 && !broken)
      throw new Contradiction('outcome', 'the outcome is said to be unknown, but that of every call is known');
    const unnamed = open.find(({ escalated, nodeId }) => escalated && !nodes.includes(nodeId));
    if (unnamed)
      throw new Contradiction(
        'outcome',
        `"${unnamed.nodeId}" has no known outcome, and intent.unknown does not name it`,
      );
    return;
  }
  const lost = open.find(({ escalated }) => escalated);
  if (lost) throw new Contradiction('outcome', `${kind} leaves out that nobody knows what became of "${lost.nodeId}"`);
}
