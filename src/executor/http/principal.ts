/** Whose intents a request is about. The bearer proves who calls; the caller vouches for the user it names. */
import { z } from 'zod';
import type { HttpContext } from '../../http-kit/environment.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { WAKE_HEADERS } from '../../wire/wake.ts';

const headerSchema = z.object({ 'X-Matrix-User': labelSchema });

/**
 * The user as intents are filed under them: a label, in lower case when it is a UUID.
 *
 * @throws ReveilleError `invalid_request` when the header is missing or no label
 */
export function userOf(c: HttpContext): string {
  return ownerOf(parseOrThrow(headerSchema, { 'X-Matrix-User': c.req.header(WAKE_HEADERS.user) })['X-Matrix-User']);
}
