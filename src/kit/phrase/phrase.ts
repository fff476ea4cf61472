/**
 * Times as people type them: `tomorrow 9am`, `every weekday at 9`, `in 2 hours`. Pure.
 *
 * The grammar is closed: a text is parsed whole or refused. Ambiguous text is refused with the alternatives, each ready
 * to be typed instead. Nothing is guessed.
 */
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { isZone } from '../clock/zone.ts';
import { parseRecurrence } from '../recurrence/recurrence.ts';
import { onceOf, relativeOf } from './once.ts';
import { PhraseReader } from './phrase-reader.ts';
import { type PhraseContext, PhraseError, type Reading } from './reading.ts';
import { seriesOf } from './series.ts';
import { usesWallClock } from './series-text.ts';

const LONGEST_PHRASE = 200;
/** Control and format characters: the direction of text, for example. */
const INVISIBLE = /[\p{Cc}\p{Cf}]/u;

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
  /^(?:@\w+(?:\s+\S+)?|(?=[\d*])(?:[\d*/,-]|\b(?:sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\b)+(?:\s+(?:[\d*/,-]|\b(?:sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\b)+){4})$/i;

/** Content lines of RFC 5545, which may be typed on one line. */
const RULES = /^(?:(?:RRULE|DTSTART|RDATE|EXDATE)[:;]|FREQ=)/i;

/** @throws PhraseError for rules that RFC 5545 does not permit */
function rulesOf(text: string, zone: string): Reading {
  const rrule = text.trim().replace(/(?<!\s)\s+(?=(?:RRULE|DTSTART|RDATE|EXDATE)[:;])/gi, '\n');
  try {
    parseRecurrence(rrule);
  } catch (thrown) {
    // The field and the whole text are known to the reader.
    if (thrown instanceof ReveilleError) throw new PhraseError(thrown.message.replace(/^rrule: | \(got ".*"\)$/gs, ''));
    throw thrown;
  }
  return { kind: 'series', rrule, zone };
}

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
  if (parts.repeat !== undefined) return seriesOf(phrase, parts, context);
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

/** Parses a phrase whose zone is known. @throws PhraseError with choices that are whole phrases */
function readIn(phrase: string, context: PhraseContext, suffix: string): Reading {
  try {
    return read(phrase, context);
  } catch (thrown) {
    if (!(thrown instanceof PhraseError) || thrown.choices.length === 0) throw thrown;
    const { problem, choices, replaces } = thrown;
    const whole = choices
      .map((choice) => (replaces === undefined ? choice : phrase.replace(replaces, () => choice)))
      .filter((choice) => choice !== phrase && isUsable(choice, context));
    throw new PhraseError(
      whole.length > 0 || problem.includes('; ')
        ? problem
        : `${problem}; write it as in "in 2 hours" or "2026-12-01 09:00"`,
      whole.map((choice) => (WITH_OFFSET.test(choice) ? choice : choice + suffix)),
    );
  }
}

const needsZone = (phrase: string) =>
  new PhraseError(`"${phrase}" needs a time zone, such as Europe/Berlin`, [], { needsZone: true });

/** Parses a phrase in no zone. @throws PhraseError if the phrase is a local time, and as {@link readPhrase} */
function readWithoutZone(phrase: string, context: PhraseContext): Reading {
  try {
    const reading = read(phrase, context);
    if (isWithoutZone(reading) || WITH_OFFSET.test(phrase)) return reading;
  } catch (thrown) {
    // Other errors may depend on the zone.
    if (!(thrown instanceof PhraseError) || thrown.isUnknown || WITH_OFFSET.test(phrase)) throw thrown;
  }
  throw needsZone(phrase);
}

/** Whether a reading is the same in each zone. */
const isWithoutZone = (reading: Reading) =>
  reading.kind === 'delay' || (reading.kind === 'series' && reading.cron !== undefined && !usesWallClock(reading.cron));

/**
 * Parses a time or a schedule.
 *
 * @param context.zone without one, only a phrase that names its zone or needs none is read
 * @throws PhraseError if the text is unknown, has passed, is ambiguous, or needs a zone
 */
export function readPhrase(
  text: string,
  context: Omit<PhraseContext, 'zone'> & { readonly zone: string | undefined },
): Reading {
  if (RULES.test(text.trim())) {
    if (context.zone === undefined) throw needsZone(text);
    return rulesOf(text, context.zone);
  }
  const phrase = text.trim().replace(/\s+/g, ' ');
  if (phrase === '') throw new PhraseError('a time is missing; write one such as "tomorrow 9am"');
  if (phrase.length > LONGEST_PHRASE) throw new PhraseError(`a time must be at most ${LONGEST_PHRASE} characters`);
  const [hidden] = INVISIBLE.exec(phrase) ?? [];
  if (hidden !== undefined) {
    const code = hidden.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    throw new PhraseError(`a time must not have invisible characters (it has U+${code}); type it again`);
  }
  const { rest, zone } = splitZone(phrase);
  if (zone !== undefined) return readIn(rest, { ...context, zone }, ` ${zone}`);
  if (context.zone === undefined) return readWithoutZone(rest, { ...context, zone: 'UTC' });
  return readIn(rest, { ...context, zone: context.zone }, '');
}
