/**
 * The input of the checker: three independent logs.
 *
 * - The client's: its requests to chronosd, and the answers.
 * - The database's: chronosd's stored state, read after everything has ended.
 * - The receiver's: the received wakes, and the turns that they started.
 *
 * Client and receiver store theirs as lines ({@link ClientLine}, {@link ReceiverLine}; `journal.ts` writes them, in
 * memory or to a file), which `fold.ts` joins. All times are epoch milliseconds. Each log uses its own clock: the two
 * logs declare the maximum difference between theirs and the database's.
 */
import { z } from 'zod';
import type { Alarm, Attempt, Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import { ALARM_KINDS, ALARM_STATUSES } from '../../../src/wire/alarm-fields.ts';
import { TURN_STATUSES } from '../../../src/wire/turn.ts';

/** The version of the lines below; a log of another version is refused. */
export const LOG_VERSION = 1;

/** The range of `Date`. */
const epochMs = z.number().min(-8.64e15).max(8.64e15);
const nullableText = z.string().nullable();

/** The first line of every log. */
export const headerSchema = z.strictObject({
  log: z.enum(['client', 'receiver']),
  version: z.number(),
  /**
   * Maximum difference between the clock of this log and the database's, in milliseconds, in either direction. Where a
   * fault moves the database's clock (SQLite uses chronosd's), it is at least the size of the jump.
   */
  clockToleranceMs: z.number().min(0),
  /** Receiver only: whether it also runs turns and logs each of them. Without it no turns are expected. */
  runsTurns: z.boolean().optional(),
});
export type LogHeader = z.infer<typeof headerSchema>;

/** A client's request for an alarm: every member is present, `null` for an omitted one. `definition.ts` makes them. */
export const definitionSchema = z.strictObject({
  kind: z.enum(ALARM_KINDS),
  message: z.string(),
  /** JSON source text. */
  payload: nullableText,
  conversation: nullableText,
  /** For `once`: the time, or the delay after the create, in seconds. */
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

/** A client's requests. */
export const operationSchema = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('create'), key: nullableText, definition: definitionSchema }),
  /** `change` has the members that the edit sets; `null` removes an optional one. */
  z.strictObject({ op: z.literal('update'), ...onAlarm, change: definitionSchema.partial() }),
  z.strictObject({ op: z.literal('cancel'), ...onAlarm }),
  z.strictObject({ op: z.literal('pause'), ...onAlarm }),
  z.strictObject({ op: z.literal('resume'), ...onAlarm }),
  z.strictObject({ op: z.literal('trigger'), ...onAlarm }),
  z.strictObject({ op: z.literal('redrive'), ...onAlarm }),
  /** Reads an alarm. */
  z.strictObject({ op: z.literal('read'), ...onAlarm }),
  /**
   * An intrusion: the call's `user` tries to access another owner's alarm. `action` names the method (`get`, `list`,
   * `cancel`, `patch`, `fires`, `trigger`…), for the reader. `alarmId` is the target, even if the request does not name
   * it (`list`).
   */
  z.strictObject({ op: z.literal('intrude'), ...onAlarm, action: z.string() }),
]);
export type Operation = z.infer<typeof operationSchema>;

/** The answer. */
export const answerSchema = z.discriminatedUnion('answer', [
  /** chronosd reports success. Members that the answer did not have are omitted. */
  z.strictObject({
    answer: z.literal('acknowledged'),
    alarmId: z.string().optional(),
    status: z.enum(ALARM_STATUSES).optional(),
    /** `null` or omitted: the answer named none. */
    nextFireAt: epochMs.nullable().optional(),
    /** Of a create: the key was known. */
    deduped: z.boolean().optional(),
    /** Of a cancel: a delivery was running. */
    inFlight: z.boolean().optional(),
    /** Of a trigger: the occurrence it made. */
    fireId: z.string().optional(),
    /** Of an intrusion: the whole text of the answer. */
    revealed: z.string().optional(),
  }),
  /** chronosd reports a refusal: no part of the request was stored. */
  z.strictObject({ answer: z.literal('refused'), code: z.string(), message: z.string() }),
  /** Unknown outcome: no answer, or one that leaves it open (`unavailable`, `internal`). */
  z.strictObject({ answer: z.literal('lost'), reason: z.string() }),
]);
export type Answer = z.infer<typeof answerSchema>;

