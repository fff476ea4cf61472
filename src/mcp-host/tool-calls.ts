/** The calls of one server's tools: each runs within its time limit, and is judged when it has no result. */
import { type CallToolResult, SdkHttpError } from '@modelcontextprotocol/client';
import type { Clock } from '../kit/clock/clock.ts';
import type { Connection } from './connection.ts';
import { TimedOut, withDeadline } from './deadline.ts';
import type { AskPerson } from './elicitation.ts';
import { signInRequired } from './oauth/server-authorization.ts';
import type { AnswerSlot, RawAnswer } from './raw-answers.ts';
import {
  type CallVerdict,
  DefinitionChanged,
  type InBandAnswer,
  judgeFailure,
  judgeUnsent,
} from './tool-call-failure.ts';
import { digestOf, type ToolDefinition } from './tool-definition.ts';

export type CallState =
  | { connection: Connection; definitions: readonly ToolDefinition[] }
  /**
   * `why` finishes "server …". A server that is off or untrusted is not a failure for the caller but an answer for the
   * model.
   */
  | { reason: string; isTrusted: boolean };

export type ToolCallsOptions = {
  alias: string;
  clock: Clock;
  callState(): CallState;
  /** A running listing of the tools; no call is sent before it has ended. Never rejects. */
  listing(): Promise<void> | undefined;
  /** A call over this connection timed out and has ended. */
  onTimeout(connection: Connection): void;
  /** The command with which the user signs in at the server. */
  signInCommand?: string | undefined;
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
  /** Asks the user a question of the server. The time limit of the call is paused meanwhile. */
  ask?: AskPerson | undefined;
};

/** The result of a call; `raw` where a digest was requested and an answer came. */
export type CallOutcome = ({ result: CallToolResult } | InBandAnswer) & { raw?: RawAnswer };

export class ToolCalls {
  readonly #options: ToolCallsOptions;
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: ToolCallsOptions) {
    this.#options = options;
  }

  get areRunning(): boolean {
    return this.#running.size > 0;
  }

  /** Resolves when the running calls have ended, or after `limitMs`. */
  async drain(limitMs: number): Promise<void> {
    const ended = Promise.allSettled(this.#running);
    await withDeadline(this.#options.clock, limitMs, undefined, () => ended).catch(() => undefined);
  }

  /**
   * @returns the result, or a text for the model
   * @throws ToolCallFailure
   */
  async call(tool: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<CallOutcome> {
    const { timeoutMs, signal, definitionSha256, once, user, conversation, ask } = options;
    const slot: AnswerSlot | undefined = once ? {} : undefined;
    let sentOver: Connection | undefined;
    const running = withDeadline(this.#options.clock, timeoutMs, signal, async (inner, pause) => {
      // The server may just have changed its tools: no call is sent before they have been listed and checked.
      const listing = this.#options.listing();
      if (listing) await listing;
      const state = this.#options.callState();
      if (inner.aborted || 'reason' in state) throw new Error('not connected');
      const definition = state.definitions.find(({ name }) => name === tool);
      if (!definition) throw new Error('the tool is gone');
      const live = definitionSha256 === undefined ? undefined : digestOf(definition);
      if (live !== definitionSha256) throw new DefinitionChanged(definitionSha256!, live!);
      sentOver = state.connection;
      const askMeanwhile: AskPerson | undefined =
        ask &&
        (async (question, asking) => {
          const goOn = pause();
          return await ask(question, asking).finally(goOn);
        });
      return sentOver.call(definition, args, { signal: inner, slot, user, conversation, ask: askMeanwhile });
    });
    this.#running.add(running);
    try {
      const result = await running;
      return { result, ...slot };
    } catch (thrown) {
      const verdict = sentOver ? this.#judge(tool, thrown, sentOver) : this.#judgeUnsent(tool, thrown);
      if ('inBand' in verdict) return { ...verdict, ...slot };
      throw verdict.failure;
    } finally {
      this.#running.delete(running);
    }
  }

  /** @param sentOver the connection that the call was sent over */
  #judge(tool: string, thrown: unknown, sentOver: Connection): CallVerdict {
    const { alias, onTimeout } = this.#options;
    // A server that timed out may hang. The call must have ended before the health check.
    if (thrown instanceof TimedOut) queueMicrotask(() => onTimeout(sentOver));
    const signIn = signInRequired(thrown);
    if (signIn) {
      // Without a sign-in the server must reconnect. With too few scopes, the connection still serves other calls.
      if (!signIn.isForMore) sentOver.fail(signIn.message);
      const { signInCommand } = this.#options;
      const how = signInCommand === undefined ? '' : `; the user signs in with: ${signInCommand}`;
      return {
        inBand: `${alias}/${tool} was not called: server "${alias}" ${signIn.message}${how}`,
        withoutResult: 'refused',
      };
    }
    const verdict = judgeFailure(`${alias}/${tool}`, thrown, sentOver.ending);
    // MCP's status for a session that the server does not know any more; only a new session helps.
    if (thrown instanceof SdkHttpError && thrown.status === 404) sentOver.fail('has forgotten the session');
    return verdict;
  }

  #judgeUnsent(tool: string, thrown: unknown): CallVerdict {
    const { alias } = this.#options;
    const state = this.#options.callState();
    if (!('reason' in state)) return judgeUnsent(alias, tool, thrown, undefined);
    if (state.isTrusted) return judgeUnsent(alias, tool, thrown, state.reason);
    const inBand = `${alias}/${tool} is not available: server "${alias}" ${state.reason}`;
    return { inBand, withoutResult: 'unsent' };
  }
}
