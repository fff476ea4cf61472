/**
 * A random sequence of operations on a store and on the model: every answer must be the same, and so must the stored
 * data at the end.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { AlarmState, Transition } from '../../../src/chronos/alarm/alarm.ts';
import { eventStateOf } from '../../../src/chronos/alarm/events.ts';
import { encodeOptions, optionsOf } from '../../../src/chronos/alarm/options.ts';
import { settleDeferred } from '../../../src/chronos/alarm/settlement.ts';
import type { AlarmStore, Claim, Completion } from '../../../src/chronos/store/store.ts';
import type { AlarmEvent } from '../../../src/wire/conditions.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import {
  ADA,
  again,
  alarmDue,
  attemptOf,
  BOB,
  cancelled,
  edited,
  firedForGood,
  keyOf,
  NOW,
  occurrenceOf,
  paused,
  triggered,
} from './fixtures.ts';
import { makeModelStore } from './model-store.ts';
import type { OpenStore, StoreUnderTest } from './store-under-test.ts';

const OWNERS = [ADA, BOB, 'carl'] as const;

const owner = fc.constantFrom(...OWNERS);
const index = fc.nat(30);
/** In seconds from the walk's present. */
const when = fc.integer({ min: -20, max: 20 });
const change = fc.constantFrom('cancel', 'pause', 'resume', 'trigger', 'edit', 'drop', 'break', 'throw');
const outcome = fc.constantFrom('rung', 'again', 'held', 'park', 'onward', 'cancel');

