/** What a turn keeps of its tool calls, so that a crash between two of them repeats none. */
import type { ModelToolCall } from '../../kit/model/model.ts';
import type { ToolAnswer } from '../tools/surface.ts';
import type { Turn } from '../turn.ts';

/** A call of a step. Without an answer it was begun, and nobody knows what came of it. */
export type JournalledCall = {
  /** Its place in the step, from 0. */
  readonly place: number;
  readonly call: ModelToolCall;
  readonly answer?: ToolAnswer;
};

/** An answer of the model that asked for calls. */
export type JournalledStep = {
  /** 1 for the first of a turn. */
  readonly step: number;
  /** What the model said beside the calls. */
  readonly said: string;
  /** How many calls were left out because it asked for too many at once. */
  readonly leftOut: number;
  readonly calls: readonly JournalledCall[];
};

/** The port to where the journal is kept. Every write resolves when it is on disk. */
export type Journal = {
  /** What the journal has of a turn, oldest step first. */
  steps(turnId: string): JournalledStep[];
  /** Stores a step with its calls as begun, before any of them is made. */
  beginStep(turn: Turn, step: JournalledStep): Promise<void>;
  /** Stores what came of a call, before the model is told. */
  finishCall(turn: Turn, step: number, call: Required<JournalledCall>, tookMs: number): Promise<void>;
};

/** The name of a call over all turns; the same when the turn runs again. */
export function callIdOf(turnId: string, step: number, place: number): string {
  return `${turnId}.${step}.${place}`;
}
