/** The port to the agent's tools: the functions for a model, and its calls of them. */
import type { ToolSchema } from '../../../kit/model/model.ts';
import type { Turn } from '../../../turns/turn.ts';
import type { SurfaceView } from '../../../wire/tool-surface.ts';
import type { TurnEventData } from '../../../wire/turn.ts';

// A turn without capabilities: its empty surface, and why it may have to wait for another Neo.

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

/** A question of the executor, or its result. */
export type GateNotice = Omit<TurnEventData<'gate'>, 'conversation_id' | 'turn_id'>;

export type ToolPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mediaType: string; readonly data: string /* base64 */ };

/** The outcome of a call. With `isError` it failed in a way that the model should see and adapt to. */
export type ToolAnswer = { readonly content: readonly ToolPart[]; readonly isError: boolean };

/** Notices of a running call, for followers of the turn. */
export type ToolNotice =
  | { readonly type: 'status'; readonly text: string }
  | { readonly type: 'gate'; readonly gate: GateNotice };

export type ToolCallContext = {
  readonly turn: Turn;
  /**
   * The same when the call is made again after a crash, and unique over all turns: the executor recognizes a task by
   * it.
   */
  readonly callId: string;
  /**
   * Aborts the call. With a `TurnCancelled` as its reason, its effects elsewhere are cancelled too. With any
   * other reason they continue, and the same call made later resumes them.
   */
  readonly signal: AbortSignal;
  /** Never throws; may be called after the call has ended. */
  readonly notify: (notice: ToolNotice) => void;
  /** The limit of the call, as given to {@link ToolSurface.schemas}; the skill's list when absent. */
  readonly limit?: ReadonlySet<string> | undefined;
};

/** A call without an answer. */
export class ToolFailure extends Error {
  /** Whether the call may have had its effect. */
  readonly mayHaveRun: boolean;
  /** Whether the same call may be repeated without a second effect. */
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
  /** The skill's text for the agent, written by its operator. */
  readonly guide?: string | undefined;
  /**
   * The functions for the model: natural tools by name, then `core_execute` and `memory_recall` where they are
   * available.
   *
   * @param limit tool URIs and function names, in place of the skill's list; it does not affect Neo's own functions
   */
  schemas(limit?: ReadonlySet<string>): readonly ToolSchema[];
  /**
   * Makes a call. A name that does not exist and a tool that is not for direct use are answers with `isError`.
   *
   * @param args parsed JSON
   * @throws ToolFailure when no answer came; the signal's reason when it aborted
   */
  dispatch(name: string, args: unknown, context: ToolCallContext): Promise<ToolAnswer>;
  /** Whether an interrupted call of this function may be made again under the same call id without a second effect. */
  repeatable(name: string): boolean;
  describe(): SurfaceView;
  warnings(): readonly string[];
  close(): Promise<void>;
};

export function textAnswer(text: string, isError = false): ToolAnswer {
  return { content: [{ type: 'text', text }], isError };
}
