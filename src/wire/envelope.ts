/** The envelope that every HTTP answer of every daemon travels in (docs/contracts.md §0). */
import { z } from 'zod';
import { ReveilleError, STATUS_OF, wireErrorOf } from './errors.ts';
import { ANSWER_DEPTH, encodeJson, parseJsonObject, RawJson, sliceAt } from './json.ts';

const errorCodes = Object.keys(STATUS_OF) as [keyof typeof STATUS_OF];

const failureSchema = z.object({
  ok: z.literal(false),
  error: z.object({ code: z.enum(errorCodes), message: z.string(), retryable: z.boolean() }),
});

/** The text of a success envelope; {@link RawJson} inside `data` is written verbatim. */
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

/**
 * Reads an answer that should be an envelope and gives back the source text of its `data`.
 *
 * @param status the HTTP status it came with, used when the body is not an envelope
 * @param who names the daemon for the error message, as in `chronosd`
 * @param retryAfterSeconds what its header asks for
 * @throws ReveilleError the daemon's own error, or `unavailable` when the answer is not an envelope
 */
export function openEnvelope(text: string, status: number, who: string, retryAfterSeconds?: number): RawJson {
  let body: Record<string, unknown>;
  try {
    body = parseJsonObject(text, [], ANSWER_DEPTH);
  } catch (cause) {
    throw new ReveilleError('unavailable', `${who} answered ${status} with something that is not an envelope`, {
      cause,
    });
  }
  if (body.ok === true) return new RawJson(sliceAt(text, ['data']) ?? 'null');
  const failure = failureSchema.safeParse(body);
  if (!failure.success) {
    throw new ReveilleError('unavailable', `${who} answered ${status} with something that is not an envelope`);
  }
  const { code, message, retryable } = failure.data.error;
  throw new ReveilleError(code, message, {
    retryable,
    status,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}
