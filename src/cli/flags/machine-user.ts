/** The user of a command about machines. */
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { labelOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from './usage-error.ts';

/** The named user, or the user of this installation. */
export function userOf(context: CliContext, given: string | undefined): string {
  const label = given ?? labelOf(context);
  if (label === undefined)
    throw new UsageError('the user id is missing, and this home has no identity; give a user id');
  if (!labelSchema.safeParse(label).success)
    throw new UsageError(
      `the user id must be 1 to 64 of A-Z a-z 0-9 . _ -, and not dots alone (got ${JSON.stringify(label)})`,
    );
  return ownerOf(label);
}
