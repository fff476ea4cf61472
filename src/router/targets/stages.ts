/**
 * How far a turn got, for whoever reports it on (receipts to chronosd). A stage is announced when it is on disk; a router that dies
 * in between does not announce it again, but the turn's row has the instants of all of them.
 */
import type { Turn } from './turn.ts';

export type TurnStage = {
  user_id: string;
  fire_id: string;
  turn_id: string;
  conversation_id: string;
  /** Epoch milliseconds. */
  at: number;
} & (
  | { stage: 'accepted' }
  /** The target works on it. Only announced when that is certain, so it is never taken back; `at` is when it began. */
  | { stage: 'turn_started' }
  /** `ok` is `undefined` where what came of the turn cannot be found out. */
  | { stage: 'turn_finished'; ok: boolean | undefined; error?: string; result?: string }
);

/** Must not throw. */
export type OnStage = (stage: TurnStage) => void;

export function stageOf({ userId, fireId, id, conversationId }: Turn, at: number) {
  return { user_id: userId, fire_id: fireId, turn_id: id, conversation_id: conversationId, at };
}
