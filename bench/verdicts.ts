/** What was to be reached, held against what was measured. Pure. */
import { count, megabytes, ms, times } from './report/figures.ts';
import type { Results } from './results.ts';
import type { BurstResult } from './workloads/burst.ts';
import type { ChronometricResult } from './workloads/chronometric.ts';
import type { CreatesRow } from './workloads/creates.ts';

export type Verdict = {
  target: string;
  limit: string;
  measured: string;
  reached: boolean;
  /** By how much, when it was not. */
  missedBy?: string;
  /** What bears on the figure. */
  note?: string;
};

type Bound = {
  target: string;
  limit: number;
  measured: number | null;
  /** Whether `limit` is the largest or the smallest that will do. */
  at: 'most' | 'least';
  write: (value: number) => string;
  note?: string | undefined;
};

const STORES = [
  { system: 'reveille-sqlite', store: 'SQLite' },
  { system: 'reveille-postgres', store: 'PostgreSQL' },
] as const;

export function judge({ target, limit, measured, at, write, note }: Bound): Verdict {
  const reached = measured !== null && (at === 'most' ? measured <= limit : measured >= limit);
  const verdict = {
    target,
    limit: `at ${at} ${write(limit)}`,
    measured: measured === null ? 'never' : write(measured),
    reached,
    ...(note === undefined ? {} : { note }),
  };
  if (reached) return verdict;
  const share = measured === null ? undefined : Math.abs(measured / limit - 1) * 100;
  const direction = at === 'most' ? 'over' : 'short';
  return { ...verdict, missedBy: share === undefined ? 'no figure' : `${share.toFixed(0)} % ${direction}` };
}

const LATENESS_LIMITS = [
  { ...STORES[0], p50: 3, p99: 15 },
  { ...STORES[1], p50: 5, p99: 25 },
];

function latenessBounds(rows: NonNullable<Results['lateness']>): Bound[] {
  return LATENESS_LIMITS.flatMap(({ system, store, p50, p99 }) => {
    const row = rows.find((each) => each.system === system && each.rate === 1000);
    if (!row) return [];
    const bound = (name: 'p50' | 'p99', limit: number): Bound => ({
      target: `Lateness ${name} at 1,000 fires/s, ${store}`,
      limit,
      measured: row.median[name],
      at: 'most',
      write: (value) => `${ms(value)} ms`,
    });
    return [bound('p50', p50), bound('p99', p99)];
  });
}

/** The fastest peer in its best setting. */
export function bestPeer({ rows }: BurstResult): BurstResult['rows'][number] | undefined {
  const peers = rows.filter(({ system }) => !system.startsWith('reveille') && !system.endsWith('-default'));
  return peers.toSorted((a, b) => b.median - a.median)[0];
}

/** A burst cannot go out faster than it falls due, nor faster than the client can POST. */
function ceiling(wanted: number, { raw, count: alarms, seconds }: BurstResult): string | undefined {
  const due = alarms / seconds;
  const least = Math.min(due, raw.median);
  if (wanted <= least) return undefined;
  return `cannot be reached with this burst: it asks for ${count(wanted)}/s, ${count(due)}/s fall due and ${count(raw.median)}/s can be POSTed`;
}

function burstBounds(burst: BurstResult): Bound[] {
  const limits = { 'reveille-sqlite': 1 / 2, 'reveille-postgres': 1 / 3 };
  const best = bestPeer(burst);
  return STORES.flatMap(({ system, store }) => {
    const row = burst.rows.find((each) => each.system === system);
    if (!row) return [];
    const limit = limits[system];
    const toRaw: Bound = {
      target: `Burst, as a share of the raw POST rate, ${store}`,
      limit,
      measured: row.toRaw,
      at: 'least',
      write: times,
      note: ceiling(limit * burst.raw.median, burst),
    };
    if (!best) return [toRaw];
    const toPeer: Bound = {
      target: `Burst, beside the best peer (${best.title}), ${store}`,
      limit: 3,
      measured: row.median / best.median,
      at: 'least',
      write: times,
      note: ceiling(3 * best.median, burst),
    };
    return [toRaw, toPeer];
  });
}

/**
 * A create cannot be answered faster than a request that asks for nothing; and one client who waits for each answer has the request
 * and the insert one after the other.
 */
