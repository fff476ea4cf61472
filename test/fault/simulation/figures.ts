/** The summed figures of many worlds. */
import type { Outcome } from './simulate.ts';

export type Figures = {
  seeds: number;
  simulatedMs: number;
  events: number;
  alarms: number;
  deliveries: number;
  turns: number;
  duplicates: number;
  /** Seeds with a broken promise. */
  broken: number;
  violations: number;
  faults: Map<string, number>;
  rareEvents: Map<string, number>;
};

export function noFigures(): Figures {
  return {
    seeds: 0,
    simulatedMs: 0,
    events: 0,
    alarms: 0,
    deliveries: 0,
    turns: 0,
    duplicates: 0,
    broken: 0,
    violations: 0,
    faults: new Map(),
    rareEvents: new Map(),
  };
}

const SUMS = ['simulatedMs', 'events', 'alarms', 'deliveries', 'turns', 'duplicates'] as const;

export function add(figures: Figures, outcome: Outcome): void {
  figures.seeds++;
  for (const name of SUMS) figures[name] += outcome[name];
  figures.violations += outcome.violations.length;
  if (outcome.violations.length > 0) figures.broken++;
  for (const [name, counts] of Object.entries({ faults: outcome.faults, rareEvents: outcome.rareEvents })) {
    const sums = figures[name as 'faults' | 'rareEvents'];
    for (const [what, count] of Object.entries(counts)) sums.set(what, (sums.get(what) ?? 0) + count);
  }
}

const HOUR_MS = 3_600_000;

const whole = (value: number) => Math.round(value).toLocaleString('en-US');

function linesOf(what: string, counts: ReadonlyMap<string, number>): [string, string][] {
  return [...counts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, count]) => [`${what}: ${name}`, whole(count)]);
}

/** The figures as aligned lines; with their real duration, the pace as well. */
export function summarize(figures: Figures, elapsedMs?: number): string {
  const pace = (figures.seeds * HOUR_MS) / Math.max(elapsedMs ?? 0, 1);
  const lines: [string, string][] = [
    ['seeds', whole(figures.seeds)],
    ['simulated hours', whole(figures.simulatedMs / HOUR_MS)],
    ['events', whole(figures.events)],
    ['alarms', whole(figures.alarms)],
    ['deliveries begun', whole(figures.deliveries)],
    ['turns', whole(figures.turns)],
    ['repeated wakes, deduped', whole(figures.duplicates)],
    ...linesOf('seen', figures.rareEvents),
    ...linesOf('fault', figures.faults),
    ...(elapsedMs === undefined ? [] : [['seeds per hour', whole(pace)] satisfies [string, string]]),
    ['seeds with violations', whole(figures.broken)],
    ['violations', whole(figures.violations)],
  ];
  const left = Math.max(...lines.map(([name]) => name.length));
  const right = Math.max(...lines.map(([, value]) => value.length));
  return lines.map(([name, value]) => `${name.padEnd(left)}  ${value.padStart(right)}`).join('\n');
}
