/** A turn: one message to an agent and its outcome. Pure. */
import { backoff, withJitter } from '../kit/clock/backoff.ts';
import type { CheckNews } from '../wire/check-verdict.ts';
import type { MachineTurnStatus } from '../wire/machine-turn.ts';
import type { TextAuthors } from '../wire/set-by.ts';
import type { TurnOrigin, TurnStatus } from '../wire/turn.ts';
import type { TurnUsage } from '../wire/usage.ts';
import type { LateReason, TurnTerms } from '../wire/wake.ts';

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
  /** Who wrote the message, as {@link storedSetBy} writes it; absent: the agent itself. */
  readonly setBy?: string;
  /** Who wrote label and payload, where that is another one. */
  readonly textBy?: TextAuthors;
  /** Another agent that wrote the message and sent it now; no timer fired then. */
  readonly sentBy?: string;
  /** What the alarm says of its turn; absent for a plain alarm. */
  readonly terms?: TurnTerms;
  /** What the alarm's check said, which let the wake through. */
  readonly check?: CheckNews;
  /** Of the delivery, where it was traced: the turn continues its trace. */
  readonly traceparent?: string;
  readonly message: string;
  /** JSON source text, never parsed. */
  readonly payload?: string;
  /** The user of the alarm, where the delivery named one: turn reports are signed for this user. */
  readonly userId?: string;
  /** When the turn was accepted. */
  readonly createdAt: number;
};

/** A turn that is about to be stored. */
export type NewTurn = TurnInput & {
  readonly id: string;
  readonly conversationId: string;
  /** Of a turn that a router runs: whether the wake named the conversation; otherwise it is new with this turn. */
  readonly named?: boolean;
  /** Of a turn that a router runs: the preset of its agent. */
  readonly preset?: string;
  /** For a wake with a derived fire id: an equal turn has this id and was accepted after `since`. */
  readonly repeats?: { readonly name: string; readonly since: number };
};

export type Turn = Omit<NewTurn, 'repeats'> & {
  /** Position in the order of acceptance, over all conversations. */
  readonly seq: number;
  readonly status: TurnStatus | MachineTurnStatus;
  readonly attempts: number;
  /** How many attempts ended in a temporary failure. */
  readonly retries: number;
  /** Of a `queued` turn: it does not begin before this time. */
  readonly retryAt?: number;
  /** Of a `queued` turn whose last attempt did not start: the reason. */
  readonly waits?: string;
  /** The agent's own conversation of the current or last attempt. */
  readonly session?: string;
  /** The agent's own name of the turn. */
  readonly handle?: string;
  readonly spawnId?: string;
  /** The process of the attempt. */
  readonly born?: { readonly pid: number; readonly birth: string };
  readonly reply?: string;
  readonly error?: string;
  readonly model?: string;
  /** What its models used so far, as far as its agent reports it. */
  readonly usage?: TurnUsage;
  readonly startedAt?: number;
  readonly finishedAt?: number;
};

/**
 * The outcome of one attempt at a turn. `session`: the agent's conversation from now on, if known. `said`: the whole
 * text of the turn's `say` events. `usage`: of the whole turn, earlier attempts included, if known; `sessionUsage`:
 * instead of it, the agent's own count of its whole conversation so far.
 */
export type Outcome = (
  | { readonly status: 'done'; readonly reply?: string | undefined; readonly session?: string | undefined }
  /**
   * It ran and failed, or was rejected permanently. `temporary`: another attempt may succeed, after this many seconds
   * where the endpoint requested it.
   */
  | {
      readonly status: 'failed';
      readonly error: string;
      readonly reply?: string | undefined;
      readonly session?: string | undefined;
      readonly temporary?: {
        readonly afterSeconds?: number;
        /** It waits for an answer of the person: until then nothing else makes it begin. */
        readonly isAnswer?: boolean;
      };
    }
  /** It may have run, and its outcome cannot be determined. */
  | { readonly status: 'unknown'; readonly error: string; readonly session?: string | undefined }
  /** It was begun too often without an end, and is given up. */
  | { readonly status: 'interrupted'; readonly error: string }
  /** It certainly did not run, and may later. */
  | { readonly status: 'not_started'; readonly why: string; readonly retryAfterMs?: number | undefined }
  /** It certainly did not run: the agent does not know the session. */
  | { readonly status: 'no_session'; readonly why: string }
  /** The signal stopped it before its end; it can be begun again. */
  | { readonly status: 'stopped' }
  /** The process stops, and the turn continues without it: the next process finds its outcome. */
  | { readonly status: 'left' }
) & {
  readonly model?: string;
  readonly said?: string;
  readonly usage?: TurnUsage | undefined;
  readonly sessionUsage?: TurnUsage | undefined;
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
  if (outcome.temporary.isAnswer) {
    const end = now + (outcome.temporary.afterSeconds ?? 0) * 1000;
    return end - turn.createdAt > giveUpMs ? undefined : end;
  }
  const delayMs = withJitter(backoff({ first: firstMs, longest: longestMs })(turn.retries + 1), draw);
  const at = now + Math.ceil(Math.max(delayMs, (outcome.temporary.afterSeconds ?? 0) * 1000));
  return at - turn.createdAt > giveUpMs ? undefined : at;
}

const pauseAfter = backoff({ first: 5_000, longest: 60_000 });
const LONGEST_REQUESTED_PAUSE_MS = 15 * 60_000;

/** The pause before a turn that did not start is tried again, milliseconds. */
export function pauseOf(attempts: number, requestedMs: number | undefined): number {
  if (requestedMs === undefined) return pauseAfter(attempts);
  return Math.min(Math.max(requestedMs, 1000), LONGEST_REQUESTED_PAUSE_MS);
}
