/**
 * All changes of the database in order. The model has no triggers, so its contents before and after each operation are
 * compared.
 */
import type { AlarmState, Attempt, Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import type { AttemptImage, AuditEntry, OccurrenceImage } from '../checker/history.ts';

type Change = Pick<AuditEntry, 'table' | 'before' | 'after'>;

const WRITES = ['create', 'update', 'claim', 'endOrphanedClaims', 'complete'] as const satisfies (keyof AlarmStore)[];
const EVERYTHING = 1_000_000;

function imageOf(occurrence: Occurrence): OccurrenceImage {
  const { fireId, alarmId, source, nominal, dueAt, attempt, fence, claimedAt } = occurrence;
  return { fireId, alarmId, source, nominal, dueAt, attempt, fence, claimedAt };
}

function attemptImageOf({ fireId, alarmId, attempt, outcome }: Attempt): AttemptImage {
  return { fireId, alarmId, attempt, outcome };
}

function changesBetween(before: AlarmState | undefined, after: AlarmState): Change[] {
  const changes: Change[] = [];
  const { id, status } = after.alarm;
  if (before?.alarm.status !== status)
    changes.push({
      table: 'alarms',
      before: before ? { id, status: before.alarm.status } : null,
      after: { id, status },
    });
  const known = new Map(before?.occurrences.map((occurrence) => [occurrence.fireId, occurrence]));
  for (const occurrence of after.occurrences) {
    const was = known.get(occurrence.fireId);
    known.delete(occurrence.fireId);
    if (was !== occurrence)
      changes.push({ table: 'occurrences', before: was ? imageOf(was) : null, after: imageOf(occurrence) });
  }
  for (const gone of known.values()) changes.push({ table: 'occurrences', before: imageOf(gone), after: null });
  return changes;
}

/** Wraps the model with an auditor. Operations run one after the other, each with its comparison. */
export function auditModel(
  model: AlarmStore,
  { owners, now }: { owners: readonly string[]; now: () => number },
): { store: AlarmStore; audit: () => readonly AuditEntry[] } {
  const entries: AuditEntry[] = [];
  let states = new Map<string, AlarmState>();
  const recorded = new Set<string>();
  let transactions = 0;
  let last: Promise<unknown> = Promise.resolve();

  const compare = async () => {
    const present = (await Promise.all(owners.map((owner) => model.list(owner, { limit: EVERYTHING })))).flat();
    const transaction = String(transactions++);
    for (const state of present) {
      const { owner, id } = state.alarm;
      const before = states.get(id);
      // The model returns its own objects, and never changes them in place.
      if (before === state) continue;
      const lines: Change[] = [];
      for (const attempt of await model.attempts(owner, id, { limit: EVERYTHING })) {
        const name = `${attempt.fireId}#${attempt.attempt}#${attempt.startedAt}`;
        if (recorded.has(name)) continue;
        recorded.add(name);
        lines.push({ table: 'fire_attempts', before: null, after: attemptImageOf(attempt) });
      }
      for (const change of [...changesBetween(before, state), ...lines])
        entries.push({ ...change, seq: entries.length, transaction, at: Math.floor(now()) } as AuditEntry);
    }
    states = new Map(present.map((state) => [state.alarm.id, state]));
  };

  const operate = (name: keyof AlarmStore, parameters: unknown[]) => {
    const operation = model[name] as (...parameters: unknown[]) => Promise<unknown>;
    const run = async () => {
      try {
        return await operation(...parameters);
      } finally {
        await compare();
      }
    };
    const result = last.then(run);
    last = result.catch(() => {});
    return result;
  };

  const store = new Proxy(model, {
    get: (target, name: keyof AlarmStore) =>
      (WRITES as readonly string[]).includes(name)
        ? (...parameters: unknown[]) => operate(name, parameters)
        : target[name],
  });
  return { store, audit: () => entries };
}
