/** The calls of one server's tools: each runs within its time limit, and is judged when it has no result. */
import { type CallToolResult, SdkHttpError } from '@modelcontextprotocol/client';
import type { Clock } from '../kit/clock/clock.ts';
import type { Connection } from './connection.ts';
import { TimedOut, withDeadline } from './deadline.ts';
import type { AnswerSlot, RawAnswer } from './raw-answers.ts';
import { AnotherDefinition, type CallVerdict, type InBand, judgeFailure, judgeUnsent } from './tool-call-failure.ts';
import { digestOf, type ToolDefinition } from './tool-definition.ts';

/** The state of the server for a call. */
export type Standing =
  | { connection: Connection; definitions: readonly ToolDefinition[] }
  /**
   * `why` finishes "server …". A server that is off or untrusted is not a failure for the caller but an answer for the
   * model.
   */
  | { why: string; isTrusted: boolean };

export type ToolCallsOptions = {
  alias: string;
  clock: Clock;
  standing(): Standing;
  /** A running listing of the tools; no call is sent before it has ended. Never rejects. */
  looking(): Promise<void> | undefined;
  /** A call over this connection timed out and has ended. */
  onSilence(connection: Connection): void;
};

export type CallOptions = {
  timeoutMs: number;
  signal: AbortSignal | undefined;
  /** The definition that the caller knows; a changed one is not called. */
  definitionSha256?: string | undefined;
  /** Exactly one request is sent, and the digest of its answer is returned. */
  once?: boolean | undefined;
  /** The user of the call's intent; passed only to a server that acts for several users. */
  user?: string | undefined;
  /** The conversation of the call; passed to servers that request it. */
  conversation?: string | undefined;
};

/** The result of a call; `raw` where a digest was requested and an answer came. */
export type CallOutcome = ({ result: CallToolResult } | InBand) & { raw?: RawAnswer };

export class ToolCalls {
  readonly #options: ToolCallsOptions;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(options: ToolCallsOptions) {
    this.#options = options;
  }

  get areUnderWay(): boolean {
    return this.#underWay.size > 0;
  }

  /** Resolves when the running calls have ended, or after `limitMs`. */
  async drain(limitMs: number): Promise<void> {
    const ended = Promise.allSettled(this.#underWay);
    await withDeadline(this.#options.clock, limitMs, undefined, () => ended).catch(() => undefined);
  }

  /**
   * Calls a tool.
   *
   * @returns the result, or a text for the model
   * @throws ToolCallFailure
   */
  async call(tool: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<CallOutcome> {
    const { timeoutMs, signal, definitionSha256, once, user, conversation } = options;
    const slot: AnswerSlot | undefined = once ? {} : undefined;
    let begun: Connection | undefined;
    const running = withDeadline(this.#options.clock, timeoutMs, signal, async (inner) => {
      // The server may just have changed its tools: no call is sent before they have been listed and checked.
      const looking = this.#options.looking();
      if (looking) await looking;
      const standing = this.#options.standing();
      if (inner.aborted || 'why' in standing) throw new Error('not connected');
      const definition = standing.definitions.find(({ name }) => name === tool);
      if (!definition) throw new Error('the tool is gone');
      const live = definitionSha256 === undefined ? undefined : digestOf(definition);
      if (live !== definitionSha256) throw new AnotherDefinition(definitionSha256!, live!);
      begun = standing.connection;
      return begun.call(definition, args, { signal: inner, slot, user, conversation });
    });
    this.#underWay.add(running);
    try {
      const result = await running;
      return { result, ...slot };
    } catch (thrown) {
      const verdict = begun ? this.#judge(tool, thrown, begun) : this.#judgeUnsent(tool, thrown);
      if ('inBand' in verdict) return { ...verdict, ...slot };
      throw verdict.failure;
    } finally {
      this.#underWay.delete(running);
    }
  }

  /** @param begun the connection that the call was sent over */
  #judge(tool: string, thrown: unknown, begun: Connection): CallVerdict {
    const { alias, onSilence } = this.#options;
    // A server that timed out may hang. The call must have ended before the health check.
    if (thrown instanceof TimedOut) queueMicrotask(() => onSilence(begun));
    const verdict = judgeFailure(`${alias}/${tool}`, thrown, begun.ending);
    // MCP's status for a session that the server does not know any more; only a new session helps.
    if (thrown instanceof SdkHttpError && thrown.status === 404) begun.fail('has forgotten the session');
    return verdict;
  }

  #judgeUnsent(tool: string, thrown: unknown): CallVerdict {
    const { alias } = this.#options;
    const standing = this.#options.standing();
    if (!('why' in standing)) return judgeUnsent(alias, tool, thrown, undefined);
    if (standing.isTrusted) return judgeUnsent(alias, tool, thrown, standing.why);
    const inBand = `${alias}/${tool} is not available: server "${alias}" ${standing.why}`;
    return { inBand, withoutResult: 'unsent' };
  }
}
