/** Recording what came of attempts. */
import { checkAttempt } from '../difference.ts';
import type { Completion, CompletionResult } from '../store.ts';
import type { Tables } from './tables.ts';

export function prepareComplete(tables: Tables) {
  /** @param opened by how many each touched owner's open alarms have grown, added to here */
  function completeOne({ key, attempt, settle }: Completion, opened: Map<string, number>): CompletionResult {
    const stored = tables.state(key.owner, key.alarmId);
    const held = stored?.occurrences.find(({ fireId }) => fireId === key.fireId);
    if (!stored || !held || held.fence !== key.fence || held.leaseUntil === null) return 'lost_lease';

    const released = { ...held, leaseUntil: null, claimedAt: null };
    const given = {
      alarm: stored.alarm,
      occurrences: stored.occurrences.map((occurrence) => (occurrence === held ? released : occurrence)),
    };
    const change = tables.write(stored, given, settle(given));
    opened.set(key.owner, (opened.get(key.owner) ?? 0) + change);
    if (attempt) {
      checkAttempt(key, attempt);
      tables.ledger.insert(attempt);
    }
    return 'applied';
  }

  return (completions: readonly Completion[]): CompletionResult[] => {
    const opened = new Map<string, number>();
    const results = completions.map((completion) => completeOne(completion, opened));
    for (const [owner, change] of opened) tables.owners.refresh(owner, change);
    return results;
  };
}