const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('create' as const),
      owner,
      when,
      key: fc.option(fc.constantFrom('a', 'b')),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      pass: fc.nat(20),
      limit: fc.nat(5),
      perOwner: fc.integer({ min: 1, max: 3 }),
      busy: fc.array(owner, { maxLength: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('complete' as const),
      which: fc.array(index, { maxLength: 4 }),
      outcome,
      when,
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('update' as const), owner, index, change, when }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('events' as const),
      owner,
      index,
      ids: fc.array(fc.nat(12), { maxLength: 4 }),
      carried: fc.nat(6),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('look' as const), owner, busy: fc.array(owner, { maxLength: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      owner,
      to: owner,
      maxActive: fc.integer({ min: 2, max: 8 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('die' as const), pass: fc.nat(20) }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

/** The outcome of a call, in a comparable form. */
async function answerOf<T>(call: Promise<T>): Promise<{ value?: T; code?: string }> {
  try {
    return { value: await call };
  } catch (error) {
    return { code: error instanceof ReveilleError ? error.code : String(error) };
  }
}

class Walk {
  readonly #model = makeModelStore();
  #store: AlarmStore;
  readonly #underTest: StoreUnderTest;
  /** Requested alarms, stored or not. */
  readonly #alarmIds: string[] = [];
  readonly #claims: Claim[] = [];
  #now = NOW;
  #instants = 0;

  constructor(underTest: StoreUnderTest) {
    this.#store = underTest.store;
    this.#underTest = underTest;
  }

  async step(command: Command): Promise<unknown> {
    switch (command.do) {
      case 'create': {
        const entry = alarmDue(this.#instant(command.when), { owner: command.owner, idempotencyKey: command.key });
        this.#alarmIds.push(entry.alarm.id);
        return this.#both((store) => store.create(entry, { maxActive: 4 }));
      }
      case 'claim':
        return this.#claim(command);
      case 'complete':
        return this.#complete(command);
      case 'update': {
        const alarmId = this.#alarmIds[command.index % this.#alarmIds.length] ?? 'none';
        const transition = this.#transition(command.change, command.when);
        return this.#both((store) => store.update(command.owner, alarmId, transition));
      }
      case 'events':
        return this.#events(command);
      case 'look':
        return this.#look(command);
      case 'move': {
        const { owner: from, to, maxActive } = command;
        if (from === to) return undefined;
        return this.#both((store) => store.moveAlarms({ from, to, limits: { maxActive }, now: this.#now }));
      }
      case 'reopen':
        this.#store = await this.#underTest.reopen();
        return undefined;
      case 'die':
        this.#now += command.pass * 1000;
        this.#store = await this.#underTest.die();
        return this.#both((store) => store.endOrphanedClaims(this.#now));
    }
  }

  async #claim({ pass, limit, perOwner, busy }: Extract<Command, { do: 'claim' }>): Promise<void> {
    this.#now += pass * 1000;
    const inFlight = new Map<string, number>();
    for (const name of busy) inFlight.set(name, (inFlight.get(name) ?? 0) + 1);
    const request = { now: this.#now, limit, perOwner, inFlight };
    const claims = await this.#both((store) => store.claim(request));
    this.#claims.push(...(claims ?? []));
  }

  #complete({ which, outcome, when }: Extract<Command, { do: 'complete' }>): Promise<unknown> {
    const batch = this.#pick(which).map((claimed): Completion => {
      const { fireId } = claimed.occurrence;
      const at = this.#instant(when);
      const settle: Record<typeof outcome, Transition> = {
        rung: firedForGood(fireId),
        again: again(fireId, at),
        held: (state) =>
          settleDeferred(state, fireId, { until: at + 1000, dueAt: at, reason: `held back until ${at}` }),
        park: again(fireId, null),
        cancel: cancelled,
        onward: ({ alarm, occurrences }) => ({
          alarm,
          occurrences: [
            ...occurrences.filter((occurrence) => occurrence.fireId !== fireId),
            occurrenceOf(alarm, at, { source: 'trigger' }),
          ],
        }),
      };
      // A deferral takes the attempt back, so it leaves none in the ledger.
      const attempt =
        outcome === 'held' ? null : attemptOf(claimed, { startedAt: this.#now, finishedAt: this.#now + 1 });
      return { key: keyOf(claimed), attempt, settle: settle[outcome] };
    });
    return this.#both((store) => store.complete(batch));
  }

  async #events({ owner, index, ids, carried }: Extract<Command, { do: 'events' }>): Promise<void> {
    const alarmId = this.#alarmIds[index % this.#alarmIds.length] ?? 'none';
    const events = ids.map((id) => ({ id: `e${id}`, receivedAt: NOW + id, data: `${id}.0` }));
    const arrive = ({ alarm, occurrences }: AlarmState, fresh: readonly AlarmEvent[]) => {
      const last = eventStateOf(alarm).last + fresh.length;
      const options = encodeOptions({ ...optionsOf(alarm), event_state: { last, next: 1, bytes: 0 } });
      return { alarm: { ...alarm, options }, occurrences };
    };
    await this.#both((store) => store.recordEvents({ owner, alarmId, events, arrive }));
    await this.#both((store) => store.dropEvents(owner, alarmId, carried));
    await this.#both((store) => store.pruneEvents({ before: NOW + 2, limit: 1000 }));
  }

  #transition(change: Extract<Command, { do: 'update' }>['change'], when: number): Transition {
    const at = this.#instant(when);
    const transitions: Record<typeof change, Transition> = {
      cancel: cancelled,
      pause: paused,
      resume: ({ alarm, occurrences }) => ({
        // An active alarm has an occurrence (store.ts).
        alarm: { ...alarm, status: occurrences.length > 0 ? 'active' : alarm.status },
        occurrences: occurrences.map((occurrence, n) => ({
          ...occurrence,
          dueAt: occurrence.dueAt ?? at + n * 65_536,
        })),
      }),
      trigger: triggered(at),
      edit: edited({ wakeMessage: `words ${at}`, label: `label ${at}`, payload: `${at}.0`, urgent: when > 0 }),
      drop: ({ alarm }) => ({ alarm: { ...alarm, status: 'fired' }, occurrences: [] }),
      break: ({ alarm, occurrences }) => ({
        alarm: { ...alarm, label: 'never' },
        occurrences: occurrences.map((occurrence) => ({ ...occurrence, fence: occurrence.fence + 1 })),
      }),
      throw: () => {
        throw new ReveilleError('conflict', 'not now');
      },
    };
    return transitions[change];
  }

  async #look({ owner, busy }: Extract<Command, { do: 'look' }>): Promise<void> {
    const saturated = new Set<string>(busy);
    await this.#both((store) => store.nextDueAt(saturated));
    await this.#both((store) => store.findByKey(owner, 'a'));
    await this.#both((store) => store.list(owner, { limit: 3, status: 'active' }));
    await this.#both((store) => store.upcoming(owner, { limit: 3 }));
    await this.#both((store) => store.countOpen(owner));
  }

  /** All stored data. */
  async compareAll(): Promise<void> {
    await this.#both((store) => store.nextDueAt(new Set()));
    await this.#both((store) => store.countDue({ now: this.#now, atMost: 1000 }));
    for (const name of OWNERS) {
      await this.#both((store) => store.list(name, { limit: 1000 }));
      for (const id of this.#alarmIds) {
        await this.#both((store) => store.attempts(name, id, { limit: 1000 }));
        await this.#both((store) => store.eventsOf(name, id, { from: 1, to: 1000, maxBytes: 1e6 }));
      }
      await this.#both((store) => store.create(alarmDue(NOW, { owner: name }), { maxActive: 0 }));
    }
  }

  /** An instant that no other call uses, distinct below 1024 ms: the order among equals is unspecified. */
  #instant(seconds: number): number {
    this.#instants++;
    return this.#now - (this.#now % 1024) + seconds * 1024 + this.#instants;
  }

  #pick(which: readonly number[]): Claim[] {
    const { length } = this.#claims;
    return length === 0 ? [] : which.map((index) => this.#claims[index % length]!);
  }

  /** Calls both and compares; returns the store's answer, unless it refused. */
  async #both<T>(call: (store: AlarmStore) => Promise<T>): Promise<T | undefined> {
    const expected = await answerOf(call(this.#model));
    const actual = await answerOf(call(this.#store));
    assert.deepEqual(actual, expected);
    return actual.value;
  }
}

/**
 * @param runs number of walks
 * @throws with the shortest sequence of commands for which the store differs from the model
 */
export async function walkRandomly(open: OpenStore, runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 60, size: 'max' }), async (commands) => {
      const underTest = await open();
      try {
        const walk = new Walk(underTest);
        for (const command of commands) await walk.step(command);
        await walk.compareAll();
      } finally {
        await underTest.close();
      }
    }),
    { numRuns: runs },
  );
}
