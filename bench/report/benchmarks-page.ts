/** Renders `docs/benchmarks.md`, the page for users: targets, other schedulers, how to repeat the run. Pure. */
import { WORKLOADS } from '../plan.ts';
import type { Report, Results } from '../results.ts';
import { bestPeer, burstRates, type Store, tlsRates, type Verdict, verdictsOf } from '../verdicts.ts';
import { count, ms, times } from './figures.ts';
import { renderMarkdown, type Table } from './table.ts';

const REPEAT = `## Repeat the measurements

In a checkout, after \`npm ci\`:

\`\`\`
npm run bench                                # about 80 minutes; writes this page and bench/results.md
npm run bench -- --quick                     # about 5 minutes; prints, writes nothing
npm run bench -- --only lateness,burst       # some workloads; the results of the others stay
\`\`\``;

/** One line for each day. */
function dates({ measured }: Report): string {
  const days = new Map<string, string[]>();
  for (const name of WORKLOADS) {
    const day = measured[name]?.at.slice(0, 10);
    if (day !== undefined) days.set(day, [...(days.get(day) ?? []), name]);
  }
  const lines = [...days].toSorted(([a], [b]) => b.localeCompare(a));
  return lines.map(([day, names]) => `- ${day}: ${names.join(', ')}`).join('\n');
}

function introduction(report: Report): string {
  const { cpu, cores, memoryGigabytes } = report.machine;
  return `# Benchmarks

Reveille beside other schedulers on one machine: ${cpu}, ${cores} cores, ${memoryGigabytes.toFixed(0)} GB of memory.
Load generator, target and database share the cores. [Results](../bench/results.md) has all tables,
the methods and the settings; [capacity](operate/capacity.md) applies the figures. Compare only
figures of one workload with each other. Measured:

${dates(report)}`;
}

/** A figure in bold misses its limit. */
const figureOf = (verdict: Verdict | undefined) => {
  if (verdict === undefined) return '';
  return verdict.reached ? verdict.measured : `**${verdict.measured}**`;
};

/** A row for each target, with both limits where those of the stores differ. */
function storesTable(verdicts: readonly Verdict[]): Table {
  const targets = Map.groupBy(verdicts, ({ target }) => target);
  return {
    title: 'Alarms',
    headings: ['Alarms', 'limit', 'SQLite', 'PostgreSQL'],
    rows: [...targets].map(([target, ofStores]) => {
      const limits = new Set(ofStores.map(({ limit }) => limit));
      const of = (store: Store) => figureOf(ofStores.find((verdict) => verdict.store === store));
      return [target, [...limits].join(' / '), of('SQLite'), of('PostgreSQL')];
    }),
  };
}

function othersTable(verdicts: readonly Verdict[]): Table {
  return {
    title: 'Others',
    headings: ['Others', 'limit', 'measured'],
    rows: verdicts.map((verdict) => [verdict.target, verdict.limit, figureOf(verdict)]),
  };
}

function targets({ results }: Report): string {
  const verdicts = verdictsOf(results);
  const reached = verdicts.filter((verdict) => verdict.reached).length;
  const tables = [
    storesTable(verdicts.filter(({ store }) => store !== undefined)),
    othersTable(verdicts.filter(({ store }) => store === undefined)),
  ];
  const notes = verdicts.flatMap(({ target, reached: isReached, note }) =>
    isReached || note === undefined ? [] : [`- **${target}:** ${note}.`],
  );
  return [
    '## Targets',
    `${reached} of ${verdicts.length} figures reach their limit; the others are bold.`,
    ...tables.filter(({ rows }) => rows.length > 0).map((table) => renderMarkdown(table).join('\n')),
    ...(notes.length === 0 ? [] : [notes.join('\n')]),
  ].join('\n\n');
}

/** Reveille and each peer in its best setting. */
export function schedulersTable({ lateness = [], burst, queue = [] }: Results): Table {
  const known = [...lateness, ...(burst?.rows ?? []), ...queue].filter(({ system }) => !system.endsWith('-default'));
  const titles = new Map(known.map(({ system, title }) => [system, title]));
  const rates = burst ? burstRates(burst) : [];
  const best = bestPeer(rates);
  const rows = [...titles].map(([system, title]) => {
    const late = (rate: number) => lateness.find((row) => row.system === system && row.rate === rate)?.median;
    const [usual, fast] = [late(1_000), late(3_000)];
    const plain = rates.find((rate) => rate.system === system)?.perSecond;
    const tls = burst && tlsRates(burst).find((rate) => rate.system === system)?.perSecond;
    const kill = queue.find((row) => row.system === system && row.scenario === 'restart');
    return [
      title,
      ...[usual?.p50, usual?.p99, fast?.p99].map((value) => (value === undefined ? '' : ms(value))),
      plain === undefined ? '' : count(plain),
      plain === undefined || !best ? '' : times(plain / best.perSecond),
      tls === undefined ? '' : count(tls),
      kill?.recovery ? ms(kill.recovery.firstFireMs) : '',
      kill?.recovery ? ms(kill.recovery.overdueMs) : '',
    ];
  });
  return {
    title: 'Reveille and other schedulers',
    headings: [
      'System',
      ...['late at 1,000/s: p50', 'p99', 'at 3,000/s: p99'],
      ...['burst, fires/s', 'of best peer', 'burst behind TLS', 'killed store: next fire', 'all due'],
    ],
    rows,
    note: `Lateness at a steady rate and the times after a kill are in milliseconds. ${burst ? `In the burst ${count(burst.count)} alarms are due within ${burst.seconds} s. ` : ''}Each peer has the best settings of its documentation. Only Reveille signs each wake and keeps a ledger.`,
  };
}

/** A column for each number of clients. */
export function createsSummary(rows: NonNullable<Results['creates']>): Table {
  const clients = [...new Set(rows.map((row) => row.clients))].sort((a, b) => a - b);
  const systems = new Map(rows.map(({ system, title }) => [system, title]));
  return {
    title: 'Durable creates',
    headings: [
      'Creates per second, and as a share of bare inserts',
      ...clients.map((each) => `${count(each)} client${each === 1 ? '' : 's'}`),
    ],
    rows: [...systems].map(([system, title]) => [
      title,
      ...clients.map((each) => {
        const row = rows.find((one) => one.system === system && one.clients === each);
        return row ? `${count(row.creates)} (${times(row.ratio)})` : '';
      }),
    ]),
  };
}

function schedulers({ results }: Report): string {
  const tables = [schedulersTable(results), ...(results.creates ? [createsSummary(results.creates)] : [])];
  const shown = tables.filter(({ rows }) => rows.length > 0);
  if (shown.length === 0) return '';
  return ['## Reveille and other schedulers', ...shown.map((table) => renderMarkdown(table).join('\n'))].join('\n\n');
}

export function renderBenchmarks(report: Report): string {
  const parts = [introduction(report), targets(report), schedulers(report), REPEAT];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}
