/** The figures of all campaigns as a table, and the findings in sentences. */
import { type CampaignOutcome, type CampaignReport, latenessOf, wasJudged } from './report.ts';
import { USUAL_STORES } from './stores.ts';

type Column = { head: string; left?: boolean; of: (report: CampaignReport) => string };

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

const COLUMNS: readonly Column[] = [
  { head: 'strikes', of: ({ strikes }) => String(strikes.length) },
  { head: 'alarms', of: ({ alarms }) => String(alarms) },
  { head: 'deliveries', of: ({ deliveries }) => String(deliveries) },
  { head: 'duplicates', of: ({ duplicates }) => String(duplicates) },
  { head: 'lost', of: ({ lost }) => String(lost) },
  { head: 'early', of: ({ early }) => String(early) },
  { head: 'unfenced writes', of: ({ unfencedWrites }) => String(unfencedWrites) },
  { head: 'recovery', of: ({ recoveryMs }) => seconds(recoveryMs) },
  { head: 'all delivered', of: ({ settledMs, waiting }) => (waiting > 0 ? `${waiting} wait` : seconds(settledMs)) },
  { head: 'p99 late', of: ({ lateness }) => `${Math.round(lateness.p99)} ms` },
];

/** A line per campaign, with aligned figures. */
export function table(outcomes: readonly CampaignOutcome[]): string {
  const rows = outcomes.map((outcome) => [
    outcome.title,
    outcome.store,
    ...(wasJudged(outcome) ? COLUMNS.map(({ of }) => of(outcome)) : []),
  ]);
  const head = ['fault', 'store', ...COLUMNS.map((column) => column.head)];
  const widths = head.map((title, index) =>
    Math.max(...[head, ...rows].map((row) => row[index]?.length ?? 0), title.length),
  );
  const line = (row: readonly string[]) =>
    row.map((cell, index) => (index < 2 ? cell.padEnd(widths[index]!) : cell.padStart(widths[index]!))).join('  ');
  return [
    line(head),
    ...rows.map((row, index) => {
      const outcome = outcomes[index]!;
      if ('skipped' in outcome) return `${line(row)}  skipped: ${outcome.skipped}`;
      if ('broke' in outcome) return `${line(row)}  failed`;
      return line(row);
    }),
  ].join('\n');
}

/** How long no create and no fire succeeded around the strikes, for databases with more than one server. */
export function standstills(outcomes: readonly CampaignOutcome[]): string[] {
  return outcomes.filter(wasJudged).flatMap(({ title, store, strikes }) => {
    if (USUAL_STORES.includes(store)) return [];
    const kinds = [['all', strikes] as const, ...Map.groupBy(strikes, ({ what }) => what)];
    return kinds.map(([what, those]) => {
      const of = (kind: 'creates' | 'fires') => latenessOf(those.map(({ standstill }) => standstill[kind]));
      const [creates, fires] = [of('creates'), of('fires')];
      return `${title}, ${what} (${those.length}): creates resume after p50 ${seconds(creates.p50)}, p99 ${seconds(creates.p99)}; fires after p50 ${seconds(fires.p50)}, p99 ${seconds(fires.p99)}`;
    });
  });
}

/** Violations and failures: the sentences, with the seed and the folder of the logs. */
export function complaints(outcomes: readonly CampaignOutcome[]): string[] {
  return outcomes.flatMap((outcome) => {
    if ('skipped' in outcome) return [];
    const found = wasJudged(outcome) ? outcome.violations : [`the campaign failed: ${outcome.broke}`];
    if (found.length === 0) return [];
    const where = `seed ${outcome.seed}${outcome.folder === undefined ? '' : `, logs in ${outcome.folder}`}`;
    return [`${outcome.title} on ${outcome.store} (${where}):`, ...found.map((sentence) => `  ${sentence}`)];
  });
}

/** One campaign in one progress line. */
export function headline(outcome: CampaignOutcome): string {
  const name = `${outcome.title}, ${outcome.store}`;
  if ('skipped' in outcome) return `${name}: skipped: ${outcome.skipped}`;
  if ('broke' in outcome) return `${name}: failed: ${outcome.broke.split('\n')[0]}`;
  const figures = COLUMNS.map(({ head, of }) => `${of(outcome)} ${head}`).join(' · ');
  return `${name}: ${figures} · ${outcome.violations.length} violations (${Math.round(outcome.seconds)} s)`;
}
