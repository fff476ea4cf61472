/** Defects of the store, and of its callers. */
import type { AlarmState } from '../../../src/chronos/alarm/alarm.ts';
import type { AlarmStore, Claim, Completion } from '../../../src/chronos/store/store.ts';
import { cancels, type Mutant, replacing } from './mutant.ts';

/** Runs an operation in the name of the alarm's owner. */
function asOwner(
  store: AlarmStore,
  operations: (real: AlarmStore, ownerOf: (id: string) => string | undefined) => Partial<AlarmStore>,
) {
  const owners = new Map<string, string>();
  return replacing(store, (real) => ({
    create(entry, limits) {
      owners.set(entry.alarm.id, entry.alarm.owner);
      return real.create(entry, limits);
    },
    ...operations(real, (id) => owners.get(id)),
  }));
}

export const STORE_MUTANTS = {
  'ignores-fence': {
    defect: 'an outcome is stored without a check of the claim',
    // It needs a process that is stopped until another took over.
    shows: ({ replicas, everyMs }) => replicas.length > 1 && Number.isFinite(everyMs.stop),
    durable: (store) =>
      replacing(store, (real) => ({
        async complete(completions) {
          const forged = completions.map(async (completion): Promise<Completion> => {
            const { owner, alarmId, fireId } = completion.key;
            const held = (await real.get(owner, alarmId))?.occurrences.find((one) => one.fireId === fireId);
            return held ? { ...completion, key: { ...completion.key, fence: held.fence } } : completion;
          });
          return real.complete(await Promise.all(forged));
        },
      })),
  },
  'claims-twice': {
    defect: 'sometimes a claim returns the result of the claim before it',
    durable: (store) => {
      let last: Claim[] = [];
      return replacing(store, (real) => ({
        async claim(request) {
          const claims = await real.claim(request);
          const both = claims.length === 1 ? [...claims, ...last] : claims;
          last = claims;
          return both;
        },
      }));
    },
  },
  'proves-nothing': {
    defect: 'processes are taken for gone although they run',
    // Elsewhere a process may be taken for gone for good reasons.
    shows: ({ calm, mode, conditions }) => calm && mode === 'fleet' && conditions.slow > 0,
    liveness: 'proves-nothing',
  },
  'gives-up-nobody': {
    defect: 'the claims of a dead process are not ended',
    shows: ({ mode, everyMs }) => mode === 'fleet' && Number.isFinite(everyMs.crash),
    liveness: 'gives-up-nobody',
  },
  'forgets-orphans': {
    defect: 'a process that opens its database leaves the claims of the one before it',
    shows: ({ mode, everyMs }) => mode === 'single' && Number.isFinite(everyMs.crash),
    durable: (store) => replacing(store, () => ({ endOrphanedClaims: async () => 0 })),
  },
  'early-by-one': {
    defect: 'occurrences are claimed one millisecond before they are due',
    store: (store) =>
      replacing(store, (real) => ({
        claim: (request) => real.claim({ ...request, now: request.now + 1 }),
        nextDueAt: async (saturated) => {
          const next = await real.nextDueAt(saturated);
          return next === undefined ? undefined : next - 1;
        },
      })),
  },
  'fast-clock': {
    defect: "the process's estimate of the database's time is 40 ms ahead",
    store: (store) => replacing(store, (real) => ({ now: () => real.now() + 40 })),
  },
  'forgets-cancel': {
    defect: 'a cancelled alarm keeps its pending occurrence',
    durable: (store) =>
      replacing(store, (real) => ({
        update: (owner, id, transition) =>
          real.update(owner, id, (before) => {
            const after = transition(before);
            if (!cancels(before, transition)) return after;
            return { alarm: after.alarm, occurrences: before.occurrences };
          }),
      })),
  },
  'cancel-only-said': {
    defect: 'one cancel in four is acknowledged and not stored',
    durable: (store) => {
      let cancelled = 0;
      return replacing(store, (real) => ({
        async update(owner, id, transition) {
          const before = await real.get(owner, id);
          if (before && cancels(before, transition) && ++cancelled % 4 === 0) return transition(before);
          return real.update(owner, id, transition);
        },
      }));
    },
  },
  'acknowledges-early': {
    defect: 'a create is acknowledged when it has been sent to the database, and not when it is stored',
    store: (store) =>
      replacing(store, (real) => ({
        async create(entry, limits) {
          real.create(entry, limits).catch(() => {});
          return { result: 'created', state: { alarm: entry.alarm, occurrences: [entry.occurrence] } };
        },
      })),
  },
  'ignores-keys': {
    defect: 'a repeated create makes another alarm',
    store: (store) =>
      replacing(store, (real) => ({
        create: (entry, limits) => real.create({ ...entry, alarm: { ...entry.alarm, idempotencyKey: null } }, limits),
      })),
  },
  'loses-outcomes': {
    defect: 'one batch of outcomes in ten is reported as stored, and is not',
    durable: (store) => {
      let batches = 0;
      return replacing(store, (real) => ({
        complete: async (completions) =>
          ++batches % 10 === 0 ? completions.map(() => 'applied') : real.complete(completions),
      }));
    },
  },
  'delivers-failures': {
    defect: 'an unknown outcome is recorded as delivered',
    store: (store) =>
      replacing(store, (real) => ({
        complete: (completions) =>
          real.complete(
            completions.map((completion) =>
              completion.attempt?.outcome === 'unknown'
                ? { ...completion, attempt: { ...completion.attempt, outcome: 'delivered' } }
                : completion,
            ),
          ),
      })),
  },
  'shows-strangers': {
    defect: "every caller who knows an alarm's id can read it",
    durable: (store) => asOwner(store, (real, ownerOf) => ({ get: (owner, id) => real.get(ownerOf(id) ?? owner, id) })),
  },
  'obeys-strangers': {
    defect: "every caller who knows an alarm's id can change it",
    durable: (store) =>
      asOwner(store, (real, ownerOf) => ({
        update: (owner, id, transition) => real.update(ownerOf(id) ?? owner, id, transition),
      })),
  },
  'unfair-claims': {
    defect: 'one owner may take all delivery slots',
    store: (store) =>
      replacing(store, (real) => ({
        claim: (request) => real.claim({ ...request, perOwner: request.limit, inFlight: new Map() }),
        nextDueAt: () => real.nextDueAt(new Set()),
      })),
  },
  sleepy: {
    defect: 'due occurrences are claimed 25 s late',
    store: (store) =>
      replacing(store, (real) => ({
        nextDueAt: async (saturated) => {
          const next = await real.nextDueAt(saturated);
          return next === undefined ? undefined : next + 25_000;
        },
      })),
  },
  'trims-messages': {
    defect: "the agent's text loses the spaces at its end",
    durable: (store) =>
      replacing(store, (real) => ({
        create: (entry, limits) =>
          real.create({ ...entry, alarm: { ...entry.alarm, wakeMessage: entry.alarm.wakeMessage.trimEnd() } }, limits),
      })),
  },
  'stale-writes': {
    defect: 'a change of an alarm is computed on a state that may be outdated when it is written',
    durable: (store) => {
      const remembered = new Map<string, AlarmState>();
      return replacing(store, (real) => ({
        async update(owner, id, transition) {
          const result = await real.update(owner, id, (present) => {
            const outdated = remembered.get(id);
            const after = transition(
              outdated && outdated.alarm.status !== 'cancelled' ? { ...present, alarm: outdated.alarm } : present,
            );
            return after;
          });
          if (result) remembered.set(id, result);
          return result;
        },
      }));
    },
  },
} as const satisfies Record<string, Mutant>;
