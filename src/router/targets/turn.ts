/** A stored turn of an agent without a daemon. */
import { RawJson } from '../../wire/json.ts';
import type { MachineTurnStatus, MachineTurnView } from '../../wire/machine-turn.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { LateReason, Wake } from '../../wire/wake.ts';

/** Instants are epoch milliseconds. */
export type Turn = {
  id: string;
  userId: string;
  fireId: string;
  /** `undefined`: the sender of the wake named none. */
  alarmId: string | undefined;
  conversationId: string;
  /** Whether the wake named the conversation; otherwise it is new with this turn. */
  named: boolean;
  preset: string;
  message: string;
  /** JSON source text. */
  payload: string | undefined;
  scheduledFor: number;
  missedCount: number;
  label: string | undefined;
  setAt: number | undefined;
  /** The person who set the message; `undefined`: the agent itself. */
  setBy: string | undefined;
  /** Why the wake was late, as far as its sender knew. */
  lateBecause: LateReason | undefined;
  status: MachineTurnStatus;
  /** The number of attempts. */
  attempts: number;
  /** While it is queued: when the next attempt may begin, and why the last one did not start. */
  notBefore: number | undefined;
  waits: string | undefined;
  /** The target's conversation of the current or last attempt. */
  session: string | undefined;
  /** The target's name of the turn, if it has one. */
  handle: string | undefined;
  spawnId: string | undefined;
  /** The process of the attempt. */
  born: { pid: number; birth: string } | undefined;
  reply: string | undefined;
  error: string | undefined;
  acceptedAt: number;
  startedAt: number | undefined;
  finishedAt: number | undefined;
};

/** The turn of a wake, before its start. */
export function turnOf(
  wake: Wake,
  { id, userId, preset, now, newId }: { id: string; userId: string; preset: string; now: number; newId: () => string },
): Turn {
  return {
    id,
    userId,
    fireId: wake.fire_id,
    alarmId: wake.alarm_id,
    conversationId: wake.conversation_id ?? newId(),
    named: wake.conversation_id !== undefined,
    preset,
    message: wake.message,
    payload: wake.payload?.text,
    scheduledFor: wake.scheduled_for,
    missedCount: wake.missed_count,
    label: wake.label,
    setAt: wake.set_at,
    setBy: wake.set_by?.name,
    lateBecause: wake.late_because,
    status: 'queued',
    attempts: 0,
    notBefore: undefined,
    waits: undefined,
    session: undefined,
    handle: undefined,
    spawnId: undefined,
    born: undefined,
    reply: undefined,
    error: undefined,
    acceptedAt: now,
    startedAt: undefined,
    finishedAt: undefined,
  };
}

const instant = (epochMs: number | undefined) => (epochMs === undefined ? undefined : formatInstant(epochMs));

/** The view of a turn for operators. */
export function turnViewOf(turn: Turn): MachineTurnView {
  const waiting = turn.status === 'queued';
  const view = {
    id: turn.id,
    conversation_id: turn.conversationId,
    preset: turn.preset,
    session: turn.session,
    status: turn.status,
    alarm_id: turn.alarmId,
    fire_id: turn.fireId,
    scheduled_for: formatInstant(turn.scheduledFor),
    missed_count: turn.missedCount,
    late_because: turn.lateBecause,
    label: turn.label,
    message: turn.message,
    payload: turn.payload === undefined ? undefined : new RawJson(turn.payload),
    reply: turn.reply,
    error: turn.error,
    waits_for: waiting ? turn.waits : undefined,
    next_attempt_at: waiting ? instant(turn.notBefore) : undefined,
    attempts: turn.attempts,
    accepted_at: formatInstant(turn.acceptedAt),
    started_at: instant(turn.startedAt),
    finished_at: instant(turn.finishedAt),
  };
  return Object.fromEntries(Object.entries(view).filter(([, value]) => value !== undefined)) as MachineTurnView;
}

export type TurnStage = {
  user_id: string;
  fire_id: string;
  turn_id: string;
  conversation_id: string;
  /** Epoch milliseconds. */
  at: number;
} & (
  | { stage: 'accepted' }
  /** The target executes it. Announced only when certain, so it is never revoked; `at` is the start. */
  | { stage: 'turn_started' }
  /** `ok` is `undefined` when the outcome cannot be determined. */
  | { stage: 'turn_finished'; ok: boolean | undefined; error?: string; result?: string }
);

/** Must not throw. */
export type OnStage = (stage: TurnStage) => void;

export function stageOf({ userId, fireId, id, conversationId }: Turn, at: number) {
  return { user_id: userId, fire_id: fireId, turn_id: id, conversation_id: conversationId, at };
}
