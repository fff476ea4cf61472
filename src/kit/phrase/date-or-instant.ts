/** An instant that may be in the past, as people type it; other phrases name the future. */
import { parseInstant } from '../../wire/rfc3339.ts';
import { readPhrase } from './phrase.ts';
import { PhraseError } from './reading.ts';

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_AND_TIME = /^\d{4}-\d{2}-\d{2}[ T]\d{1,2}:\d{2}(:\d{2})?$/;

/**
 * Reads RFC 3339, or a date with or without a time in a zone.
 *
 * @param zone IANA
 * @returns epoch ms; `undefined` for another text
 */
export function readDateOrInstant(text: string, zone: string): number | undefined {
  const instant = parseInstant(text);
  if (instant !== undefined) return instant;
  const words = DATE.test(text) ? `${text} 00:00` : text;
  if (!DATE_AND_TIME.test(words)) return undefined;
  try {
    // Read as if it were still to come.
    const reading = readPhrase(words, { now: 0, zone });
    return reading.kind === 'instant' ? reading.at : undefined;
  } catch (thrown) {
    if (thrown instanceof PhraseError) return undefined;
    throw thrown;
  }
}
