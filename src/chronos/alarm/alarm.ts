/** The domain's nouns. Instants are milliseconds since the epoch; nothing here does I/O. */
import type { AbsenceReason, AlarmKind, AlarmStatus, FireOutcome } from '../../wire/alarm.ts';

/** An alarm as it is kept: what its owner defined, and how far it has come. */
export type Alarm = {
  /** UUIDv7, so that ids sort by creation. */
  id: string;
  /** The verified owner; every statement about an alarm carries it. */
  owner: string;
  kind: AlarmKind;
  label: string;
  /** The agent's words to its future self, byte for byte. */
  wakeMessage: string;
  /** JSON source text, never re-encoded; `null` when there is no payload. */
  payload: string | null;
  conversationId: string | null;
  idempotencyKey: string | null;

  /** For `once`: what was asked for, kept so that a repeated request can be recognised as the same. */
  delaySeconds: number | null;
  /** For `once`: the instant it is due. */
  fireAt: number | null;
  cronExpr: string | null;
  /** As the client wrote it; `null` means UTC. */
  timezone: string | null;
  /** Where an `@every` series counts from. */
  anchor: number;
  jitterSeconds: number;
  endsAt: number | null;
  maxFires: number | null;
  maxFailures: number;
  maxLatenessSeconds: number | null;
  /** Quiet hours of its user do not hold it back. */
  urgent: boolean;
  /** The computer is woken from its sleep for it, where that is arranged. */
  wakeComputer: boolean;
  /** The person whose words they are, proved when they were given; `null`: the agent's own. */
  setBy: string | null;

  status: AlarmStatus;
  /** Failed attempts at the present occurrence; back to zero when one is delivered or given up. */
  failureCount: number;
  lastError: string | null;
  createdAt: number;
  updatedAt: number;
  lastFiredAt: number | null;
  /** Delivered occurrences, triggered ones included. */
  fireCount: number;
  /** Delivered occurrences of the alarm's own schedule: what `maxFires` bounds. */
  scheduledFires: number;
};

/** Why an occurrence exists: the alarm's own schedule, or its owner's `trigger`. */
export type OccurrenceSource = 'schedule' | 'trigger';

/**
 * One occurrence that is still owed. It exists from the moment it is known until it is delivered, given up or
 * cancelled; the ledger remembers it afterwards. An alarm has at most one occurrence with source `schedule`.
 */
export type Occurrence = {
  /** `<alarm id>@<scheduledFor>`; the same for every attempt. */
  fireId: string;
  alarmId: string;
  owner: string;
  source: OccurrenceSource;
  /** The instant it stands for, jitter included. */
  scheduledFor: number;
  /**
   * The instant the schedule named, before jitter: the series goes on from here. For a trigger the same as
   * `scheduledFor`.
   */
  nominal: number;
  /** When to try next; `null` while it is parked: its alarm is paused, failed or cancelled. */
  dueAt: number | null;
  /** Attempts begun so far. */
  attempt: number;
  /** Occurrences of the series that passed unfired before this one. */
  missedCount: number;
  /** Grows with every claim; whoever holds an older one has lost the occurrence. */
  fence: number;
  /** Until when its holder may work on it; `null` when nobody does. */
  leaseUntil: number | null;
  /** When the attempt under way was claimed; `null` when none is. */
  claimedAt: number | null;
  /**
   * Why the router last held it back, in words without U+0000; `null` when it did not. A hold is no attempt and no
   * failure. At `dueAt` the router is asked again, which may be long before the hold ends.
   */
  heldReason: string | null;
  /** When the hold ends, as far as the router knew; `null` without one. */
  heldUntil: number | null;
};

/** Of an occurrence that nothing holds back. */
export const NOT_HELD = { heldReason: null, heldUntil: null } as const;

/** An alarm together with everything it still owes. */
export type AlarmState = { alarm: Alarm; occurrences: readonly Occurrence[] };

/**
 * A pure change of an alarm: what the store runs inside its transaction. Throwing a `ReveilleError` leaves all as it
 * was.
 */
export type Transition = (state: AlarmState) => AlarmState;

/** One attempt at one occurrence, as the ledger keeps it. */
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
  /** How long after `startedAt` the machine was ready to take the wake; `null` when it was not, or nobody said so. */
  machineReadyMs: number | null;
  /** Why it was late: nobody was there when it was due; `null` when somebody was, or nobody knows. */
  lateBecause: AbsenceReason | null;
};

/** What the rows of an alarm cost besides its texts: columns, indexes, what it owes. */
const ROW_BYTES = 1024;

/** What an alarm takes up in a store, roughly: what the bounds on stored bytes count. */
export function storedBytes({ wakeMessage, payload, label }: Alarm): number {
  return ROW_BYTES + Buffer.byteLength(wakeMessage) + Buffer.byteLength(payload ?? '') + Buffer.byteLength(label);
}

/** Somebody holds the occurrence and their lease has not run out. */
export function isLeased(occurrence: Occurrence, now: number): boolean {
  return occurrence.leaseUntil !== null && occurrence.leaseUntil > now;
}

/** The occurrence that the alarm's own schedule owes, if any. */
export function scheduledOccurrence(state: AlarmState): Occurrence | undefined {
  return state.occurrences.find((occurrence) => occurrence.source === 'schedule');
}
