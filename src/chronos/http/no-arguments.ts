/** Rejects arguments that a route does not read. An ignored argument would hide a caller's mistake. */
import { z } from 'zod';
import { bodyBytes, readJson } from '../../kit/http/body.ts';
import type { HttpContext } from '../../kit/http/handlers.ts';
import { parseOrThrow } from '../../wire/validate.ts';

const nothing = z.strictObject({});

/**
 * @throws ReveilleError `invalid_request` that names the valid query parameters
 */
export function refuseQuery(c: HttpContext): void {
  parseOrThrow(nothing, c.req.query());
}

/** @throws ReveilleError `invalid_request` unless there is no body, or an empty object */
export async function refuseBody(c: HttpContext): Promise<void> {
  if (bodyBytes(c).length > 0) parseOrThrow(nothing, await readJson(c));
}
