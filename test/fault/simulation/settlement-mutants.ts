/** Defects in the effect of an outcome on its alarm. */
import { type AlarmState, type Occurrence, scheduledOccurrence } from '../../../src/chronos/alarm/alarm.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { fireIdOf } from '../../../src/wire/fire-id.ts';
import { type Mutant, replacing } from './mutant.ts';

/** A store that changes the settlement of completions. */
function settling(store: AlarmStore, change: (before: AlarmState, after: AlarmState) => AlarmState): AlarmStore {
  return replacing(store, (real) => ({
    complete: (completions) =>
      real.complete(
        completions.map((completion) => ({
          ...completion,
          settle: (state) => change(state, completion.settle(state)),
        })),
      ),
  }));
}

function withOccurrences(state: AlarmState, map: (occurrence: Occurrence) => Occurrence): AlarmState {
  return { ...state, occurrences: state.occurrences.map(map) };
}

/** One millisecond later. */
function delayed(one: Occurrence): Occurrence {
  const scheduledFor = one.scheduledFor + 1;
  return {
    ...one,
    nominal: one.nominal + 1,
    scheduledFor,
    dueAt: one.dueAt === null ? null : one.dueAt + 1,
    fireId: fireIdOf(one.alarmId, scheduledFor),
  };
}

export const SETTLEMENT_MUTANTS = {
  'forgets-after-failure': {
    defect: 'a single alarm whose first attempt failed is dropped as fired',
    durable: (store) =>
      settling(store, (before, after) =>
        before.alarm.kind === 'once' && after.alarm.failureCount > before.alarm.failureCount
          ? { alarm: { ...after.alarm, status: 'fired' }, occurrences: [] }
          : after,
      ),
  },
  'endless-ladder': {
    defect: 'failures are not counted, so no alarm is ever given up',
    durable: (store) =>
      settling(store, (before, after) => ({
        ...after,
        alarm: { ...after.alarm, failureCount: Math.min(before.alarm.failureCount, after.alarm.failureCount) },
      })),
  },
  'drifting-series': {
    defect: 'each occurrence of a series comes a millisecond too late',
    durable: (store) =>
      settling(store, (before, after) => {
        const earlier = scheduledOccurrence(before)?.fireId;
        return withOccurrences(after, (one) =>
          one.source === 'schedule' && one.fireId !== earlier ? delayed(one) : one,
        );
      }),
  },
  'wedged-series': {
    defect: 'sometimes a series continues without a next occurrence',
    durable: (store) => {
      let moves = 0;
      return settling(store, (before, after) =>
        before.alarm.kind === 'cron' && after.alarm.scheduledFires > before.alarm.scheduledFires && ++moves % 8 === 0
          ? { ...after, occurrences: [] }
          : after,
      );
    },
  },
  'silent-misses': {
    defect: 'after downtime a series does not report the number of skipped occurrences',
    durable: (store) => settling(store, (_, after) => withOccurrences(after, (one) => ({ ...one, missedCount: 0 }))),
  },
  hasty: {
    defect: 'a refused wake is tried again at once',
    durable: (store) =>
      settling(store, (before, after) =>
        withOccurrences(after, (one) => {
          const tried = before.occurrences.some(({ fireId }) => fireId === one.fireId) && one.attempt > 0;
          return tried && one.dueAt !== null ? { ...one, dueAt: one.scheduledFor } : one;
        }),
      ),
  },
} as const satisfies Record<string, Mutant>;
