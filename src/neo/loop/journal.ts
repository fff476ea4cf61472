/** The stored tool calls of a turn, so that a crash between two calls repeats none. */
import type { ModelToolCall } from '../../kit/model/model.ts';
import type { Turn } from '../../turns/turn.ts';
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
