/**
 * One process's connection to the database: the store port over a network that delays, refuses, and loses answers. It
 * throws only the port's own failures (`unavailable`), at the moments at which they can occur.
 */
import type { Transition } from '../../../src/chronos/alarm/alarm.ts';
import type { AlarmStore, Claim, Completion, CreateResult } from '../../../src/chronos/store/store.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { Dice } from './dice.ts';
import type { Member } from './liveness.ts';
import type { Process } from './process.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';
import type { Watch } from './watch.ts';
import type { Fate, Weather } from './weather.ts';

export type StoreLinkOptions = {
  process: Process;
  /** The replica of the process. */
  replica: number;
  /** The process, as others see it. */
  member: Member;
  /** The database at the moment of a call. */
  durable: () => AlarmStore;
  /** The database is inside this process: operations that have not started when it dies are never done. */
  inside: boolean;
  /** The process's estimate of the database's time. */
  now: () => number;
  /** The current or a recent estimate, the later of the two. */
  latestDatabaseNow: () => number;
  timeline: Timeline;
  weather: Weather;
  trace: Trace;
  watch: Watch;
  dice: Dice;
};

export type StoreLink = {
  store: AlarmStore;
  /** A query that is no operation of the port; it fails like one. */
  ask<T>(question: () => T): Promise<T>;
};

type Operation = (...parameters: unknown[]) => Promise<unknown>;
type Outcome = { value: unknown } | { error: unknown };
type Hooks = {
  /** An operation was carried out, and its answer does not arrive. */
  onLost?: (value: unknown) => void;
  /** Passes an answer on; default: at once. */
  give?: (value: unknown, resolve: (value: unknown) => void) => void;
};

const FAILURE_TEXTS: Record<Fate['kind'], string> = {
  answered: '',
  refused: 'the database refused the connection',
  lost: 'the connection was lost before the answer',
  late: 'the connection was lost before the answer',
  hung: 'the database did not answer in time',
};

/**
 * The port as one process sees it. After its death, no call of a process reaches the database, and no answer returns.
 */
