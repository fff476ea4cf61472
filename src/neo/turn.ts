/** A turn: one message to the agent and its outcome. Pure; the states are those of `wire/turn.ts`. */
import { backoff, withJitter } from '../kit/clock/backoff.ts';
import { RawJson } from '../wire/json.ts';
import type { TurnReport } from '../wire/receipt.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import type { TurnEventData, TurnOrigin, TurnStatus, TurnView } from '../wire/turn.ts';
import type { LateReason } from '../wire/wake.ts';

/** How often a turn is begun before Neo gives it up because the process never survived it. */
export const MAX_ATTEMPTS = 3;

/** The accepted message and its facts, which never change. Times are milliseconds since the epoch. */
export type TurnInput = {
  readonly origin: TurnOrigin;
  readonly alarmId?: string;
  /** The occurrence; at most one turn has it. */
  readonly fireId?: string;
  readonly scheduledFor?: number;
  /** Occurrences of the alarm before this one that were never delivered. */
  readonly missedCount?: number;
  /** Why the wake was late, as far as the sender knew. */
  readonly lateBecause?: LateReason;
  readonly label?: string;
  /** When the alarm was set. */
  readonly setAt?: number;
  /** The person who wrote the message; absent: the agent itself. */
  readonly setBy?: string;
  readonly message: string;
  /** JSON source text, never parsed. */
  readonly payload?: string;
  /** The user of the alarm, where the delivery named one: turn reports are signed for this user. */
  readonly userId?: string;
  /** When Neo accepted the turn. */
  readonly createdAt: number;
};

/** A turn that is about to be stored. */
export type NewTurn = TurnInput & {
  readonly id: string;
  readonly conversationId: string;
  /** For a wake with a derived fire id: an equal turn has this id and was accepted after `since`. */
  readonly repeats?: { readonly name: string; readonly since: number };
};

/** A stored turn. */
export type Turn = Omit<NewTurn, 'repeats'> & {
  /** Position in the order of acceptance, over all conversations. */
  readonly seq: number;
  readonly status: TurnStatus;
  readonly attempts: number;
  readonly reply?: string;
  readonly error?: string;
  readonly model?: string;
  readonly startedAt?: number;
  readonly finishedAt?: number;
  /** Of a `queued` turn after a temporary failure: it does not begin before this time. */
  readonly retryAt?: number;
  /** How many attempts ended in a temporary failure. */
  readonly retries: number;
};

/**
 * The outcome of an attempt. A `failed` one may carry the partial reply; `temporary`: another attempt may succeed, after
 * this many seconds where the endpoint requested it.
 */
export type Outcome =
  | { readonly status: 'done'; readonly reply: string; readonly model: string }
  | {
      readonly status: 'failed';
      readonly error: string;
      readonly model: string;
      readonly reply?: string;
      readonly temporary?: { readonly afterSeconds?: number };
    };

/** When turns of wakes are retried after a temporary failure. */
export type RetryPolicy = {
  /** The first delay, in milliseconds; it doubles up to `longestMs`. 0: never. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** A turn that was accepted longer ago than this fails permanently. */
  readonly giveUpMs: number;
};

export const RETRY_POLICY: RetryPolicy = { firstMs: 30_000, longestMs: 15 * 60_000, giveUpMs: 24 * 3600_000 };

/**
 * The time of a turn's retry; `undefined` when it has failed permanently. A person sees the failure and can send the
 * message again.
 *
 * @param draw uniform in [0, 1); spreads turns that failed together
 */
export function retryAt(
  turn: Pick<Turn, 'origin' | 'retries' | 'createdAt'>,
  outcome: Outcome,
  { policy, now, draw }: { policy: RetryPolicy; now: number; draw: number },
): number | undefined {
  const { firstMs, longestMs, giveUpMs } = policy;
  if (outcome.status !== 'failed' || !outcome.temporary || turn.origin === 'user' || firstMs === 0) return undefined;
  const delayMs = withJitter(backoff({ first: firstMs, longest: longestMs })(turn.retries + 1), draw);
  const at = now + Math.ceil(Math.max(delayMs, (outcome.temporary.afterSeconds ?? 0) * 1000));
  return at - turn.createdAt > giveUpMs ? undefined : at;
}

/** The new state of a turn that was `running` when Neo stopped. Attempts that ended by themselves do not count. */
export function afterCrash({
  attempts,
  retries,
}: Pick<Turn, 'attempts' | 'retries'>): { status: 'queued' } | { status: 'interrupted'; error: string } {
  const interruptions = attempts - retries;
  if (interruptions < MAX_ATTEMPTS) return { status: 'queued' };
  const error = `Neo was stopped ${interruptions} times while this turn ran; it is not begun again`;
  return { status: 'interrupted', error };
}

/**
 * The turn report for chronosd: for a turn that has begun, has ended, or will be retried; none for one that was put
 * back.
 *
 * @param now epoch milliseconds
 */
export function turnReportOf(turn: Turn, now: number): TurnReport | undefined {
  const ids = { turnId: turn.id, conversationId: turn.conversationId };
  const { status, startedAt, finishedAt, error = null, retryAt: retry, reply = null } = turn;
  const nothing = { outcome: null, error: null, retryAt: null, reply: null };
  if (status === 'running' && startedAt !== undefined)
    return { ...ids, ...nothing, stage: 'turn_started', at: startedAt };
  if (status === 'queued' && retry !== undefined)
    return { ...ids, ...nothing, stage: 'turn_waits', at: now, error, retryAt: retry };
  if (status === 'queued' || finishedAt === undefined) return undefined;
  const outcome = status === 'done' ? 'ok' : 'failed';
  return { ...ids, stage: 'turn_finished', at: finishedAt, outcome, error, retryAt: null, reply };
}

/** The time of a waiting turn's retry. */
const retryTimeOf = ({ status, retryAt: at }: Turn) => instant(status === 'queued' ? at : undefined);

function instant(epochMs: number | undefined): string | undefined {
  return epochMs === undefined ? undefined : formatInstant(epochMs);
}

/** A turn as clients see it; `encodeJson` writes `payload` as its source text and omits absent members. */
export function viewOf(turn: Turn): TurnView {
  return {
    id: turn.id,
    conversation_id: turn.conversationId,
    origin: turn.origin,
    alarm_id: turn.alarmId,
    fire_id: turn.fireId,
    scheduled_for: instant(turn.scheduledFor),
    missed_count: turn.missedCount,
    late_because: turn.lateBecause,
    label: turn.label,
    set_at: instant(turn.setAt),
    set_by: turn.setBy,
    message: turn.message,
    payload: turn.payload === undefined ? undefined : new RawJson(turn.payload),
    status: turn.status,
    reply: turn.reply,
    error: turn.error,
    model: turn.model,
    created_at: formatInstant(turn.createdAt),
    started_at: instant(turn.startedAt),
    finished_at: instant(turn.finishedAt),
    retry_at: retryTimeOf(turn),
    attempts: turn.attempts,
  };
}

/** The `turn` event with a turn's present state. */
export function turnEventOf(turn: Turn): TurnEventData<'turn'> {
  return {
    conversation_id: turn.conversationId,
    turn_id: turn.id,
    status: turn.status,
    attempts: turn.attempts,
    origin: turn.origin,
    alarm_id: turn.alarmId,
    fire_id: turn.fireId,
    model: turn.model,
    error: turn.error,
    retry_at: retryTimeOf(turn),
  };
}
