/** A dispatcher on a real SQLite file, with a clock and a waker that the test controls. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { AlarmState, Attempt, Transition } from '../../../src/chronos/alarm/alarm.ts';
import { draftAlarm, firstOccurrence } from '../../../src/chronos/alarm/definition.ts';
import { type Body, createInput, LIMITS } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import { Dispatcher, type DispatcherOptions } from '../../../src/chronos/dispatch/dispatcher.ts';
import type { WakeOutcome, WakeResult, Waker } from '../../../src/chronos/dispatch/waker.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import type { AlarmStore, Claim } from '../../../src/chronos/store/store.ts';
import { ManualClock, settle } from '../../../src/kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { AlarmEvent } from '../../../src/wire/conditions.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';

export const DELIVERED: WakeResult = { outcome: 'delivered', httpStatus: 202 };
export const BUSY: WakeResult = { outcome: 'failed', httpStatus: 503, error: 'busy', final: false };
export const LOST: WakeResult = { outcome: 'unknown', httpStatus: null, error: 'no answer' };

export type Wake = {
  claim: Claim;
  at: number;
  late: string | undefined;
  events: readonly AlarmEvent[] | undefined;
  answer: (result: WakeOutcome) => void;
};

/** A waker that answers as the test decides, or leaves the wake hanging until the test answers it. */
export class HandWaker implements Waker {
  readonly wakes: Wake[] = [];
  hanging = 0;
  most = 0;
  closed = false;
  readonly #clock: ManualClock;
  readonly #respond: (claim: Claim) => WakeOutcome | undefined;

  constructor(clock: ManualClock, respond: (claim: Claim) => WakeOutcome | undefined) {
    this.#clock = clock;
    this.#respond = respond;
  }

  wake(claim: Claim, late?: string, events?: readonly AlarmEvent[]): Promise<WakeOutcome> {
    return new Promise((resolve) => {
      const wake: Wake = {
        ...{ claim, late, events },
        at: this.#clock.now(),
        answer: (result) => {
          if (this.#open.delete(wake)) this.hanging--;
          resolve(result);
        },
      };
      this.#open.add(wake);
      this.hanging++;
      this.most = Math.max(this.most, this.hanging);
      this.wakes.push(wake);
      const result = this.#respond(claim);
      if (result) wake.answer(result);
    });
  }

  readonly #open = new Set<Wake>();

  /** Aborts hanging wakes, as the HTTP waker does. */
  async close(): Promise<void> {
    this.closed = true;
    for (const wake of this.#open) wake.answer(LOST);
  }
}

/** A store whose operations can be made to fail as they do on a full disk. */
export class FaultyStore {
  readonly failing = new Set<keyof AlarmStore>();
  readonly calls = new Map<keyof AlarmStore, number>();
  /** Called before an operation is performed. */
  onCall: ((name: keyof AlarmStore) => void) | undefined;
  readonly store: AlarmStore;

  constructor(real: AlarmStore) {
    this.store = new Proxy(real, {
      get: (target, name: keyof AlarmStore) => {
        const operation = target[name] as (...parameters: unknown[]) => Promise<unknown>;
        return (...parameters: unknown[]) => {
          this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
          this.onCall?.(name);
          if (this.failing.has(name)) return Promise.reject(new ReveilleError('unavailable', 'the disk is full'));
          return operation.apply(target, parameters);
        };
      },
    });
  }

  count(name: keyof AlarmStore): number {
    return this.calls.get(name) ?? 0;
  }
}

export type BenchOptions = {
  respond?: (claim: Claim) => WakeOutcome | undefined;
  config?: Partial<DispatcherOptions['config']>;
  random?: () => number;
  /** Do not start the dispatcher. */
  idle?: boolean;
};

/** Sets up store, waker and dispatcher, and closes them after the test. */
export async function createBench(t: TestContext, options: BenchOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-dispatch-'));
  const clock = new ManualClock();
  const real = openSqliteStore({ path: join(folder, 'chronos.db'), clock, log: silentLogger });
  const faults = new FaultyStore(real);
  const { store } = faults;
  const waker = new HandWaker(clock, options.respond ?? (() => DELIVERED));
  const started: Dispatcher[] = [];

  const dispatch = (overrides: Partial<DispatcherOptions> = {}): Dispatcher => {
    const dispatcher = new Dispatcher({
      store,
      waker,
      clock,
      log: silentLogger,
      random: options.random ?? (() => 0),
      ...overrides,
      config: {
        concurrency: 256,
        userConcurrency: 4,
        tickMs: 1000,
        ...options.config,
        ...overrides.config,
      },
    });
    started.push(dispatcher);
    dispatcher.start();
    return dispatcher;
  };
  let dispatcher: Dispatcher | undefined = options.idle ? undefined : dispatch();

  t.after(async () => {
    faults.failing.clear();
    await waker.close();
    for (const each of started) {
      let drained = false;
      const done = each.drain(0).then(() => {
        drained = true;
      });
      while (!drained) await clock.advance(50);
      await done;
    }
    await real.close();
    rmSync(folder, { recursive: true });
  });

  return {
    clock,
    store,
    faults,
    waker,
    /** Starts another dispatcher on the same store: after the last one has ended, or beside it. */
    dispatch(overrides?: Partial<DispatcherOptions>): Dispatcher {
      dispatcher = dispatch(overrides);
      return dispatcher;
    },
    get dispatcher(): Dispatcher {
      return dispatcher!;
    },
    /** Creates an alarm and notifies the dispatcher, as the HTTP side does. */
    async set(
      body: Body,
      owner = 'ada',
      { silent = false } = {},
    ): Promise<{ id: string; fireId: string; due: number }> {
      const now = clock.now();
      const alarm = draftAlarm(createInput(body), { id: randomUUID(), owner, now, limits: LIMITS });
      const occurrence = firstOccurrence(alarm, now, LIMITS);
      const { result } = await store.create({ alarm, occurrence }, { maxActive: 100_000 });
      if (result !== 'created') throw new Error(result);
      if (!silent) dispatcher?.notifyDue(occurrence.dueAt!);
      return { id: alarm.id, fireId: occurrence.fireId, due: occurrence.dueAt! };
    },
    async state(id: string, owner = 'ada'): Promise<AlarmState> {
      const state = await store.get(owner, id);
      if (!state) throw new Error(`no alarm ${id}`);
      return state;
    },
    async change(id: string, transition: Transition, owner = 'ada'): Promise<AlarmState> {
      const state = await store.update(owner, id, transition);
      if (!state) throw new Error(`no alarm ${id}`);
      for (const { dueAt } of state.occurrences) if (dueAt !== null) dispatcher?.notifyDue(dueAt);
      return state;
    },
    /** The ledger of an alarm, oldest first. */
    async ledger(id: string, owner = 'ada'): Promise<Attempt[]> {
      return (await store.attempts(owner, id, { limit: 500 })).reverse();
    },
    /** Lets pending work settle without moving time. */
    settle,
  };
}
