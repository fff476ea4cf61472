/** Compares the product's schedule engine with the oracle, question by question. */
import type { Schedule } from '../../../src/chronos/alarm/occurrence.ts';
import { compileSchedule } from '../../../src/chronos/alarm/schedule.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { drawExpression, drawGap, drawInstant, drawPlaces, drawZones, type Random, randomOf } from './generator.ts';
import { oracleOf } from './oracle.ts';
import { type WallDays, wallDaysOf } from './wall-days.ts';

/** Number of consecutive occurrences that are compared. */
const STEPS = 3;

/** One question: the next occurrences after an instant, and the latest up to another one. */
export type Case = { expression: string; timezone: string; after: number; until: number };

/** A case that the product and the oracle answer differently. */
export type Mismatch = Case & { question: string; expected: string; actual: string };

/** The counts of a run. */
export type Tally = {
  cases: number;
  zones: number;
  comparisons: number;
  occurrences: number;
  impossible: number;
  /** Cases whose next occurrence is more than a year away. */
  sparse: number;
};

function show(instant: number | undefined): string {
  return instant === undefined ? 'none' : new Date(instant).toISOString();
}

/** Compares one case, adding to the tally; `undefined` when all answers agree. */
export function compare(
  { expression, timezone, after, until }: Case,
  wall: WallDays,
  tally: Tally,
): Mismatch | undefined {
  const differs = (question: string, expected: string, actual: string): Mismatch | undefined => {
    tally.comparisons++;
    return expected === actual ? undefined : { expression, timezone, after, until, question, expected, actual };
  };
  const oracle = oracleOf(expression, wall);
  const firstExpected = oracle.next(after);
  let schedule: Schedule;
  try {
    schedule = compileSchedule(expression, timezone, 0);
  } catch (error) {
    if (!(error instanceof ReveilleError)) throw error;
    tally.impossible++;
    return differs('compile', firstExpected === undefined ? error.message : 'a schedule', error.message);
  }
  if (firstExpected !== undefined && firstExpected - after > 366 * 86_400_000) tally.sparse++;

  let from = after;
  for (let step = 0; step < STEPS; step++) {
    const expected = step === 0 ? firstExpected : oracle.next(from);
    const found = differs(`next(${show(from)})`, show(expected), show(schedule.next(from)));
    if (found || expected === undefined) return found;
    tally.occurrences++;
    // Only the first step may be far away: the oracle's cost grows with every day.
    if (expected - from > 7 * 86_400_000) break;
    from = expected;
  }

  const due = oracle.between(after, until);
  const latest = schedule.latest(after, until);
  return differs(
    `latest(${show(after)}, ${show(until)})`,
    due.length === 0 ? 'none' : `${show(due.at(-1))}, ${due.length} in all`,
    latest === undefined ? 'none' : `${show(latest.at)}, ${latest.count} in all`,
  );
}

/** The same mismatch with fewer parts: fields are simplified as long as the answers differ. */
export function shrink(mismatch: Mismatch, wall: WallDays): Mismatch {
  const tally = emptyTally();
  let smallest = mismatch;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of plainer(smallest)) {
      const found = compare(candidate, wall, tally);
      if (!found) continue;
      smallest = found;
      isSmaller = true;
      break;
    }
  }
  return smallest;
}

/** Cases with one part less than the given one. */
function plainer(from: Case): Case[] {
  const fields = from.expression.trim().split(/[ \t]+/);
  const candidates: Case[] = [];
  fields.forEach((field, index) => {
    const entries = field.split(',');
    const lowest = index === 2 || index === 3 ? '1' : '0';
    const shorter =
      entries.length > 1 ? entries.map((_, dropped) => entries.filter((_, kept) => kept !== dropped).join(',')) : [];
    const replacements = [...shorter, ...(field === '*' ? [] : ['*']), ...(field.length > 1 ? [lowest] : [])];
    for (const replacement of replacements) {
      candidates.push({ ...from, expression: fields.with(index, replacement).join(' ') });
    }
  });
  const onMinute = Math.floor(from.after / 60_000) * 60_000;
  if (onMinute !== from.after) candidates.push({ ...from, after: onMinute });
  return candidates;
}

export function emptyTally(): Tally {
  return { cases: 0, zones: 0, comparisons: 0, occurrences: 0, impossible: 0, sparse: 0 };
}

/** Draws the cases of a run, zone by zone, so that the readings of a zone are built once. */
function* drawCases(random: Random, cases: number): Generator<{ wall: WallDays; one: Case }> {
  const zones = drawZones(random, cases < 20_000 ? 30 : 120);
  for (const [index, timezone] of zones.entries()) {
    const share = Math.floor((cases * (index + 1)) / zones.length) - Math.floor((cases * index) / zones.length);
    const wall = wallDaysOf(timezone);
    const places = drawPlaces(random, timezone, Math.max(4, Math.floor(share / 40)));
    for (let drawn = 0; drawn < share; drawn++) {
      const after = drawInstant(random, places[drawn % places.length]!);
      yield { wall, one: { expression: drawExpression(random), timezone, after, until: after + drawGap(random) } };
    }
  }
}

/**
 * Compares `cases` random cases.
 *
 * @param report called after every case with the tally so far
 * @returns the tally, and the first mismatch, shrunk
 */
export function run(
  seed: number,
  cases: number,
  report: (tally: Tally) => void = () => {},
): { tally: Tally; mismatch?: Mismatch } {
  const tally = emptyTally();
  const zones = new Set<string>();
  for (const { wall, one } of drawCases(randomOf(seed), cases)) {
    zones.add(one.timezone);
    const mismatch = compare(one, wall, tally);
    tally.cases++;
    tally.zones = zones.size;
    if (mismatch) return { tally, mismatch: shrink(mismatch, wall) };
    report(tally);
  }
  return { tally };
}
