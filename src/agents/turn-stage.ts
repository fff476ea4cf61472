/** The stages of a turn of an agent without a daemon, as observers inside the router's process see them. */
import type { NewTurn } from '../turns/turn.ts';

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
