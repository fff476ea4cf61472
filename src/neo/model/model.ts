/** The port to a language model. What stands behind it answers one request at a time and keeps nothing in between. */
import type { Occasion } from '../turn.ts';

/** A line of the conversation as a model is shown it. */
export type ModelMessage = { readonly role: 'user' | 'assistant'; readonly content: string };

export type ModelRequest = {
  readonly system: string;
  /** Oldest first; the last one is the turn to answer. */
  readonly messages: readonly ModelMessage[];
  /** The facts of the last message as data, for a model that does not read. */
  readonly occasion: Occasion;
  /** Ends the request; the promise then rejects. */
  readonly signal: AbortSignal;
  /** Called with each piece of the answer as it comes. */
  readonly onText: (piece: string) => void;
};

export type ModelUsage = { readonly inputTokens?: number; readonly outputTokens?: number };

export type ModelAnswer = {
  /** The whole answer: the pieces given to `onText`, joined. Never empty. */
  readonly text: string;
  /** The model as it names itself. */
  readonly model: string;
  readonly usage?: ModelUsage;
  /** Why the answer stops before its end; absent when it is whole. */
  readonly cutOff?: string;
};

export type Model = {
  /** What it is called before it has answered. */
  readonly name: string;
  /**
   * Answers a request, or rejects when the signal aborts or the model does not answer.
   *
   * @throws ReveilleError whose message may be shown to people: `rate_limited` or `unavailable` (retryable) when the same
   *   request may succeed later, any other code when it will not
   */
  generate(request: ModelRequest): Promise<ModelAnswer>;
};
