/** The port to what an agent can do: functions that a model is shown, and the calls it makes of them. */
import type { ToolSchema } from '../../kit/model/model.ts';
import type { SurfaceView } from '../../wire/tool-surface.ts';
import type { TurnEventData } from '../../wire/turn.ts';
import type { Turn } from '../turn.ts';

// A turn without capabilities: the surface that it has then, and why it may have to wait for another Neo.

export const noTools: ToolSurface = {
  schemas: () => [],
  dispatch: (name) => Promise.resolve(textAnswer(`unknown tool ${JSON.stringify(name)} — it is not available`, true)),
  repeatable: () => false,
  describe: () => ({ tools: [], escalate: [], escalated: [], warnings: [] }),
  warnings: () => [],
  close: () => Promise.resolve(),
};

/** Neo stops before its capabilities were ready; the next Neo runs the turn. */
export class StoppedWhileStarting extends Error {}

/** A question of the executor, or what became of it. */
export type GateNotice = Omit<TurnEventData<'gate'>, 'conversation_id' | 'turn_id'>;

export type ToolPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mediaType: string; readonly data: string /* base64 */ };

/** What came of a call that was made. With `isError` it failed in a way that the model should see and adapt to. */
export type ToolAnswer = { readonly content: readonly ToolPart[]; readonly isError: boolean };

/** What a call tells while it runs, for the people who follow the turn. */
export type ToolNotice =
  | { readonly type: 'status'; readonly text: string }
  | { readonly type: 'gate'; readonly gate: GateNotice };

export type ToolCallContext = {
  readonly turn: Turn;
  /**
   * The same when the call is made again after a crash, and no other call's of any turn: the executor knows a task
   * again by it.
   */
  readonly callId: string;
  /**
   * Gives the call up. With a {@link TurnCancelled} as its reason, what the call has set off elsewhere is called off,
   * too; with any other it goes on there, and the same call made later takes it up again.
   */
  readonly signal: AbortSignal;
  /** Never throws; may be called after the call has ended. */
  readonly notify: (notice: ToolNotice) => void;
  /**
   * What the call is limited to, as {@link ToolSurface.schemas} was given it; what the skill at work lists when absent.
   */
  readonly limit?: ReadonlySet<string> | undefined;
};

/** Why a signal aborts when somebody wants the turn to end for good. */
export class TurnCancelled extends Error {
  constructor(message = 'the turn was cancelled') {
    super(message);
    this.name = 'TurnCancelled';
  }
}

/** A call of which no answer came back. */
export class ToolFailure extends Error {
  /** Whether what it asks for may have been done all the same. */
  readonly mayHaveRun: boolean;
  /** Whether the same call may be made again without doing anything twice. */
  readonly repeatable: boolean;

  /** @param message says what happened; for the model and for people */
  constructor(message: string, how: { mayHaveRun: boolean; repeatable: boolean; cause?: unknown }) {
    super(message, how.cause === undefined ? undefined : { cause: how.cause });
    this.name = 'ToolFailure';
    this.mayHaveRun = how.mayHaveRun;
    this.repeatable = how.repeatable;
  }
}

export type ToolSurface = {
  /** What the skill at work tells the agent; its operator's words. */
  readonly guide?: string | undefined;
  /**
   * The functions for the model: natural tools by name, then `core_execute` and `memory_recall` where there is
   * something behind them.
   *
   * @param limit tool URIs and function names, in the place of those that the skill at work lists; it leaves Neo's own
   *   functions alone
   */
  schemas(limit?: ReadonlySet<string>): readonly ToolSchema[];
  /**
   * Makes a call. A name that does not exist and a tool that is not for direct use are answers with `isError`.
   *
   * @param args parsed JSON
   * @throws ToolFailure when no answer came back; the signal's reason when it aborted
   */
  dispatch(name: string, args: unknown, context: ToolCallContext): Promise<ToolAnswer>;
  /** Whether a call of this function that was begun may be made again under the same call id: it does nothing twice. */
  repeatable(name: string): boolean;
  describe(): SurfaceView;
  warnings(): readonly string[];
  close(): Promise<void>;
};

/** An answer of one text. */
export function textAnswer(text: string, isError = false): ToolAnswer {
  return { content: [{ type: 'text', text }], isError };
}
