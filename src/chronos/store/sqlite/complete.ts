/** Recording what came of attempts. */
import { checkAttempt, checkTransition, withoutLease } from '../difference.ts';
import type { Completion, CompletionResult } from '../store.ts';
import type { Tables } from './tables.ts';

export function prepareComplete(tables: Tables) {
  /** @param opened by how many each touched owner's open alarms have grown; added to here */
  function completeOne({ key, attempt, settle }: Completion, opened: Map<string, number>): CompletionResult {
    const { owner, alarmId, fireId, fence } = key;
    const stored = tables.state(owner, alarmId);
    const held = stored?.occurrences.find((occurrence) => occurrence.fireId === fireId);
    if (!stored || !held || held.fence !== fence || held.leaseUntil === null) return 'lost_lease';

    const given = withoutLease(stored, fireId);
    const wanted = settle(given);
    checkTransition(given, wanted);
    opened.set(owner, (opened.get(owner) ?? 0) + tables.write(stored, wanted, fireId));
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
