/** Every error code that crosses a process boundary, with the HTTP status it travels under (docs/contracts.md §0). */
export const STATUS_OF = {
  /**
   * The request cannot be understood, or a value in it is not allowed. The message names the field, its value and
   * what would be right; the same request gives the same answer.
   */
  invalid_request: 400,
  /**
   * Nobody said who asks, or the token, the key or the signature does not count: it is another daemon's, it has
   * expired or it was revoked. Get a valid one; a command says where it looked.
   */
  unauthorized: 401,
  /**
   * It is known who asks, and that they may not: a key that nobody enrolled, a machine that is suspended, a record
   * of somebody else's where its existence is no secret. Whoever runs the daemon can allow it; the message says how.
   */
  forbidden: 403,
  /**
   * There is no such thing, or it is not visible to whoever asks, which look alike on purpose. Look for the id in
   * the list; what was deleted does not come back.
   */
  not_found: 404,
  /**
   * The request does not fit to how things stand: an alarm that has ended, an idempotency key that stands for
   * another request, a question that was answered already, a database of a newer version. Read how things stand,
   * then decide anew.
   */
  conflict: 409,
  /**
   * More than there is room for at the moment: a bound of the settings, a budget, quiet hours. Wait for as long as
   * `Retry-After` says, or for half a minute; nothing was carried out.
   */
  rate_limited: 429,
  /** A defect of ours, or an error of the computer that nothing foresaw. The answer says no more, the daemon's log does. */
  internal: 500,
  /**
   * What is needed does not answer: a daemon that does not run, a machine that does not start, a database or a model
   * that is away. Try again later; the message says when it is not known whether the request was carried out.
   */
  unavailable: 503,
} as const;

/** The closed set of error codes. */
export type ErrorCode = keyof typeof STATUS_OF;

/** Whether a caller may send the same request again and hope for another answer, unless the thrower knows better. */
const RETRYABLE: ReadonlySet<ErrorCode> = new Set(['rate_limited', 'internal', 'unavailable']);

/** What a thrower may say besides code and message. */
export type ReveilleErrorOptions = {
  /** Overrides the code's default: may the same request succeed later? */
  retryable?: boolean;
  /** Overrides the code's HTTP status, for the places where HTTP has a finer word (413, 410, 451, 502, 504). */
  status?: number;
  /** Seconds after which a retry makes sense; travels as `Retry-After`. */
  retryAfterSeconds?: number;
  cause?: unknown;
};

/**
 * The one error type that crosses boundaries. `message` is read by people and models: it names the field, what is wrong
 * with its value, and what would be right. It never carries a secret.
 */
export class ReveilleError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, options: ReveilleErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ReveilleError';
    this.code = code;
    this.retryable = options.retryable ?? RETRYABLE.has(code);
    this.status = options.status ?? STATUS_OF[code];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** The error half of the envelope. */
export type WireError = { code: ErrorCode; message: string; retryable: boolean };

/**
 * What a caller gets to see of any thrown value. Errors that are not ours become `internal` without their text: it may
 * carry paths, SQL or secrets, and belongs in the log.
 */
export function toReveilleError(thrown: unknown): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  return new ReveilleError('internal', 'something went wrong on our side; the log has the details', { cause: thrown });
}

/** The `{code, message, retryable}` object of an error, as envelopes and MCP results carry it. */
export function wireErrorOf(error: ReveilleError): WireError {
  return { code: error.code, message: error.message, retryable: error.retryable };
}