/**
 * A line of the client's log. `call` links an answer to its invocation; an invocation without an answer counts as lost.
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

/** A line of the receiver's log. `wake` links an answer to its wake. */
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
    /** Where the wake contains it (chronosd's does, the router's does not). */
    attempt: z.int().optional(),
    missedCount: z.int().optional(),
  }),
  /** The receiver's answer. Without this line it answered nothing, or the answer was lost. */
  z.strictObject({ event: z.literal('answered'), wake: z.int(), at: epochMs, status: z.int() }),
  z.strictObject({
    event: z.literal('turn'),
    at: epochMs,
    fireId: z.string(),
    user: z.string(),
    /** `null` if the log does not know it. */
    conversation: nullableText,
    message: z.string(),
    /** Omitted if the log does not know it. */
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
  /** When the answer arrived, or the client gave up; `null` if the log ends before. */
  answeredAt: number | null;
  answer: Answer;
};

/** One received wake. */
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

/** One turn of a wake. */
export type Turn = Omit<Extract<ReceiverLine, { event: 'turn' }>, 'event'>;

export type ClientLog = { clockToleranceMs: number; calls: readonly Call[] };

export type ReceiverLog = {
  clockToleranceMs: number;
  wakes: readonly Wake[];
  /** `null`: this receiver runs no turns, or does not report them. */
  turns: readonly Turn[] | null;
};

/**
 * A row of `alarms`, `occurrences` or `fire_attempts` before or after a change; only the columns that the checker
 * reads.
 */
export type AlarmImage = { id: string; status: Alarm['status'] };
export type OccurrenceImage = Pick<
  Occurrence,
  'fireId' | 'alarmId' | 'source' | 'nominal' | 'dueAt' | 'attempt' | 'fence' | 'claimedAt'
>;
export type AttemptImage = Pick<Attempt, 'fireId' | 'alarmId' | 'attempt' | 'outcome'>;

type Change<Table, Image> = {
  table: Table;
  /** Grows: of two changes to one row, the later has the larger number. */
  seq: number;
  /** The database transaction; `null` where the engine does not report it (SQLite). */
  transaction: string | null;
  /** The database's clock. */
  at: number;
  /** `null`: the row was inserted. */
  before: Image | null;
  /** `null`: the row was deleted. */
  after: Image | null;
};

/** One row's change, written by a trigger inside the same transaction: no writer can avoid it. */
export type AuditEntry =
  | Change<'alarms', AlarmImage>
  | Change<'occurrences', OccurrenceImage>
  | Change<'fire_attempts', AttemptImage>;

/** The contents of the database, all read at one moment. */
export type DatabaseLog = {
  /**
   * The database's time of the judgement: the time of the read or, if all dispatchers were stopped before, of the last
   * stop. Later due times and claims are not judged.
   */
  readAt: number;
  /** The end of the last fault, so that overdue occurrences had time to recover; `null`: there was no fault. */
  wholeSince: number | null;
  alarms: readonly Alarm[];
  occurrences: readonly Occurrence[];
  /** The ledger, from the first attempt on: no part of it may have been pruned. */
  attempts: readonly Attempt[];
  /**
   * The entries of the audit triggers (`audit/`), in order; `null` if none were installed. They must have been
   * installed from the beginning.
   */
  audit: readonly AuditEntry[] | null;
};

/** The parts of chronosd's configuration that the promises depend on. */
export type Policy = {
  /** `max_failures` of an alarm without its own. */
  maxFailures: number;
  /** Parallel deliveries to one user. Further due occurrences wait for a free slot of that user. */
  userConcurrency: number;
  /** A claim ends at most this long after it was made, with its delivery or after the death of its process. */
  longestClaimMs: number;
  /** An overdue occurrence must be claimed within this time (promise 5). */
  overdueLimitMs: number;
};

export const DEFAULT_POLICY: Policy = {
  maxFailures: 100,
  userConcurrency: 4,
  longestClaimMs: 90_000,
  overdueLimitMs: 20_000,
};

/** The whole input. */
export type History = { client: ClientLog; database: DatabaseLog; receiver: ReceiverLog; policy: Policy };
