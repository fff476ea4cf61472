/** The envelope of every HTTP answer of every daemon (docs/reference/api.md, "Common rules"). */
import { z } from 'zod';
import { ReveilleError, STATUS_OF, wireErrorOf } from './errors.ts';
import { ANSWER_DEPTH, encodeJson, parseJsonObject, RawJson, sliceAt } from './json.ts';

const errorCodes = Object.keys(STATUS_OF) as [keyof typeof STATUS_OF];

const failureSchema = z.object({
  ok: z.literal(false),
  error: z.object({ code: z.enum(errorCodes), message: z.string(), retryable: z.boolean() }),
});

/** The text of a success envelope; {@link RawJson} in `data` is written verbatim. */
export function okEnvelope(data: unknown): string {
  return `{"ok":true,"data":${encodeJson(data)}}`;
}

/** The text of a failure envelope. */
export function errorEnvelope(error: ReveilleError): string {
  return JSON.stringify({ ok: false, error: wireErrorOf(error) });
}

/** The message of a failure envelope; `undefined` for any other text. */
export function errorMessageOf(text: string): string | undefined {
  try {
    const failure = failureSchema.safeParse(parseJsonObject(text, [], ANSWER_DEPTH));
    return failure.success ? failure.data.error.message : undefined;
  } catch {
    return undefined;
  }
}

/** An answer that no daemon of Reveille gives, such as that of a proxy. */
export class NoEnvelope extends ReveilleError {
  /** Whether the request may have been carried out: a proxy refuses with 3xx or 4xx what it does not pass on. */
  readonly mayHaveArrived: boolean;

  constructor(status: number, who: string, cause?: unknown) {
    super('unavailable', `${who} answered ${status} with a body that is not an envelope`, { cause });
    this.mayHaveArrived = status < 300 || status >= 500;
  }
}

/**
 * Opens the envelope in a daemon's answer and returns the source text of its `data`.
 *
 * @param status the HTTP status, used when the body is not an envelope
 * @param who names the daemon in the error message, such as `chronosd`
 * @param retryAfterSeconds the value of its `Retry-After` header
 * @throws ReveilleError the daemon's own error, or `unavailable` when the answer is not an envelope
 */
export function openEnvelope(text: string, status: number, who: string, retryAfterSeconds?: number): RawJson {
  let body: Record<string, unknown>;
  try {
    body = parseJsonObject(text, [], ANSWER_DEPTH);
  } catch (cause) {
    throw new NoEnvelope(status, who, cause);
  }
  if (body.ok === true) return new RawJson(sliceAt(text, ['data']) ?? 'null');
  const failure = failureSchema.safeParse(body);
  if (!failure.success) {
    throw new NoEnvelope(status, who);
  }
  const { code, message, retryable } = failure.data.error;
  throw new ReveilleError(code, message, {
    retryable,
    status,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}
