/** Every error code that crosses a process boundary, with the HTTP status it travels under (docs/contracts.md §0). */
export const STATUS_OF = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  rate_limited: 429,
  internal: 500,
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
