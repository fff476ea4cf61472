/**
 * Times as people type them: `tomorrow 9am`, `every weekday at 9`, `in 2 hours`. Pure.
 *
 * The grammar is closed: a text is parsed whole or refused. Ambiguous text is refused with the alternatives, each ready
 * to be typed instead. Nothing is guessed.
 */
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { isZone } from '../clock/zone.ts';
import { onceOf, relativeOf } from './once.ts';
import { PhraseReader } from './phrase-reader.ts';
import { type PhraseContext, PhraseError, type Reading } from './reading.ts';
import { seriesOf } from './series.ts';

const LONGEST_PHRASE = 200;

const ZONE_AT_END = /\s+(?:in\s+)?((?:UTC|GMT|Etc\/\w+|[A-Z][A-Za-z]+(?:\/[A-Z][A-Za-z_+-]+){1,2}))(?:\s+time)?$/;

/** Removes a zone from the end of a phrase. */
function splitZone(text: string): { rest: string; zone: string | undefined } {
  const found = ZONE_AT_END.exec(text);
  if (found === null) return { rest: text, zone: undefined };
  const [all, zone] = found as unknown as [string, string];
  if (!isZone(zone)) throw new PhraseError(`"${zone}" is not a time zone; name one such as Europe/Berlin, or UTC`);
  return { rest: text.slice(0, -all.length), zone };
}

/** RFC 3339; seconds are optional. */
const WITH_OFFSET = /^(\d{4}-\d\d-\d\d)[tT ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?([zZ]|[+-]\d\d:\d\d)$/;
/** Five fields or a descriptor, which chronosd parses itself. */
const CRON =
  /^(?:@\w+(?:\s+\S+)?|(?:[\d*/,-]|\b(?:sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\b)+(?:\s+(?:[\d*/,-]|\b(?:sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\b)+){4})$/i;

/** Parses a phrase without its zone. */
function read(phrase: string, context: PhraseContext): Reading {
  const [, date, time, offset] = WITH_OFFSET.exec(phrase) ?? [];
  const instant =
    date === undefined ? undefined : parseInstant(`${date}T${time!.length === 5 ? `${time}:00` : time}${offset}`);
  if (instant !== undefined) {
    if (instant <= context.now) throw new PhraseError(`"${phrase}" has passed: it is ${formatInstant(context.now)}`);
    return { kind: 'instant', at: instant, zone: context.zone };
  }
  if (CRON.test(phrase)) return { kind: 'series', cron: phrase, zone: context.zone };
  const parts = new PhraseReader(phrase).read();
  if (parts.repeat !== undefined) return seriesOf(phrase, parts, context.zone);
  if (parts.ahead !== undefined) return relativeOf(phrase, parts, context);
  return onceOf(phrase, parts, context);
}

/** Whether a phrase is valid, or is refused with choices. */
function isUsable(phrase: string, context: PhraseContext): boolean {
  try {
    read(phrase, context);
    return true;
  } catch (thrown) {
    if (thrown instanceof PhraseError) return thrown.choices.length > 0;
    throw thrown;
  }
}

/** Parses a time or a schedule. @throws PhraseError if the text is unknown, has passed, or is ambiguous */
export function readPhrase(text: string, context: PhraseContext): Reading {
  const phrase = text.trim().replace(/\s+/g, ' ');
  if (phrase === '') throw new PhraseError('a time is missing; write one such as "tomorrow 9am"');
  if (phrase.length > LONGEST_PHRASE) throw new PhraseError(`a time must be at most ${LONGEST_PHRASE} characters`);
  const { rest, zone } = splitZone(phrase);
  const here = zone === undefined ? context : { ...context, zone };
  try {
    return read(rest, here);
  } catch (thrown) {
    if (!(thrown instanceof PhraseError) || thrown.choices.length === 0) throw thrown;
    const { problem, choices, replaces } = thrown;
    const whole = choices
      .map((choice) => (replaces === undefined ? choice : rest.replace(replaces, choice)))
      .filter((choice) => choice !== rest && isUsable(choice, here));
    // The choice is typed without the zone's context, so it needs the same zone.
    const suffix = zone === undefined ? '' : ` ${zone}`;
    throw new PhraseError(
      problem,
      whole.map((choice) => (WITH_OFFSET.test(choice) ? choice : choice + suffix)),
    );
  }
}
