/** The port to a language model. What stands behind it answers one request at a time and keeps nothing in between. */

/** A function as a model sees it. */
export type ToolSchema = {
  /** `^[A-Za-z0-9_-]{1,64}$`, as model endpoints want it. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, an object. */
  readonly parameters: Record<string, unknown>;
};

/** A call that a model asks for. */
export type ModelToolCall = {
  /** The endpoint's own name for it, given back with the result. */
  readonly id: string;
  readonly name: string;
  /** The arguments as the model wrote them: JSON source text, or what it took for that. */
  readonly input: string;
  /** What the endpoint wants back unchanged beside the call, in its own terms. */
  readonly opaque?: Readonly<Record<string, unknown>>;
  /** Why the call must not be made although it was asked for; for the model. */
  readonly fault?: string;
};

export type ModelImage = { readonly mediaType: string; readonly data: string /* base64 */ };

/** A line of the conversation as a model is shown it. */
export type ModelMessage =
  | { readonly role: 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly toolCalls?: readonly ModelToolCall[] }
  /** What came of a call. The results of an answer's calls follow it in the order of the calls. */
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
  /** Oldest first; what is to be answered comes last. */
  readonly messages: readonly ModelMessage[];
  /** What the model may call; none when absent. */
  readonly tools?: readonly ToolSchema[];
  /** The model is shown the tools, for earlier calls refer to them, but must answer in words. */
  readonly wordsOnly?: boolean;
  /** Ends the request; the promise then rejects. */
  readonly signal: AbortSignal;
  /** Called with each piece of the answer as it comes. */
  readonly onText: (piece: string) => void;
};

export type ModelUsage = { readonly inputTokens?: number; readonly outputTokens?: number };

export type ModelAnswer = {
  /** The whole answer: the pieces given to `onText`, joined. Empty only beside tool calls. */
  readonly text: string;
  /** Calls to make before the model can go on, in the order it wrote them. */
  readonly toolCalls?: readonly ModelToolCall[];
  /** The model as it names itself. */
  readonly model: string;
  readonly usage?: ModelUsage;
  /** Why the answer stops before its end; absent when it is whole. */
  readonly cutOff?: string;
};

/** @typeParam Request what it has to be told; a model that needs no more than others do goes wherever more is told */
export type Model<Request extends ModelRequest = ModelRequest> = {
  /** What it is called before it has answered. */
  readonly name: string;
  /** Whether it can call tools; a model that cannot needs none started for it. */
  readonly callsTools?: boolean;
  /**
   * Answers a request, or rejects when the signal aborts or the model does not answer.
   *
   * @throws ReveilleError whose message may be shown to people: `rate_limited` or `unavailable` (retryable) when the
   *   same request may succeed later, any other code when it will not
   */
  generate(request: Request): Promise<ModelAnswer>;
};
