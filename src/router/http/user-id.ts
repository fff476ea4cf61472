/** The user that a route is about. */
import type { HttpContext } from '../../kit/http/environment.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';

/** @throws ReveilleError `invalid_request` when it is no user id */
export function userIdOf(c: HttpContext): string {
  const given = c.req.param('user_id');
  const label = labelSchema.safeParse(given);
  if (label.success) return ownerOf(label.data);
  const why = label.error.issues[0]?.message;
  throw new ReveilleError('invalid_request', `user_id ${why} (got ${showValue(given)})`);
}
