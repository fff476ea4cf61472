/** The wall clock of a zone that a calendar file describes (VTIMEZONE of RFC 5545, section 3.6.5). */
import type { Span, Zone } from '../../kit/clock/zone.ts';
import type { Observance } from '../../kit/recurrence/calendar-file.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { recurrenceSchedule } from './rrule.ts';

/** Changes of a zone until here are known; later instants have the last offset. */
const KNOWN_UNTIL = Date.UTC(2100, 0, 1);
const MOST_CHANGES = 10_000;
const LAST = 8.64e15;

const zones = new WeakMap<readonly Observance[], Zone>();

/** @throws ReveilleError `invalid_request` for a clock that changes too often */
export function zoneOfObservances(observances: readonly Observance[]): Zone {
  const known = zones.get(observances);
  if (known) return known;
  const changes: { at: number; fromMs: number; toMs: number }[] = [];
  for (const { fromMs, toMs, rules, start, added, excluded } of observances) {
    // The readings of an observance have the offset before it. UNTIL may be an instant.
    const floating = rules.map((rule) => ({
      ...rule,
      until: rule.until && {
        ...rule.until,
        zone: undefined,
        reading: rule.until.reading + (rule.until.zone ? fromMs : 0),
      },
    }));
    const begin = { ...start, zone: undefined };
    const { next } = recurrenceSchedule(
      { rules: floating, start: begin, added: [begin, ...added.map((one) => ({ ...one, zone: undefined }))], excluded },
      'UTC',
      { text: 'VTIMEZONE', anchorMs: begin.reading },
    );
    for (let at = next(begin.reading - 1); at !== undefined && at < KNOWN_UNTIL; at = next(at))
      if (changes.push({ at: at - fromMs, fromMs, toMs }) > MOST_CHANGES)
        throw new ReveilleError('invalid_request', `its VTIMEZONE has more than ${MOST_CHANGES} changes`);
  }
  changes.sort((one, other) => one.at - other.at);
  const spans: Span[] = changes.map(({ at, toMs }, index) => ({
    ...{ start: at, end: changes[index + 1]?.at ?? LAST, offset: toMs },
  }));
  spans.unshift({ start: -LAST, end: changes[0]!.at, offset: changes[0]!.fromMs });
  const zone: Zone = {
    spanAt(instant) {
      let [low, high] = [0, spans.length - 1];
      while (low < high) {
        const middle = (low + high + 1) >>> 1;
        if (spans[middle]!.start <= instant) low = middle;
        else high = middle - 1;
      }
      return spans[low]!;
    },
  };
  zones.set(observances, zone);
  return zone;
}
