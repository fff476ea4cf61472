/** Cursors: opaque to clients, a position in an ordered listing to us. */
import type { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { parseForeignJson } from '../../wire/json.ts';

/** Packs a position. */
export function encodeCursor(position: unknown): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/**
 * Unpacks a position.
 *
 * @throws ReveilleError `invalid_request` when the cursor is none that {@link encodeCursor} made for this listing
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