function unstored(wanted: number, { clients, posts, inserts }: CreatesRow): string | undefined {
  if (wanted > posts)
    return `cannot be reached over HTTP here: it asks for ${count(wanted)}/s, a server that stores nothing answers ${count(posts)}/s`;
  const inTurn = 1 / (1 / posts + 1 / inserts);
  if (clients > 1 || wanted <= inTurn) return undefined;
  return `cannot be reached by one client here: a bare request and then a bare insert are ${count(inTurn)}/s`;
}

function createsBounds(rows: NonNullable<Results['creates']>): Bound[] {
  return STORES.flatMap(({ system, store }) =>
    rows
      .filter((row) => row.system === system)
      .map((row) => ({
        target: `Creates by ${row.clients} client${row.clients === 1 ? '' : 's'}, as a share of bare inserts, ${store}`,
        limit: 0.7,
        measured: row.ratio,
        at: 'least' as const,
        write: times,
        note: unstored(0.7 * row.inserts, row),
      })),
  );
}

function growthBounds(rows: NonNullable<Results['growth']>): Bound[] {
  return STORES.flatMap(({ system, store }) => {
    const own = rows.filter((row) => row.system === system).toSorted((a, b) => a.pending - b.pending);
    const [small, large] = [own[0], own.at(-1)];
    if (!small || !large || small === large) return [];
    const [before, after] = [small.median.p99, large.median.p99];
    return [
      {
        target: `Lateness p99 with ${count(large.pending)} pending beside ${count(small.pending)}, ${store}`,
        limit: 1.5,
        measured: before === null || after === null ? null : after / before,
        at: 'most' as const,
        write: times,
      },
    ];
  });
}

function footprintBounds({ idle }: NonNullable<Results['footprint']>): Bound[] {
  return idle.map(({ title, residentMegabytes }) => ({
    target: `Resident memory, idle, ${title.replace('Reveille, ', '')}`,
    limit: 90,
    measured: residentMegabytes,
    at: 'most' as const,
    write: megabytes,
  }));
}

const MANY_MEMORIES = 100_000;

/** A person does not choose what kind of query it is, so the slowest kind counts. */
function memoryBounds(rows: NonNullable<Results['memory']>): Bound[] {
  const many = rows.filter(({ memories }) => memories === MANY_MEMORIES).toSorted((a, b) => b.p99 - a.p99);
  const [slowest] = many;
  if (!slowest) return [];
  return [
    {
      target: `Recall p99 among ${count(MANY_MEMORIES)} memories, the slowest kind of query (${slowest.query})`,
      limit: 20,
      measured: slowest.p99,
      at: 'most',
      write: (value) => `${ms(value)} ms`,
    },
  ];
}

function receiptsBounds(rows: NonNullable<Results['receipts']>): Bound[] {
  return rows
    .filter(({ way }) => way === 'verify')
    .map(({ median }) => ({
      target: 'Envelopes of receipts checked per second, on one core',
      limit: 5000,
      measured: median,
      at: 'least',
      write: count,
    }));
}

function chronometricBounds({ starts, calls }: ChronometricResult): Bound[] {
  const bound = (target: string, limit: number, measured: number, write: (value: number) => string): Bound => ({
    ...{ target, limit, measured, write },
    at: 'most',
  });
  const milliseconds = (value: number) => `${ms(value)} ms`;
  const [start] = starts.filter(({ way }) => way === 'reveille');
  const [slowest] = calls.filter(({ way }) => way === 'reveille').toSorted((a, b) => b.p99 - a.p99);
  return [
    ...(start ? [bound('Chronometric, cold start to the first answer', 300, start.answer, milliseconds)] : []),
    ...(slowest
      ? [bound(`Chronometric, p99 of the slowest tool (${slowest.tool})`, 5, slowest.p99, milliseconds)]
      : []),
  ];
}

/** Every target that the results have something to say about. */
export function verdictsOf(results: Results): Verdict[] {
  const { lateness, burst, creates, growth, footprint, memory, receipts, chronometric } = results;
  const bounds = [
    ...(lateness ? latenessBounds(lateness) : []),
    ...(burst ? burstBounds(burst) : []),
    ...(creates ? createsBounds(creates) : []),
    ...(growth ? growthBounds(growth) : []),
    ...(footprint ? footprintBounds(footprint) : []),
    ...(memory ? memoryBounds(memory) : []),
    ...(receipts ? receiptsBounds(receipts) : []),
    ...(chronometric ? chronometricBounds(chronometric) : []),
  ];
  return bounds.map(judge);
}
