/** A defect added on purpose. */
import type { AlarmState, Transition } from '../../../src/chronos/alarm/alarm.ts';
import type { Waker } from '../../../src/chronos/dispatch/waker.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import type { Scenario } from './scenario.ts';

export type Mutant = {
  /** Description of the defect. */
  defect: string;
  /** Breaks the store as one process sees it. */
  store?: (store: AlarmStore) => AlarmStore;
  /** Breaks the database that all processes share. */
  durable?: (store: AlarmStore) => AlarmStore;
  /** Breaks the connection to the router. */
  waker?: (waker: Waker) => Waker;
  /** Breaks the knowledge about which processes live. */
  liveness?: 'gives-up-nobody' | 'proves-nothing';
  /** Agents forget the fire ids that they have accepted. */
  forgetful?: boolean;
  /** The worlds in which it can show; most worlds by default. */
  shows?: (scenario: Scenario) => boolean;
};

/** A store with some operations replaced. */
export function replacing(store: AlarmStore, operations: (real: AlarmStore) => Partial<AlarmStore>): AlarmStore {
  const replaced = operations(store);
  return new Proxy(store, { get: (target, name: keyof AlarmStore) => replaced[name] ?? target[name] });
}

/** Whether a transition cancels its alarm. */
export function cancels(before: AlarmState, transition: Transition): boolean {
  return before.alarm.status !== 'cancelled' && transition(before).alarm.status === 'cancelled';
}
