/** Measures how long the engine takes for the next occurrence of random rules, ten years after their start. */
import { compileRule } from '../../../src/chronos/alarm/schedule.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { pick, randomOf } from '../cron-oracle/generator.ts';
import { drawRule, readingText } from './generator.ts';

const YEAR_MS = 365.25 * 86_400_000;
const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe'];

/**
 * The first and the following call of `next` are measured, after zones and code are warm. Rules that never fire are
 * refused when they are set, so they are omitted. COUNT and UNTIL would end most rules before ten years.
 */
export function measure(seed: number, rules: number): { count: number; p50: number; p99: number; slowest: number } {
  const times: number[] = [];
  let count = 0;
  for (const isWarm of [false, true]) {
    const random = randomOf(seed);
    for (let drawn = 0; drawn < rules; drawn++) {
      const start = Math.floor((Date.UTC(2010, 0, 1) + random() * 10 * YEAR_MS) / 1_000) * 1_000;
      const rule = drawRule(random, start).text.replace(/;(COUNT|UNTIL)=[^;]*/, '');
      const timezone = pick(random, ZONES);
      const found = timesOf(`DTSTART:${readingText(start)}\nRRULE:${rule}`, timezone, start + 10 * YEAR_MS);
      if (!isWarm || found.length === 0) continue;
      times.push(...found);
      count++;
    }
  }
  times.sort((one, other) => one - other);
  const at = (share: number) => times[Math.floor(times.length * share)]!;
  return { count, p50: at(0.5), p99: at(0.99), slowest: times.at(-1)! };
}

/** Microseconds of two calls; none for a rule that is refused. */
function timesOf(text: string, timezone: string, after: number): number[] {
  // A different anchor makes the compiled rule a new one, with nothing cached.
  const schedule = compileRule(text, timezone, performance.now());
  const times: number[] = [];
  let at: number | undefined = after;
  for (let call = 0; call < 2; call++) {
    const began = performance.now();
    at = schedule.next(at);
    times.push((performance.now() - began) * 1_000);
    if (at === undefined) return [];
  }
  try {
    void schedule.shortestIntervalMs;
  } catch (error) {
    if (error instanceof ReveilleError) return [];
    throw error;
  }
  return times;
}
