/** A turn: one message to an agent and its outcome. Pure. */
import type { MachineTurnStatus } from '../wire/machine-turn.ts';
import type { TurnOrigin, TurnStatus } from '../wire/turn.ts';
import type { LateReason } from '../wire/wake.ts';

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

/** A stored turn. */
export type Turn = Omit<NewTurn, 'repeats'> & {
  /** Position in the order of acceptance, over all conversations. */
  readonly seq: number;
  readonly status: TurnStatus | MachineTurnStatus;
  /** The number of attempts. */
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
  readonly startedAt?: number;
  readonly finishedAt?: number;
};
