/** A turn: one message to the agent and what came of it. Pure; the states are those of `wire/turn.ts`. */
import { backoff, withJitter } from '../kit/clock/backoff.ts';
import { RawJson } from '../wire/json.ts';
import type { TurnReport } from '../wire/receipt.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import type { TurnEventData, TurnOrigin, TurnStatus, TurnView } from '../wire/turn.ts';
import type { LateReason } from '../wire/wake.ts';

/** How often a turn is begun before Neo gives up on one that it never lives to finish. */
export const MAX_ATTEMPTS = 3;

/** What reached Neo and never changes afterwards. Instants are milliseconds since the epoch. */
export type Occasion = {
  readonly origin: TurnOrigin;
  readonly alarmId?: string;
  /** The occurrence; at most one turn has it. */
  readonly fireId?: string;
  readonly scheduledFor?: number;
  /** Occurrences of the alarm before this one that were never delivered. */
  readonly missedCount?: number;
  /** Why the wake was late, as far as whoever sent it knew. */
  readonly lateBecause?: LateReason;
  readonly label?: string;
  /** When the alarm was set. */
  readonly setAt?: number;
  /** The person whose words they are; absent: the agent's own. */
  readonly setBy?: string;
  readonly message: string;
  /** JSON source text, never parsed. */
  readonly payload?: string;
  /** Whose alarm it was, where the delivery said so: whom its receipts are signed for. */
  readonly userId?: string;
  /** When Neo accepted the turn. */
  readonly createdAt: number;
};

/** A turn that is about to be stored. */
export type NewTurn = Occasion & {
  readonly id: string;
  readonly conversationId: string;
  /** Of a wake whose fire id is derived: the turn that it repeats has this name, and was accepted after `since`. */
  readonly repeats?: { readonly name: string; readonly since: number };
};

/** A stored turn. */
export type Turn = Omit<NewTurn, 'repeats'> & {
  /** Place in the order of acceptance, over all conversations. */
  readonly seq: number;
  readonly status: TurnStatus;
  readonly attempts: number;
  readonly reply?: string;
  readonly error?: string;
  readonly model?: string;
  readonly startedAt?: number;
  readonly finishedAt?: number;
  /** Of a `queued` turn that failed for a reason that passes: it is not begun before. */
  readonly retryAt?: number;
  /** How many attempts ended so. */
  readonly retries: number;
};

/**
 * How an attempt at a turn ends. A `failed` one may carry the part of the reply that it was cut off after; `passes`:
 * another attempt may succeed, after so many seconds where the endpoint said so.
 */
export type Outcome =
  | { readonly status: 'done'; readonly reply: string; readonly model: string }
  | {
      readonly status: 'failed';
      readonly error: string;
      readonly model: string;
      readonly reply?: string;
      readonly passes?: { readonly afterSeconds?: number };
    };

/** When turns of wakes that failed for a reason that passes are tried again. */
export type RetryLadder = {
  /** The first pause, in milliseconds; each one that follows is twice as long, up to `longestMs`. 0: never. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** A turn that was accepted longer ago than this has failed for good. */
  readonly giveUpMs: number;
};

export const RETRY_LADDER: RetryLadder = { firstMs: 30_000, longestMs: 15 * 60_000, giveUpMs: 24 * 3600_000 };

/**
 * When a turn is tried again; `undefined` when it has failed for good: a person sees the failure and asks again.
 *
 * @param draw uniform in [0, 1); spreads what failed together
 */
export function retryAt(
  turn: Pick<Turn, 'origin' | 'retries' | 'createdAt'>,
  outcome: Outcome,
  { ladder, now, draw }: { ladder: RetryLadder; now: number; draw: number },
): number | undefined {
  const { firstMs, longestMs, giveUpMs } = ladder;
  if (outcome.status !== 'failed' || !outcome.passes || turn.origin === 'user' || firstMs === 0) return undefined;
  const pauseMs = withJitter(backoff({ first: firstMs, longest: longestMs })(turn.retries + 1), draw);
  const at = now + Math.ceil(Math.max(pauseMs, (outcome.passes.afterSeconds ?? 0) * 1000));
  return at - turn.createdAt > giveUpMs ? undefined : at;
}

/** What becomes of a turn that was `running` when Neo stopped. Attempts that ended by themselves do not count. */
export function afterCrash({
  attempts,
  retries,
}: Pick<Turn, 'attempts' | 'retries'>): { status: 'queued' } | { status: 'interrupted'; error: string } {
  const stopped = attempts - retries;
  if (stopped < MAX_ATTEMPTS) return { status: 'queued' };
  const error = `Neo was stopped ${stopped} times while this turn ran; it is not begun again`;
  return { status: 'interrupted', error };
}

/**
 * What chronosd is to hear of a turn that has just been begun, has ended, or is tried again; nothing of one that was put
 * back.
 *
 * @param now epoch milliseconds
 */
export function reportOf(turn: Turn, now: number): TurnReport | undefined {
  const about = { turnId: turn.id, conversationId: turn.conversationId };
  const { status, startedAt, finishedAt, error = null, retryAt: retry, reply = null } = turn;
  const nothing = { outcome: null, error: null, retryAt: null, reply: null };
  if (status === 'running' && startedAt !== undefined)
    return { ...about, ...nothing, stage: 'turn_started', at: startedAt };
  if (status === 'queued' && retry !== undefined)
    return { ...about, ...nothing, stage: 'turn_waits', at: now, error, retryAt: retry };
  if (status === 'queued' || finishedAt === undefined) return undefined;
  const outcome = status === 'done' ? 'ok' : 'failed';
  return { ...about, stage: 'turn_finished', at: finishedAt, outcome, error, retryAt: null, reply };
}

/** When a turn that waits is tried again. */
const waitsUntil = ({ status, retryAt: at }: Turn) => instant(status === 'queued' ? at : undefined);

function instant(epochMs: number | undefined): string | undefined {
  return epochMs === undefined ? undefined : formatInstant(epochMs);
}

/**
 * A turn as clients see it; `payload` is written as its source text by `encodeJson`, absent members are left out by it.
 */
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
    retry_at: waitsUntil(turn),
    attempts: turn.attempts,
  };
}

/** The `turn` event that tells of a turn's present state. */
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
    retry_at: waitsUntil(turn),
  };
}
