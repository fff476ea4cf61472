/**
 * Identifiers that clients choose. They become file names and URL path segments, where `.` and `..` are special, so
 * names of only dots are refused. The patterns use no look-ahead, because JSON Schema does not guarantee it.
 */
import { z } from 'zod';
import { ReveilleError } from './errors.ts';

/** Letters, digits, `.`, `_` and `-`, not only dots. The length is checked separately. */
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

/** Whether an id from another program can be a segment of a URL path. */
export const isPathSegment = (value: string) => !['', '.', '..'].includes(value) && value.isWellFormed();

/**
 * One encoded segment of a URL path. URL parsers resolve `.` and `..` even if they are encoded.
 *
 * @throws ReveilleError `invalid_request` for a value that cannot be a segment
 */
export function pathSegment(value: string): string {
  if (isPathSegment(value)) return encodeURIComponent(value);
  const shown = JSON.stringify(value.slice(0, 60).toWellFormed());
  throw new ReveilleError('invalid_request', `an id in a path must not be empty, "." or ".." (got ${shown})`);
}
