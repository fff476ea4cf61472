/**
 * What the checker judges: three logs, kept by three parties that do not talk to each other.
 *
 * - The client's: what it asked chronosd for, and what it was told.
 * - The database's: what chronosd keeps, read once the dust has settled.
 * - The receiving end's: the wakes that arrived, and the turns that ran because of them.
 *
 * Client and receiver keep theirs as lines ({@link ClientLine}, {@link ReceiverLine}; `journal.ts` writes them, in
 * memory or to a file), which `fold.ts` puts together. Instants are epoch milliseconds everywhere. Each party goes by a
 * clock of its own: the two logs declare by how much theirs may differ from the database's.
 */
import { z } from 'zod';
import type { Alarm, Attempt, Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import { ALARM_KINDS, ALARM_STATUSES } from '../../../src/wire/alarm.ts';
import { TURN_STATUSES } from '../../../src/wire/turn.ts';

/** The version of the lines below; a log of another one is refused. */
export const LOG_VERSION = 1;

/** What `Date` can show. */
const epochMs = z.number().min(-8.64e15).max(8.64e15);
const nullableText = z.string().nullable();

/** The first line of every log. */
export const headerSchema = z.strictObject({
  log: z.enum(['client', 'receiver']),
  version: z.number(),
  /**
   * By how many milliseconds the clock of this log may differ from the database's, either way. Where a fault moves the
   * database's clock (SQLite goes by chronosd's), it is at least the size of the jump.
   */
  clockToleranceMs: z.number().min(0),
  /** Receiver only: whether this end also runs turns and logs each of them. Without it no turns are looked for. */
  runsTurns: z.boolean().optional(),
});
export type LogHeader = z.infer<typeof headerSchema>;

/**
 * What a client asked for when it created an alarm: every member said, `null` where it left one out. `definition.ts`
 * makes them.
 */
export const definitionSchema = z.strictObject({
  kind: z.enum(ALARM_KINDS),
  message: z.string(),
  /** JSON source text. */
  payload: nullableText,
  conversation: nullableText,
  /** For `once`: the instant, or how long after the create, in seconds. */
  fireAt: epochMs.nullable(),
  delaySeconds: z.number().nullable(),
  /** For `cron`: five fields, a descriptor or `@every`. */
  expression: nullableText,
  /** For `cron`; `null` is UTC. */
  timezone: nullableText,
  endsAt: epochMs.nullable(),
  maxFires: z.int().nullable(),
  jitterSeconds: z.number().nullable(),
  maxLatenessSeconds: z.number().nullable(),
  maxFailures: z.int().nullable(),
});
export type Definition = z.infer<typeof definitionSchema>;

const onAlarm = { alarmId: z.string() };

/** What a client can ask for. */
export const operationSchema = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('create'), key: nullableText, definition: definitionSchema }),
  /** `change` holds the members that the edit sets; `null` takes an optional one away. */
  z.strictObject({ op: z.literal('update'), ...onAlarm, change: definitionSchema.partial() }),
  z.strictObject({ op: z.literal('cancel'), ...onAlarm }),
  z.strictObject({ op: z.literal('pause'), ...onAlarm }),
  z.strictObject({ op: z.literal('resume'), ...onAlarm }),
  z.strictObject({ op: z.literal('trigger'), ...onAlarm }),
  z.strictObject({ op: z.literal('redrive'), ...onAlarm }),
  /** Looking at an alarm. */
  z.strictObject({ op: z.literal('read'), ...onAlarm }),
  /**
   * A trial: the call's `user` reaches for an alarm that is not theirs. `action` says how (`get`, `list`, `cancel`,
   * `patch`, `fires`, `trigger`…), for people. `alarmId` is the target, also where the request does not name it
   * (`list`).
   */
  z.strictObject({ op: z.literal('intrude'), ...onAlarm, action: z.string() }),
]);
export type Operation = z.infer<typeof operationSchema>;

/** What came back. */
export const answerSchema = z.discriminatedUnion('answer', [
  /** Done, says chronosd. Members that the answer did not have are left out. */
  z.strictObject({
    answer: z.literal('acknowledged'),
    alarmId: z.string().optional(),
    status: z.enum(ALARM_STATUSES).optional(),
    /** `null` or left out: the answer named none. */
    nextFireAt: epochMs.nullable().optional(),
    /** Of a create: the key was known. */
    deduped: z.boolean().optional(),
    /** Of a cancel: a delivery was under way. */
    inFlight: z.boolean().optional(),
    /** Of a trigger: the occurrence it made. */
    fireId: z.string().optional(),
    /** Of an intrusion: the whole text that came back. */
    revealed: z.string().optional(),
  }),
  /** Not done, says chronosd, and nothing of it was kept. */
  z.strictObject({ answer: z.literal('refused'), code: z.string(), message: z.string() }),
  /** Nobody knows: no answer, or one that leaves it open (`unavailable`, `internal`). */
  z.strictObject({ answer: z.literal('lost'), reason: z.string() }),
]);
export type Answer = z.infer<typeof answerSchema>;

/**
 * A line of the client's log. `call` ties an answer to its invocation; an invocation without an answer counts as lost.
 */
