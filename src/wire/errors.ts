/** Every error code that crosses a process boundary, with its HTTP status (docs/reference/api.md, "Common rules"). */
export const STATUS_OF = {
  /**
   * The request cannot be parsed, or one of its values is not allowed. The message names the field, its value and the
   * allowed values. The same request always gets the same answer.
   */
  invalid_request: 400,
  /**
   * The credential is missing, invalid, expired, revoked, or meant for another daemon. Get a valid token, key or
   * signature. Commands name the places where they looked for one.
   */
  unauthorized: 401,
  /**
   * The caller is known but not permitted: its key is not enrolled, its machine is suspended, or the record belongs to
   * another user. The operator can grant access; the message says how.
   */
  forbidden: 403,
  /**
   * The record does not exist, or the caller may not see it; the two cases are indistinguishable on purpose. Look up
   * the id in the list. Deleted records do not come back.
   */
  not_found: 404,
  /**
   * The request does not match the current state: the alarm has ended, the idempotency key belongs to another request,
   * the question is already answered, or the database has a newer version. Read the current state, then decide again.
   */
  conflict: 409,
  /**
   * A limit is reached: a configured limit, a budget, or quiet hours. Nothing was executed. Wait for the seconds in
   * `Retry-After`, or half a minute without it.
   */
  rate_limited: 429,
  /** A defect, or an unexpected error of the operating system. The details are only in the daemon's log. */
  internal: 500,
  /**
   * A dependency does not answer: a daemon does not run, a machine does not start, or a database or model is
   * unreachable. Try again later. The message says so if the request may have been executed.
   */
  unavailable: 503,
} as const;

/** The closed set of error codes. */
export type ErrorCode = keyof typeof STATUS_OF;

/** Codes whose request may be retried unchanged, unless the error itself says otherwise. */
const RETRYABLE: ReadonlySet<ErrorCode> = new Set(['rate_limited', 'internal', 'unavailable']);

/** Optional properties of an error. */
export type ReveilleErrorOptions = {
  /** Whether the same request may succeed later; overrides the code's default. */
  retryable?: boolean;
  /** Overrides the code's HTTP status where HTTP has a more specific one (413, 410, 451, 502, 504). */
  status?: number;
  /** Seconds until a retry makes sense; sent as `Retry-After`. */
  retryAfterSeconds?: number;
  cause?: unknown;
};

/**
 * The only error type that crosses boundaries. People and models read `message`: it names the field, the problem with
 * its value, and the allowed values. It never contains a secret.
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
 * The error that a caller sees for any thrown value. Other errors become `internal` without their text, which may
 * contain paths, SQL or secrets and belongs in the log.
 */
export function toReveilleError(thrown: unknown): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  return new ReveilleError('internal', 'internal error; the log of the daemon has the details', { cause: thrown });
}

/** The message of any thrown value. */
export const thrownText = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** The system's code of any thrown value, such as `ENOENT`. */
export const systemCodeOf = (thrown: unknown): unknown =>
  thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;

/** The `{code, message, retryable}` object of an error in envelopes and MCP results. */
export function wireErrorOf(error: ReveilleError): WireError {
  return { code: error.code, message: error.message, retryable: error.retryable };
}
