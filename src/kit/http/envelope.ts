/** Writes answers in the Reveille envelope (docs/reference/api.md, "Common rules"). */
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { errorEnvelope, okEnvelope } from '../../wire/envelope.ts';
import type { ReveilleError } from '../../wire/errors.ts';
import type { HttpContext } from './environment.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

/** Answers with `{"ok":true,"data":…}`; raw JSON inside `data` is written verbatim. */
export function sendOk(c: HttpContext, data: unknown, status: ContentfulStatusCode = 200): Response {
  return c.body(okEnvelope(data), status, { 'content-type': JSON_TYPE });
}

/** The headers and text of a failure; `Retry-After` in whole seconds, rounded up. */
export function failureParts(error: ReveilleError): { headers: Record<string, string>; text: string } {
  const headers: Record<string, string> = { 'content-type': JSON_TYPE };
  if (error.retryAfterSeconds !== undefined)
    headers['retry-after'] = String(Math.max(0, Math.ceil(error.retryAfterSeconds)));
  if (error.status === 401) headers['www-authenticate'] = 'Bearer';
  return { headers, text: errorEnvelope(error) };
}

/**
 * Answers with `{"ok":false,"error":…}` under the error's status. Only the server's error handler calls it; handlers
 * throw.
 */
export function sendError(c: HttpContext, error: ReveilleError): Response {
  const { headers, text } = failureParts(error);
  return c.body(text, error.status as ContentfulStatusCode, headers);
}
