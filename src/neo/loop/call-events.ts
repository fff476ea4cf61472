/** The `tool` events of a call, for followers of a turn. Pure. */

import type { ModelToolCall } from '../../kit/model/model.ts';
import type { Turn } from '../../turns/turn.ts';
import type { TurnEventData } from '../../wire/turn.ts';
import type { ToolAnswer } from '../tools/surface.ts';
import { callIdOf } from './journal.ts';

/** The length of arguments and results in events; the model reads the whole. */
const SHOWN_CHARACTERS = 1000;

function beginningOf(text: string): string {
  const cut = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
  return cut.toWellFormed();
}

const factsOf = (turn: Turn, step: number, index: number, call: ModelToolCall) => ({
  conversation_id: turn.conversationId,
  turn_id: turn.id,
  call_id: callIdOf(turn.id, step, index),
  step,
  name: call.name,
});

/** Called before a call is made. */
export function callBegunEvent(turn: Turn, step: number, index: number, call: ModelToolCall): TurnEventData<'tool'> {
  return { ...factsOf(turn, step, index, call), state: 'begun', input: beginningOf(call.input) };
}

/** A result as text; images are named in their place. */
export function textOfAnswer({ content }: ToolAnswer): string {
  return content.map((part) => (part.type === 'text' ? part.text : `[image, ${part.mediaType}]`)).join('\n');
}

/** Called when a call has ended. */
export function callFinishedEvent(
  turn: Turn,
  step: number,
  index: number,
  call: ModelToolCall,
  answer: ToolAnswer,
  tookMs: number,
): TurnEventData<'tool'> {
  return {
    ...factsOf(turn, step, index, call),
    state: 'finished',
    is_error: answer.isError,
    output: beginningOf(textOfAnswer(answer)),
    took_ms: Math.round(tookMs),
  };
}
