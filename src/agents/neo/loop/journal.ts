/** The stored tool calls of a turn, so that a crash between two calls repeats none, and their events for followers. */
import type { ModelToolCall } from '../../../kit/model/model.ts';
import type { Turn } from '../../../turns/turn.ts';
import type { TurnEventData } from '../../../wire/turn.ts';
import type { TurnUsage } from '../../../wire/usage.ts';
import type { ToolAnswer } from '../tools/surface.ts';

/** A call of a step. Without an answer it was begun, and its outcome is unknown. */
export type JournalledCall = {
  /** Its position in the step, from 0. */
  readonly index: number;
  readonly call: ModelToolCall;
  readonly answer?: ToolAnswer;
};

/** An answer of the model with calls. */
export type JournalledStep = {
  /** 1 for the first of a turn. */
  readonly step: number;
  /** The model's text beside the calls. */
  readonly text: string;
  /** How many calls were omitted because the answer had too many. */
  readonly omittedCalls: number;
  /** What the turn had used by then, as far as it is known. */
  readonly usage?: TurnUsage | undefined;
  readonly calls: readonly JournalledCall[];
};

/** The port to the stored journal. Every write resolves when it is on disk. */
export type Journal = {
  /** The journal of a turn, oldest step first. */
  steps(turnId: string): JournalledStep[];
  /** Stores a step with its calls as begun, before any of them is made. */
  beginStep(turn: Turn, step: JournalledStep): Promise<void>;
  /** Stores the outcome of a call, before the model reads it. */
  finishCall(turn: Turn, step: number, call: Required<JournalledCall>, tookMs: number): Promise<void>;
};

/** The id of a call over all turns; the same when the turn runs again. */
export function callIdOf(turnId: string, step: number, index: number): string {
  return `${turnId}.${step}.${index}`;
}

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
