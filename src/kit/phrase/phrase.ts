/**
 * Times as people type them: `tomorrow 9am`, `every weekday at 9`, `in 2 hours`. Pure.
 *
 * The grammar is closed: a text is parsed whole or refused. Ambiguous text is refused with the alternatives, each ready
 * to be typed instead. Nothing is guessed.
 */
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { zoneName } from '../clock/local-time.ts';
import { isZone } from '../clock/zone.ts';
import { parseRecurrence } from '../recurrence/recurrence.ts';
import { onceOf, relativeOf } from './once.ts';
import { PhraseReader } from './phrase-reader.ts';
import { type PhraseContext, PhraseError, type Reading } from './reading.ts';
import { MINUTELY, seriesOf } from './series.ts';
import { seriesText, usesWallClock } from './series-text.ts';

const LONGEST_PHRASE = 200;
/** An instant of each year, which a refusal names as an example. */
const EXAMPLE = 'december 24 at 18:00';
/** Control and format characters: the direction of text, for example. */
const INVISIBLE = /[\p{Cc}\p{Cf}]/u;

const ZONE_AT_END = /,?\s+(?:in\s+)?((?:UTC|GMT|Etc\/[\w+-]+|[A-Z][A-Za-z]+(?:\/[A-Z][\w+-]+){1,2}))(?:\s+time)?$/;

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
/** Fields of cron or a descriptor. The schedule engine parses them, and names what is wrong with `L` or a sixth field. */
const CRON_FIELD =
  /(?:[\d*/,?#-]|\b(?:sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)L?\b|\bLW?\b|\b\d{1,2}[LW]\b)+/;
const CRON = new RegExp(
  String.raw`^(?:@\w+(?:\s+\S+)?|(?=[\d*])${CRON_FIELD.source}(?:\s+${CRON_FIELD.source}){4,6})$`,
  'i',
);

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

const ISO_DURATION = /\bP(?=\d|T\d)(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?(?!\w)/i;

/** @throws PhraseError for `PT1H30M`, with its words */
function refuseIsoDuration(phrase: string): void {
  const [duration, ...numbers] = ISO_DURATION.exec(phrase) ?? [];
  if (duration === undefined) return;
  const units = ['weeks', 'days', 'h', 'min', 's'];
  const words = numbers
    .flatMap((number, at) => (number === undefined ? [] : [`${Number(number)} ${units[at]}`]))
    .join(' ');
  const hasStart = /\b(?:in|every|each) +P[\dT]/i.test(phrase);
  throw new PhraseError(
    `"${duration}" is an ISO 8601 duration; a phrase has it in words`,
    [hasStart ? words : `in ${words}`],
    {
      replaces: ISO_DURATION,
    },
  );
}

/** `09:00 CET`, as Reveille prints an instant in the user's zone. */
const SHORT_ZONE_AT_END = /^(.*\d) ([A-Z]{3,5}|(?:UTC|GMT)[+-]\d{1,2}(?::\d\d)?)$/;

/** An instant with the short name that the user's zone has then; `undefined` for other phrases. */
function readWithShortZone(phrase: string, context: PhraseContext): Reading | undefined {
  const [, rest, name] = SHORT_ZONE_AT_END.exec(phrase) ?? [];
  if (rest === undefined) return undefined;
  const readings = [rest, ...(refusalOf(rest, context)?.choices ?? [])].flatMap((choice) =>
    refusalOf(choice, context) === undefined ? [read(choice, context)] : [],
  );
  return readings.find((reading) => reading.kind === 'instant' && zoneName(reading.at, context.zone) === name);
}

function refusalOf(phrase: string, context: PhraseContext): PhraseError | undefined {
  try {
    read(phrase, context);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof PhraseError) return thrown;
    throw thrown;
  }
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
  refuseIsoDuration(phrase);
  if (CRON.test(phrase)) return { kind: 'series', cron: phrase, zone: context.zone };
  const parts = new PhraseReader(phrase).read();
  if (parts.repeat !== undefined) return seriesOf(phrase, parts, context);
  if (parts.ahead !== undefined) return relativeOf(phrase, parts, context);
  return onceOf(phrase, parts, context);
}

/** Choices of choices: `tomorrow at 12am` can be `tomorrow at midnight`, which can be two times. */
const MOST_QUESTIONS = 4;

/** The phrases that a refusal offers, each accepted as it is. */
function choicesOf({ choices, replaces }: PhraseError, phrase: string, context: PhraseContext, left: number): string[] {
  const whole = choices.map((choice) => (replaces === undefined ? choice : phrase.replace(replaces, () => choice)));
  const refusals = whole.map((choice) => refusalOf(choice, context));
  const isOneAccepted = refusals.includes(undefined);
  const accepted = whole.flatMap((choice, at) => {
    const refusal = refusals[at];
    if (refusal === undefined) return [choice];
    // Of `today at 5`, one hour has passed: the other one is meant.
    const isLeftOut = left === 0 || (isOneAccepted && refusal.problem.includes(' has passed'));
    return isLeftOut ? [] : choicesOf(refusal, choice, context, left - 1);
  });
  return [...new Set(accepted)];
}

/** Parses a phrase whose zone is known. @throws PhraseError with choices that are whole phrases */
function readIn(phrase: string, context: PhraseContext, suffix: string): Reading {
  try {
    return read(phrase, context);
  } catch (thrown) {
    if (!(thrown instanceof PhraseError)) throw thrown;
    const { problem, isUnknown } = thrown;
    // What may be a typing error is offered only if the rest has one meaning.
    const whole = choicesOf(thrown, phrase, context, isUnknown ? 0 : MOST_QUESTIONS);
    const isExplained = whole.length > 0 || (problem.includes('; ') && thrown.choices.length === 0);
    throw new PhraseError(
      isExplained ? problem : `${problem}; write it as in "in 2 hours" or "${EXAMPLE}"`,
      whole.map((choice) => (WITH_OFFSET.test(choice) ? choice : choice + suffix)),
      { isUnknown },
    );
  }
}

const needsZone = (phrase: string) =>
  new PhraseError(`"${phrase}" needs a time zone, such as Europe/Berlin`, [], { needsZone: true });

/** Parses a phrase in no zone. @throws PhraseError if the phrase is a local time, and as {@link readPhrase} */
function readWithoutZone(phrase: string, context: PhraseContext): Reading {
  try {
    const reading = readIn(phrase, context, '');
    if (isWithoutZone(reading) || WITH_OFFSET.test(phrase)) return reading;
  } catch (thrown) {
    // Other errors may depend on the zone.
    if (!(thrown instanceof PhraseError) || thrown.isUnknown || WITH_OFFSET.test(phrase)) throw thrown;
  }
  throw needsZone(phrase);
}

/** Whether a reading is the same in each zone. */
const isWithoutZone = (reading: Reading) =>
  reading.kind === 'delay' ||
  (reading.kind === 'series' &&
    reading.cron !== undefined &&
    (!usesWallClock(reading.cron) || reading.cron === MINUTELY));

/** What Reveille prints behind a reading in parentheses: what the phrase left open. */
const NOTE = /^(?:at|on|the last of a day at) [^()]*$/;

/**
 * Parses a text with an aside in parentheses, as Reveille prints them: the expression, or what a phrase left open.
 *
 * @throws PhraseError if both parts differ
 */
function readWithAside(rest: string, aside: string, context: OpenContext): Reading {
  const refuse = () => new PhraseError(`"${rest}" and "${aside}" differ; write only one of them`);
  if (!RULES.test(aside) && !CRON.test(aside)) {
    if (!NOTE.test(aside))
      throw new PhraseError(`"(${aside})" is not understood; leave it out`, [], { isUnknown: true });
    if (aside.match(/\d\d:\d\d/g)?.some((time) => !rest.includes(time))) throw refuse();
    return readPhrase(rest, context);
  }
  const { rest: words, zone = context.zone } = splitZone(rest);
  const reading = readPhrase(aside, { ...context, zone });
  const expected = reading.kind === 'series' ? seriesText(reading) : undefined;
  // Words may end with the zone of their start: `from 2026-11-30 08:00 UTC`.
  if (expected !== undefined && expected === rest) return readPhrase(aside, context);
  if (words !== aside && expected !== words) throw refuse();
  return reading;
}

/** A context whose zone may not be known. */
type OpenContext = Omit<PhraseContext, 'zone'> & { readonly zone: string | undefined };

/**
 * Parses a time or a schedule.
 *
 * @param context.zone without one, only a phrase that names its zone or needs none is read
 * @throws PhraseError if the text is unknown, has passed, is ambiguous, or needs a zone
 */
export function readPhrase(text: string, context: OpenContext): Reading {
  const phrase = text.trim().replace(/\s+/g, ' ');
  if (phrase.endsWith(')')) {
    const at = phrase.lastIndexOf('(');
    if (at > 0) return readWithAside(phrase.slice(0, at).trimEnd(), phrase.slice(at + 1, -1), context);
  }
  const { rest, zone = context.zone } = splitZone(phrase);
  const suffix = rest === phrase ? '' : ` ${zone}`;
  if (rest.endsWith(')') && rest !== phrase) return readPhrase(rest, { ...context, zone });
  if (RULES.test(phrase)) {
    if (zone === undefined) throw needsZone(text);
    return rulesOf(rest === phrase ? text : rest, zone);
  }
  if (phrase === '') throw new PhraseError('a time is missing; write one such as "tomorrow 9am"');
  if (phrase.length > LONGEST_PHRASE) throw new PhraseError(`a time must be at most ${LONGEST_PHRASE} characters`);
  const [hidden] = INVISIBLE.exec(phrase) ?? [];
  if (hidden !== undefined) {
    const code = hidden.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    throw new PhraseError(`a time must not have invisible characters (it has U+${code}); type it again`);
  }
  if (zone === undefined) return readWithoutZone(rest, { ...context, zone: 'UTC' });
  const words = rest.replace(/^once, (?:at )?/, '');
  return readWithShortZone(words, { ...context, zone }) ?? readIn(words, { ...context, zone }, suffix);
}
