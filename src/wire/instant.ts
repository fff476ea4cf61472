/** Instants on the wire: RFC 3339 with an offset; written in UTC with milliseconds (docs/reference/api.md, "Common rules"). */
import { z } from 'zod';
import { parseInstant } from './rfc3339.ts';

/** An instant on the wire; parses to milliseconds since the epoch. */
export const instantSchema = z.string().transform((text, context) => {
  const epochMs = parseInstant(text);
  if (epochMs !== undefined) return epochMs;
  context.addIssue({
    code: 'custom',
    message: 'must be an RFC 3339 instant with an offset, such as 2026-06-15T08:10:00Z',
  });
  return z.NEVER;
});
