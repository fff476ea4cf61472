/** The port to a language model. It answers one request at a time and keeps no state between requests. */

/** A function as a model sees it. */
export type ToolSchema = {
  /** `^[A-Za-z0-9_-]{1,64}$`, as model endpoints require. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, an object. */
  readonly parameters: Record<string, unknown>;
};

export type ModelToolCall = {
  /** The endpoint's own id for it, returned with the result. */
  readonly id: string;
  readonly name: string;
  /** The arguments as the model wrote them: JSON source text, possibly invalid. */
  readonly input: string;
  /** Endpoint-specific data that must be returned unchanged with the call. */
  readonly opaque?: Readonly<Record<string, unknown>>;
  /** Why the call must not be made; for the model. */
  readonly fault?: string;
};

export type ModelImage = { readonly mediaType: string; readonly data: string /* base64 */ };

export type ModelMessage =
  | { readonly role: 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly toolCalls?: readonly ModelToolCall[] }
  /** The result of a call. The results of an answer's calls follow it in the order of the calls. */
  | {
      readonly role: 'tool';
      readonly callId: string;
      readonly name: string;
      readonly content: string;
      readonly images?: readonly ModelImage[];
      readonly isError: boolean;
    };

export type ModelRequest = {
  readonly system: string;
  /** Oldest first; the message to answer comes last. */
  readonly messages: readonly ModelMessage[];
  /** Tools that the model may call; absent: none. */
  readonly tools?: readonly ToolSchema[];
  /** The model gets the tools, because earlier calls refer to them, but must answer with text. */
  readonly textOnly?: boolean;
  /** Aborts the request; the promise then rejects. */
  readonly signal: AbortSignal;
  /** Called with each piece of the answer. */
  readonly onText: (piece: string) => void;
};

export type ModelUsage = { readonly inputTokens?: number; readonly outputTokens?: number };

export type ModelAnswer = {
  /** The whole answer: the pieces given to `onText`, joined. Empty only with tool calls. */
  readonly text: string;
  /** Calls to make before the model can continue, in the order it wrote them. */
  readonly toolCalls?: readonly ModelToolCall[];
  /** The model's name in the answer. */
  readonly model: string;
  readonly usage?: ModelUsage;
  /** Why the answer is incomplete; absent if it is complete. */
  readonly cutOff?: string;
};

/** @typeParam Request the required request type; a model that needs only the base type accepts extended requests too */
export type Model<Request extends ModelRequest = ModelRequest> = {
  /** The configured name, before the first answer. */
  readonly name: string;
  /** Whether it can call tools. If not, no tool servers need to start for it. */
  readonly callsTools?: boolean;
  /** Another model of the same endpoint, by its name there; absent where there is only one. */
  readonly named?: (name: string) => Model<Request>;
  /**
   * Answers a request, or rejects if the signal aborts or the model does not answer.
   *
   * @throws ReveilleError with a message for people: `rate_limited` or `unavailable` (retryable) if the same request
   * may succeed later, any other code if it will not
   */
  generate(request: Request): Promise<ModelAnswer>;
};