export const clientLineSchema = z.discriminatedUnion('event', [
  z.strictObject({
    event: z.literal('invoked'),
    call: z.int(),
    at: epochMs,
    user: z.string(),
    operation: operationSchema,
  }),
  z.strictObject({ event: z.literal('answered'), call: z.int(), at: epochMs, answer: answerSchema }),
]);
export type ClientLine = z.infer<typeof clientLineSchema>;

/** A line of the receiver's log. `wake` ties an answer to its wake. */
export const receiverLineSchema = z.discriminatedUnion('event', [
  z.strictObject({
    event: z.literal('woken'),
    wake: z.int(),
    at: epochMs,
    fireId: z.string(),
    user: z.string(),
    conversation: nullableText,
    message: z.string(),
    /** The source text as it arrived. */
    payload: nullableText,
    /** Where the wake says it (chronosd's does, the router's does not pass it on). */
    attempt: z.int().optional(),
    missedCount: z.int().optional(),
  }),
  /** What the receiver answered. Without this line it answered nothing, or the answer did not get away. */
  z.strictObject({ event: z.literal('answered'), wake: z.int(), at: epochMs, status: z.int() }),
  z.strictObject({
    event: z.literal('turn'),
    at: epochMs,
    fireId: z.string(),
    user: z.string(),
    /** `null` where the log does not know it. */
    conversation: nullableText,
    message: z.string(),
    /** Left out where the log does not know it. */
    payload: nullableText.optional(),
    status: z.enum(TURN_STATUSES),
  }),
]);
export type ReceiverLine = z.infer<typeof receiverLineSchema>;

/** One call of a client from beginning to end. */
export type Call = {
  user: string;
  operation: Operation;
  /** When it was sent, by the client's clock. */
  invokedAt: number;
  /** When the answer was there, or given up; `null` when the log ends before. */
  answeredAt: number | null;
  answer: Answer;
};

/** One wake that arrived. */
export type Wake = {
  fireId: string;
  user: string;
  conversation: string | null;
  message: string;
  payload: string | null;
  attempt: number | null;
  missedCount: number | null;
  receivedAt: number;
  answeredAt: number | null;
  /** The HTTP status of the answer; `null`: none. 2xx means accepted. */
  status: number | null;
};

/** One turn that a wake caused. */
export type Turn = Omit<Extract<ReceiverLine, { event: 'turn' }>, 'event'>;

export type ClientLog = { clockToleranceMs: number; calls: readonly Call[] };

export type ReceiverLog = {
  clockToleranceMs: number;
  wakes: readonly Wake[];
  /** `null`: this end runs no turns, or does not say. */
  turns: readonly Turn[] | null;
};

/**
 * A row of `alarms`, `occurrences` or `fire_attempts` as it was before or after a change; only what the checker looks
 * at.
 */
export type AlarmImage = { id: string; status: Alarm['status'] };
export type OccurrenceImage = Pick<
  Occurrence,
  'fireId' | 'alarmId' | 'source' | 'nominal' | 'dueAt' | 'attempt' | 'fence' | 'leaseUntil' | 'claimedAt'
>;
export type AttemptImage = Pick<Attempt, 'fireId' | 'alarmId' | 'attempt' | 'outcome'>;

type Change<Table, Image> = {
  table: Table;
  /** Grows; of two changes to one row, the later has the larger one. */
  seq: number;
  /** The database transaction; `null` where the engine does not tell (SQLite). */
  transaction: string | null;
  /** The database's clock. */
  at: number;
  /** `null`: the row came into being. */
  before: Image | null;
  /** `null`: the row is gone. */
  after: Image | null;
};

/** One row's change, written by a trigger inside the transaction that made it: nobody who writes can avoid it. */
export type AuditEntry =
  | Change<'alarms', AlarmImage>
  | Change<'occurrences', OccurrenceImage>
  | Change<'fire_attempts', AttemptImage>;

/** What the database holds, all read at one instant. */
export type DatabaseLog = {
  /**
   * The database's time as of which it is judged: when it was read, or, where every dispatcher had been stopped before,
   * when the last one was. What is due or leased beyond this instant is nobody's fault.
   */
  readAt: number;
  /** Since when nothing has been broken any more, so that what is overdue had time to recover; `null`: all along. */
  wholeSince: number | null;
  alarms: readonly Alarm[];
  occurrences: readonly Occurrence[];
  /** The ledger, from the first attempt on: nothing of it may have been pruned. */
  attempts: readonly Attempt[];
  /**
   * What the audit triggers (`audit/`) wrote, in order; `null` when none were installed. They must have been from the
   * beginning.
   */
  audit: readonly AuditEntry[] | null;
};

/** What chronosd was configured with, as far as it is promised to be kept. */
export type Policy = {
  /** `max_failures` of an alarm that names none. */
  maxFailures: number;
  /** Deliveries at once to one user. Beyond it, what is due waits for its own user's places. */
  userConcurrency: number;
  /** A lease is ended at most this long after it ran out. */
  sweepMs: number;
  /** What is overdue must be in somebody's hands within this time (promise 5). */
  overdueLimitMs: number;
};

export const DEFAULT_POLICY: Policy = {
  maxFailures: 100,
  userConcurrency: 4,
  sweepMs: 5_000,
  overdueLimitMs: 20_000,
};

/** All that is judged. */
export type History = { client: ClientLog; database: DatabaseLog; receiver: ReceiverLog; policy: Policy };
