/**
 * Identifiers that clients choose. They become names of files and segments of URL paths, where `.` and `..` lead
 * elsewhere: a name of dots alone is refused. The patterns have no look-ahead, which JSON Schema does not promise.
 */
import { z } from 'zod';
import { ReveilleError } from './errors.ts';

/** Letters, digits, `.`, `_` and `-`, up to a length, and not dots alone. */
export const NAME_PATTERN = String.raw`\.*[A-Za-z0-9_-][A-Za-z0-9._-]*`;
const ID = /^\.*[A-Za-z0-9_:-][A-Za-z0-9._:-]*$/;

function bounded(max: number, pattern: RegExp, characters: string) {
  const message = `must be 1 to ${max} of ${characters}, and not dots alone`;
  return z.string().min(1, message).max(max, message).regex(pattern, message);
}

/** The name of a user or an agent. */
export const nameSchema = (max: number) => bounded(max, new RegExp(`^${NAME_PATTERN}$`), 'A-Z a-z 0-9 . _ -');
/** The id of a conversation, a turn or a step. */
export const idSchema = (max: number) => bounded(max, ID, 'A-Z a-z 0-9 . _ : -');

/** Whether an id that another program gave can be a segment of a URL path. */
export const isPathSegment = (value: string) => !['', '.', '..'].includes(value) && value.isWellFormed();

/**
 * One segment of a URL path, encoded. URL parsers resolve `.` and `..` even where they are encoded.
 *
 * @throws ReveilleError `invalid_request` for what cannot be a segment
 */
export function pathSegment(value: string): string {
  if (isPathSegment(value)) return encodeURIComponent(value);
  const shown = JSON.stringify(value.slice(0, 60).toWellFormed());
  throw new ReveilleError('invalid_request', `an id in a path must not be empty, "." or ".." (got ${shown})`);
}
