/** Domain types. Instants are milliseconds since the epoch. This module does no I/O. */
import type { AbsenceReason, FireOutcome } from '../../wire/alarm.ts';
import type { ColumnField, MemberOf, StoredValue } from '../../wire/alarm-fields.ts';
import { optionsOf } from './options.ts';

/**
 * A stored alarm: its owner's definition and its progress. `wire/alarm-fields.ts` describes its members, which have the
 * fields' names in camel case. `options` has the rare ones; `optionsOf` reads it.
 */
export type Alarm = { -readonly [N in ColumnField as MemberOf<N>]: StoredValue<N> };

/** Why an occurrence exists: the alarm's own schedule, or its owner's `trigger`. */
export type OccurrenceSource = 'schedule' | 'trigger';

/**
 * A pending occurrence. It exists until it is delivered, given up or cancelled; then only the ledger has it. An alarm
 * has at most one occurrence with source `schedule`.
 */
export type Occurrence = {
  /** `<alarm id>@<scheduledFor>`; the same for every attempt. */
  fireId: string;
  alarmId: string;
  owner: string;
  source: OccurrenceSource;
  /** The instant that the occurrence represents, jitter included. */
  scheduledFor: number;
  /**
   * The instant of the schedule before jitter; the series continues from it. For a trigger it equals `scheduledFor`.
   */
  nominal: number;
  /** The instant of the next try; `null` while it is parked: its alarm is paused, failed or cancelled. */
  dueAt: number | null;
  /** Attempts begun so far. */
  attempt: number;
  /** Occurrences of the series that passed unfired before this one. */
  missedCount: number;
  /** Every claim increments it. A process with a lower value has lost the occurrence. */
  fence: number;
  /** When the process that delivers it claimed it; `null` when none does. A claim lasts as long as its process. */
  claimedAt: number | null;
  /** The router's reason for the deferral, without U+0000; `null` without one, and for a wait for a turn. */
  heldReason: string | null;
  /**
   * When the deferral ends at the latest; `null` without one. The router defers an occurrence, or it waits for the turn
   * of an earlier fire (`policies.ts`). A deferral is neither an attempt nor a failure. The occurrence is tried again at
   * `dueAt`, which may be long before the deferral ends.
   */
  heldUntil: number | null;
  /** Whose request made it due (`storedCause`); `null`: its own schedule, or the events that it carries. */
  cause: string | null;
};

/** Whether an occurrence waits for the turn of an earlier fire: it is deferred, and the router gave no reason. */
export function waitsForTurn({ heldReason, heldUntil }: Pick<Occurrence, 'heldReason' | 'heldUntil'>): boolean {
  return heldUntil !== null && heldReason === null;
}

/** Why an occurrence waits for a turn. */
export const TURN_RUNS = 'an earlier turn still runs';

/** Members of an occurrence that is not deferred. */
export const NOT_DEFERRED = { heldReason: null, heldUntil: null } as const;

/** An alarm and all its pending occurrences. */
export type AlarmState = { alarm: Alarm; occurrences: readonly Occurrence[] };

/**
 * A pure change of an alarm, run inside the store's transaction. A thrown `ReveilleError` leaves the alarm unchanged.
 */
export type Transition = (state: AlarmState) => AlarmState;

/** One attempt at one occurrence, as stored in the ledger. */
export type Attempt = {
  fireId: string;
  alarmId: string;
  owner: string;
  scheduledFor: number;
  /** Counts from 1. */
  attempt: number;
  startedAt: number;
  finishedAt: number;
  outcome: FireOutcome;
  httpStatus: number | null;
  error: string | null;
  missedCount: number;
  /**
   * Milliseconds from `startedAt` until the machine was ready for the wake; `null` when it was not ready or did not
   * report it.
   */
  machineReadyMs: number | null;
  /** Why no process could deliver it when it was due; `null` when one could, or when the reason is unknown. */
  lateBecause: AbsenceReason | null;
  /** Who caused the fire (`storedCause`); `null`: the alarm's own clock. */
  cause: string | null;
};

/** Approximate bytes of an alarm's rows without its texts: columns, indexes, pending occurrences. */
const ROW_BYTES = 1024;

/** Approximate stored size of an alarm and its waiting events, in bytes. The limits on stored bytes count it. */
export function storedBytes(alarm: Alarm): number {
  const { wakeMessage, payload, label, options } = alarm;
  const texts = [wakeMessage, payload ?? '', label, options ?? ''];
  const events = alarm.kind === 'event' ? (optionsOf(alarm).event_state?.bytes ?? 0) : 0;
  return texts.reduce((bytes, text) => bytes + Buffer.byteLength(text), ROW_BYTES + events);
}

/** Whether a process has claimed the occurrence to deliver it. */
export function isClaimed(occurrence: Occurrence): boolean {
  return occurrence.claimedAt !== null;
}

/** The pending occurrence of the alarm's own schedule, if any. */
export function scheduledOccurrence(state: AlarmState): Occurrence | undefined {
  return state.occurrences.find((occurrence) => occurrence.source === 'schedule');
}

/**
 * Other pending occurrences than that of the schedule, which is replaced or ends. A running attempt becomes an
 * occurrence of its own that is not retried.
 */
export function withoutSchedule(occurrences: readonly Occurrence[]): Occurrence[] {
  return occurrences.flatMap((one): Occurrence[] => {
    if (one.source !== 'schedule') return [one];
    return isClaimed(one) ? [{ ...one, source: 'trigger', dueAt: null, ...NOT_DEFERRED }] : [];
  });
}
