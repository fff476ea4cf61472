/** Turns as clients, readers of events, operators and observers in the process see them. Pure. */
import { RawJson } from '../wire/json.ts';
import type { MachineTurnView } from '../wire/machine-turn.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import { readSetBy, setByText } from '../wire/set-by.ts';
import type { TurnEventData, TurnStatus, TurnView } from '../wire/turn.ts';
import type { NewTurn, Turn } from './turn.ts';

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
    set_by: turn.setBy === undefined ? undefined : setByText(readSetBy(turn.setBy)),
    terms: turn.terms,
    message: turn.message,
    payload: turn.payload === undefined ? undefined : new RawJson(turn.payload),
    status: turn.status as TurnStatus,
    reply: turn.reply,
    error: turn.error,
    model: turn.model,
    usage: turn.usage,
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
    status: turn.status as TurnStatus,
    attempts: turn.attempts,
    origin: turn.origin,
    alarm_id: turn.alarmId,
    fire_id: turn.fireId,
    model: turn.model,
    error: turn.error,
    retry_at: retryTimeOf(turn),
  };
}

export function machineTurnViewOf(turn: Turn): MachineTurnView {
  const waiting = turn.status === 'queued';
  const view = {
    id: turn.id,
    conversation_id: turn.conversationId,
    preset: turn.preset,
    session: turn.session,
    status: turn.status,
    alarm_id: turn.alarmId,
    fire_id: turn.fireId,
    scheduled_for: instant(turn.scheduledFor),
    missed_count: turn.missedCount,
    late_because: turn.lateBecause,
    label: turn.label,
    terms: turn.terms,
    message: turn.message,
    payload: turn.payload === undefined ? undefined : new RawJson(turn.payload),
    reply: turn.reply,
    error: turn.error,
    usage: turn.usage,
    waits_for: waiting ? turn.waits : undefined,
    next_attempt_at: waiting ? instant(turn.retryAt) : undefined,
    attempts: turn.attempts,
    accepted_at: formatInstant(turn.createdAt),
    started_at: instant(turn.startedAt),
    finished_at: instant(turn.finishedAt),
  };
  return Object.fromEntries(Object.entries(view).filter(([, value]) => value !== undefined)) as MachineTurnView;
}

/** A stage of a turn, for observers in the process that runs it. */
export type TurnStage = {
  user_id: string;
  fire_id: string;
  turn_id: string;
  conversation_id: string;
  /** Epoch milliseconds. */
  at: number;
} & (
  | { stage: 'accepted' }
  /** The agent executes it. Announced only when certain, so it is never revoked; `at` is the start. */
  | { stage: 'turn_started' }
  /** `ok` is `undefined` when the outcome cannot be determined. */
  | { stage: 'turn_finished'; ok: boolean | undefined; error?: string; result?: string }
);

/** Must not throw. */
export type OnStage = (stage: TurnStage) => void;

export function stageOf({ userId = '', fireId = '', id, conversationId }: NewTurn, at: number) {
  return { user_id: userId, fire_id: fireId, turn_id: id, conversation_id: conversationId, at };
}
