/** The calls of one server's tools: each made within its time, and judged when it brings no result. */
import { type CallToolResult, SdkHttpError } from '@modelcontextprotocol/client';
import type { Clock } from '../kit/clock/clock.ts';
import type { Connection } from './connection.ts';
import { TimedOut, withDeadline } from './deadline.ts';
import type { AnswerSlot, RawAnswer } from './raw-answers.ts';
import { AnotherDefinition, type CallVerdict, type InBand, judgeFailure, judgeUnsent } from './tool-call-failure.ts';
import { digestOf, type ToolDefinition } from './tool-definition.ts';

/** How a server stands to a call. */
export type Standing =
  | { connection: Connection; definitions: readonly ToolDefinition[] }
  /**
   * `why` finishes "server …"; that a server is off or not trusted is no failure to the caller but an answer to the
   * model.
   */
  | { why: string; isTrusted: boolean };

export type ToolCallsOptions = {
  alias: string;
  clock: Clock;
  standing(): Standing;
  /** A look at the tools that is under way; nothing is called before it is over. Never rejects. */
  looking(): Promise<void> | undefined;
  /** A call over this connection, which is over now, got no answer in its time. */
  onSilence(connection: Connection): void;
};

export type CallOptions = {
  timeoutMs: number;
  signal: AbortSignal | undefined;
  /** The definition that the caller knows: another one is not called. */
  definitionSha256?: string | undefined;
  /** Exactly one request is sent, and the digest of its answer is wanted. */
  once?: boolean | undefined;
  /** Whose intent the call is made for; only a server that acts for several users is told. */
  user?: string | undefined;
  /** In which conversation it is called; told to servers that ask for it. */
  conversation?: string | undefined;
};

/** What came of a call; `raw` where a digest was wanted and an answer came. */
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

  /** Resolves when those that are under way have ended, or after `limitMs`. */
  async drain(limitMs: number): Promise<void> {
    const ended = Promise.allSettled(this.#underWay);
    await withDeadline(this.#options.clock, limitMs, undefined, () => ended).catch(() => undefined);
  }

  /**
   * Calls a tool.
   *
   * @returns the result, or words for the model
   * @throws ToolCallFailure
   */
  async call(tool: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<CallOutcome> {
    const { timeoutMs, signal, definitionSha256, once, user, conversation } = options;
    const slot: AnswerSlot | undefined = once ? {} : undefined;
    let begun: Connection | undefined;
    const running = withDeadline(this.#options.clock, timeoutMs, signal, async (inner) => {
      // It may just have changed its tools: nothing is called before they have been looked at.
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
    // One that gave no answer in time may never give one again. The call itself must be over before that is looked at.
    if (thrown instanceof TimedOut) queueMicrotask(() => onSilence(begun));
    const verdict = judgeFailure(`${alias}/${tool}`, thrown, begun.ending);
    // What MCP says of a session that the server does not know any more; only a new one will do.
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