export function linkStore(options: StoreLinkOptions): StoreLink {
  const { process, replica, member, durable, inside, timeline, weather, trace, watch, dice } = options;
  let closed = false;

  /** Runs one operation of the port on the database. */
  const operate = async (name: keyof AlarmStore, given: unknown[]): Promise<unknown> => {
    const operation = durable()[name] as Operation;
    const parameters = dice.chance(0.2) ? rehearsed(name, given) : given;
    const value = await timeline.during(operation.apply(durable(), parameters));
    trace.note(process.name, `store ${name}`, summaryOf(value));
    return value;
  };

  const travel = (name: string, operation: () => Promise<unknown>, { onLost, give }: Hooks = {}): Promise<unknown> => {
    // A dead process may still have running code here; its result is not used.
    if (process.isDead) return new Promise(() => {});
    const carryOut = async (): Promise<Outcome> => {
      try {
        return { value: await operation() };
      } catch (error) {
        trace.note(process.name, `store ${name} threw`, error instanceof Error ? error.message : String(error));
        return { error };
      }
    };
    const fate = weather.fate(replica);
    /** Whether a request that left before its process died still arrives. */
    const survives = !inside && dice.chance(0.5);
    return new Promise((resolve, reject) => {
      const back = (outcome: Outcome) =>
        timeline.after(fate.backMs, () =>
          process.deliver(() => {
            if ('error' in outcome) reject(outcome.error);
            else if (give) give(outcome.value, resolve);
            else resolve(outcome.value);
          }),
        );
      const carryOutUnanswered = async () => {
        const outcome = await carryOut();
        if ('value' in outcome) onLost?.(outcome.value);
      };
      const there = async () => {
        if (process.isDead && !survives) return;
        const failed: Outcome = { error: new ReveilleError('unavailable', FAILURE_TEXTS[fate.kind]) };
        if (fate.kind !== 'answered') trace.note(process.name, `store ${name} will be`, fate.kind);
        switch (fate.kind) {
          case 'answered':
            back(await carryOut());
            return;
          case 'refused':
            back(failed);
            return;
          case 'lost':
            await carryOutUnanswered();
            back(failed);
            return;
          case 'hung':
            if (dice.chance(0.5)) await carryOutUnanswered();
            back(failed);
            return;
          case 'late':
            back(failed);
            timeline.after(fate.backMs + fate.lateMs, () => void carryOutUnanswered());
        }
      };
      if (fate.thereMs === 0) void there();
      else timeline.after(fate.thereMs, () => (inside ? process.deliver(() => void there()) : void there()));
    });
  };

  const call = (name: keyof AlarmStore, parameters: unknown[]): Promise<unknown> => {
    if (closed && !process.isDead) watch.violation(`${process.name} used ${name} of its store after it had closed it`);
    const askedAt = options.latestDatabaseNow();
    watch.clockShown(options.now());
    if (name === 'claim') return claim(parameters, askedAt);
    // The others end the claims of a dead replica.
    if (name === 'endOrphanedClaims' && !inside) return Promise.resolve(0);
    return travel(name, async () => {
      const value = await operate(name, parameters);
      if (name === 'complete') {
        member.ended((parameters[0] as readonly Completion[]).map(({ key }) => key));
        if ((value as string[]).includes('lost_claim')) watch.countEvent('claim lost');
      }
      if (name === 'create') watch.countEvent(`create: ${(value as CreateResult).result.replace('_', ' ')}`);
      return value;
    });
  };

  const claim = async (parameters: unknown[], askedAt: number): Promise<unknown> => {
    const { incarnation, until } = member.beginClaim();
    const operation = async () => {
      if (timeline.now >= until) return [];
      const claims = (await operate('claim', parameters)) as Claim[];
      member.claimed(incarnation, claims);
      for (const each of claims) watch.claimed(process, each, askedAt);
      return claims;
    };
    return travel('claim', operation, {
      onLost: (claims) => member.lost(claims as Claim[]),
      give: (claims, resolve) => member.handOut(incarnation, claims as Claim[], resolve),
    });
  };

  const store = new Proxy({} as AlarmStore, {
    get(_, name: keyof AlarmStore | 'then') {
      // A promise that resolves with this store must not treat it as another promise.
      if (name === 'then') return undefined;
      if (name === 'now') return options.now;
      if (name === 'close')
        return async () => {
          closed = true;
          member.leave();
        };
      return (...parameters: unknown[]) => call(name, parameters);
    },
  });
  return { store, ask: <T>(question: () => T) => travel('ask', async () => question()) as Promise<T> };
}

/** Some databases run a transition more than once, and use the last result. */
function twice(transition: Transition): Transition {
  return (state) => {
    transition(state);
    return transition(state);
  };
}

function rehearsed(name: keyof AlarmStore, parameters: unknown[]): unknown[] {
  if (name === 'update') {
    const [owner, alarmId, transition] = parameters as Parameters<AlarmStore['update']>;
    return [owner, alarmId, twice(transition)];
  }
  if (name === 'complete') {
    const [completions] = parameters as Parameters<AlarmStore['complete']>;
    return [completions.map((completion) => ({ ...completion, settle: twice(completion.settle) }))];
  }
  return parameters;
}

/** A short text that distinguishes answers. */
function summaryOf(value: unknown): string {
  if (value === undefined || value === null) return '-';
  if (value instanceof Set) return `{${[...value].join(' ')}}`;
  if (Array.isArray(value)) return `[${value.map(summaryOf).join(' ')}]`;
  if (typeof value !== 'object') return String(value);
  if ('occurrence' in value) {
    const { fireId, fence } = value.occurrence as { fireId: string; fence: number };
    return `${fireId}#${fence}`;
  }
  if ('result' in value) return String(value.result);
  if ('alarm' in value) {
    const { id, status } = value.alarm as { id: string; status: string };
    return `${id}:${status}`;
  }
  return Object.keys(value).join(' ');
}
