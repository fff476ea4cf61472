/** Cursors: positions in an ordered listing, opaque to clients. */
import type { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { parseForeignJson } from '../../wire/json.ts';

/** Encodes a position. */
export function encodeCursor(position: unknown): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/**
 * Decodes a position.
 *
 * @throws ReveilleError `invalid_request` when the cursor was not made by {@link encodeCursor} for this listing
 */
export function decodeCursor<T extends z.ZodType>(schema: T, cursor: string): z.output<T> {
  try {
    return schema.parse(parseForeignJson(Buffer.from(cursor, 'base64url').toString('utf8')));
  } catch (cause) {
    throw new ReveilleError('invalid_request', 'cursor must be the next_cursor of an earlier answer, unchanged', {
      cause,
    });
  }
}
