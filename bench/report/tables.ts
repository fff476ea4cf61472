/** The results as tables. Pure. */
import type { OwnWork } from '../measure.ts';
import type { Results } from '../results.ts';
import { type Lateness, median } from '../statistics.ts';
import { bestPeer, burstRates, type Verdict } from '../verdicts.ts';
import type { BootRow } from '../workloads/boot.ts';
import type { BurstResult, Target } from '../workloads/burst.ts';
import type { ChronometricResult } from '../workloads/chronometric.ts';
import type { ConditionsResult } from '../workloads/conditions.ts';
import type { ConsolesResult } from '../workloads/consoles.ts';
import type { CreatesRow } from '../workloads/creates.ts';
import type { LastingResult } from '../workloads/endurance.ts';
import type { Footprint } from '../workloads/footprint.ts';
import type { GrowthRow } from '../workloads/growth.ts';
import type { LatenessRow } from '../workloads/lateness.ts';
import type { MemoryRow } from '../workloads/memory.ts';
import type { ProxyResult } from '../workloads/proxy.ts';
import { type QueueRow, SCENARIOS, type Scenario } from '../workloads/queue.ts';
import type { ReceiptsRow } from '../workloads/receipts.ts';
import type { ReplicasRow } from '../workloads/replicas.ts';
import type { ToolsRow } from '../workloads/tools.ts';
import { count, megabytes, micros, moreMicros, ms, times } from './figures.ts';
import type { Table } from './table.ts';

const unique = <T>(items: readonly T[]) => [...new Set(items)];

/** Faults are named only where there are any. */
function faultsOf(rows: readonly { title: string; rate: number; median: Lateness }[]): string | undefined {
  const faults = rows.flatMap(({ title, rate, median }) => {
    const parts = (['missing', 'repeated', 'early'] as const)
      .filter((fault) => median[fault] > 0)
      .map((fault) => `${count(median[fault])} ${fault}`);
    return parts.length === 0 ? [] : [`${title} at ${count(rate)}/s: ${parts.join(', ')} of ${count(median.expected)}`];
  });
  return faults.length === 0 ? undefined : `${faults.join('; ')}.`;
}

export function latenessTable(rows: readonly LatenessRow[]): Table {
  const rates = unique(rows.map(({ rate }) => rate)).sort((a, b) => a - b);
  const cells = (system: string) =>
    rates.flatMap((rate) => {
      const row = rows.find((each) => each.system === system && each.rate === rate);
      return row ? [ms(row.median.p50), ms(row.median.p99), ms(row.median.max)] : ['', '', ''];
    });
  const systems = unique(rows.map(({ system }) => system));
  const note = faultsOf(rows);
  return {
    title: 'Lateness at a steady rate, milliseconds',
    headings: ['System', ...rates.flatMap((rate) => ['p50', 'p99', 'max'].map((name) => `${count(rate)}/s ${name}`))],
    rows: systems.map((system) => [rows.find((row) => row.system === system)!.title, ...cells(system)]),
    ...(note === undefined ? {} : { note }),
  };
}

const OWN_WORK = ['CPU µs/fire', 'KiB/fire', 'peak'];
const ownWorkCells = ({ processorMicroseconds, writtenBytes, peakMegabytes }: OwnWork) => [
  count(processorMicroseconds),
  (writtenBytes / 1024).toFixed(1),
  megabytes(peakMegabytes),
];

export function burstTable(burst: BurstResult): Table {
  const { count: alarms, seconds, raw, rows } = burst;
  const best = bestPeer(burstRates(burst));
  const toBest = (median: number) => (best && best.perSecond > 0 ? times(median / best.perSecond) : '');
  const measured = rows.map(({ title, median, toRaw, own, rounds }) => {
    const missing = rounds.reduce((sum, round) => sum + round.missing, 0);
    const work = own === null ? ['', '', ''] : ownWorkCells(own);
    return [title, count(median), times(toRaw), toBest(median), ...work, missing === 0 ? '' : count(missing)];
  });
  return {
    title: `A burst: ${count(alarms)} due within ${seconds} s`,
    headings: ['System', 'fires/s', 'of raw', 'of best peer', ...OWN_WORK, 'not delivered'],
    rows: [
      ['no scheduler, the raw POST rate', count(raw.median), times(1), toBest(raw.median), '', '', '', ''],
      ...measured,
    ],
    note: `No more than ${count(alarms / seconds)} fall due per second, so no system can be faster. CPU time, bytes and memory are those of the scheduler's process, without the database server.`,
  };
}

const TARGETS: Record<Target, string> = {
  plain: 'that answers at once',
  tls: 'behind TLS',
  slow: 'that takes 10 ms to answer',
};

/** The same burst to the other targets. */
export function burstTargetTables({ count: alarms, seconds, targets }: BurstResult): Table[] {
  return targets.map(({ target, rows }) => ({
    title: `A burst at a target ${TARGETS[target]}: ${count(alarms)} due within ${seconds} s`,
    headings: ['System', 'fires/s', ...OWN_WORK, 'not delivered'],
    rows: rows.map(({ title, drain: { perSecond, own, missing } }) => [
      title,
      count(perSecond),
      ...(own === undefined ? ['', '', ''] : ownWorkCells(own)),
      missing === 0 ? '' : count(missing),
    ]),
    note: 'One round.',
  }));
}

/** The work of the database server per fire; `undefined` if no round is complete. */
export function databaseWorkTable({ rows }: BurstResult): Table | undefined {
  const middle = (values: readonly (number | null)[]) => median(values.filter((value) => value !== null));
  const shown = (value: number | null, digits = 0) => (value === null ? '' : value.toFixed(digits));
  const measured = rows.flatMap(({ title, rounds }) => {
    const works = rounds.flatMap(({ database }) => database ?? []);
    if (works.length === 0) return [];
    const hot = middle(works.map(({ hotShare }) => hotShare));
    return [
      [
        title,
        shown(middle(works.map(({ serverMicroseconds }) => serverMicroseconds))),
        shown(middle(works.map(({ walBytes }) => walBytes))),
        shown(middle(works.map(({ walImages }) => walImages)), 2),
        shown(middle(works.map(({ walRecords }) => walRecords)), 1),
        hot === null ? 'no updates' : `${Math.round(hot * 100)} %`,
      ],
    ];
  });
  if (measured.length === 0) return undefined;
  return {
    title: 'The same burst: work of the PostgreSQL server per fire',
    headings: ['System', 'CPU µs', 'log bytes', 'page images', 'log records', 'heap-only updates'],
    rows: measured,
    note: 'After a checkpoint the first change to a page logs an image of it. The bytes include these images.',
  };
}

export function createsTable(rows: readonly CreatesRow[]): Table {
  return {
    title: 'Durable creates over HTTP',
    headings: ['System', 'clients', 'creates/s', 'bare inserts/s', 'ratio', 'bare HTTP/s'],
    rows: rows.map(({ title, clients, creates, inserts, ratio, posts }) => [
      title,
      count(clients),
      count(creates),
      count(inserts),
      times(ratio),
      count(posts),
    ]),
    note: 'Bare HTTP: the same requests to a server that reads them, answers and stores nothing. It is the upper limit of creates.',
  };
}

export function growthTable(rows: readonly GrowthRow[]): Table {
  const note = faultsOf(rows);
  return {
    title: `Growth: ${rows[0]?.rate ?? 0} fires/s while others wait, milliseconds`,
    headings: ['System', 'pending', 'lateness p50', 'p99', 'claim p50', 'p99', 'resident', 'store MB'],
    rows: rows.map(({ title, pending, median, claim, residentMegabytes, storeBytes }) => [
      title,
      count(pending),
      ms(median.p50),
      ms(median.p99),
      claim.p50.toFixed(2),
      claim.p99.toFixed(2),
      megabytes(residentMegabytes),
      count(storeBytes / 1e6),
    ]),
    ...(note === undefined ? {} : { note }),
  };
}

export function replicasTable(rows: readonly ReplicasRow[]): Table {
  const one = rows.find(({ replicas }) => replicas === 1)?.median;
  return {
    title: 'Replicas on one PostgreSQL: the same burst',
    headings: ['chronosd processes', 'fires/s', 'of one'],
    rows: rows.map(({ replicas, median }) => [String(replicas), count(median), one ? times(median / one) : '']),
  };
}

const SCENARIO_TITLES: Record<Scenario, string> = {
  steady: 'A queue at a steady rate',
  held: 'The same during an open transaction that delays vacuum',
  restart: 'The same with a killed store that restarts after a second',
};

const afterRestart = ({ firstFireMs, overdueMs, caughtUpMs, processEnded }: NonNullable<QueueRow['recovery']>) => [
  firstFireMs === null ? 'never' : count(firstFireMs),
  overdueMs === null ? 'never' : count(overdueMs),
  count(caughtUpMs),
  processEnded ? 'ended, started again' : 'stayed',
];

/** A table for each scenario of the queue workload. */
export function queueTables(rows: readonly QueueRow[]): Table[] {
  return SCENARIOS.flatMap((scenario): Table[] => {
    const own = rows.filter((row) => row.scenario === scenario);
    if (own.length === 0) return [];
    const more =
      scenario === 'restart'
        ? ['next fire ms', 'all due ms', 'caught up ms', 'its process']
        : ['dead rows', 'tables and indexes MB'];
    const note =
      scenario === 'restart'
        ? 'Next fire: time from the first accepted connection of the store, with SQLite from the start of the next process. All due: time from then until every job that was due has fired, interrupted ones included. Caught up: time from the last due time to the last arrival. The test waits 45 s after the window for missing jobs.'
        : undefined;
    return [
      {
        title: `${SCENARIO_TITLES[scenario]}, ${count(own[0]!.rate)}/s`,
        headings: ['System', 'p50', 'p99', 'max', 'missing', 'repeated', ...more],
        rows: own.map(({ title, lateness, deadRows, bytes, recovery }) => [
          title,
          ...[lateness.p50, lateness.p99, lateness.max].map(ms),
          count(lateness.missing),
          count(lateness.repeated),
          ...(recovery
            ? afterRestart(recovery)
            : [deadRows === undefined ? '' : count(deadRows), bytes === undefined ? '' : (bytes / 1e6).toFixed(1)]),
        ]),
        ...(note === undefined ? {} : { note }),
      },
    ];
  });
}

/** Lasting load, a row for each window. */
export function lastingTable({ rate, windowSeconds, windows }: LastingResult, isForgotten: boolean): Table {
  const length = windowSeconds < 120 ? `${windowSeconds} s` : `${Math.round(windowSeconds / 60)} min`;
  return {
    title: `Lasting load on SQLite: ${count(rate)} creates and ${count(rate)} fires per second, ${isForgotten ? `all deleted after ${length}` : 'all kept'}`,
    headings: [`Window of ${length}`, 'fires', 'p50', 'p99', 'max', 'missing', 'resident', 'file MB'],
    rows: windows.map(({ lateness, residentMegabytes, fileBytes }, index) => [
      String(index + 1),
      count(lateness.expected),
      ...[lateness.p50, lateness.p99, lateness.max].map(ms),
      count(lateness.missing),
      megabytes(residentMegabytes),
      count(fileBytes / 1e6),
    ]),
  };
}

export function idleTable({ idle }: Footprint): Table {
  return {
    title: 'Resident memory of an idle chronosd',
    headings: ['System', 'resident'],
    rows: idle.map(({ title, residentMegabytes }) => [title, megabytes(residentMegabytes)]),
  };
}

export function startsTable({ starts }: Footprint): Table {
  return {
    title: 'Cold start',
    headings: ['Command', 'until', 'milliseconds'],
    rows: starts.map(({ command, until, milliseconds }) => [command, until, count(milliseconds)]),
  };
}

export function toolsTable(rows: readonly ToolsRow[]): Table {
  const calls = unique(rows.map(({ callTitle }) => callTitle));
  const cells = (title: string) =>
    calls.flatMap((call) => {
      const row = rows.find((each) => each.title === title && each.callTitle === call);
      if (!row) return ['', '', '', ''];
      const added = row.way === 'sdk' ? ['', ''] : [moreMicros(row.added.p50), moreMicros(row.added.p99)];
      return [micros(row.median.p50), added[0]!, micros(row.median.p99), added[1]!];
    });
  return {
    title: 'One tool call over stdio, microseconds',
    headings: ['Through', ...calls.flatMap((call) => [`${call} p50`, 'added', `${call} p99`, 'added'])],
    rows: unique(rows.map(({ title }) => title)).map((title) => [title, ...cells(title)]),
    note: 'Added: the difference to the first row in the same round. The difference of the second row is noise.',
  };
}

export function bootTable(rows: readonly BootRow[]): Table {
  const counts = unique(rows.map(({ servers }) => servers));
  const cell = (title: string, servers: number) => {
    const row = rows.find((each) => each.title === title && each.servers === servers);
    return row ? count(row.milliseconds) : '';
  };
  return {
    title: 'Start of an agent until its tools are ready, milliseconds',
    headings: ['Way', ...counts.map((servers) => `${count(servers)} server${servers === 1 ? '' : 's'}`)],
    rows: unique(rows.map(({ title }) => title)).map((title) => [
      title,
      ...counts.map((servers) => cell(title, servers)),
    ]),
  };
}

export function memoryTable(rows: readonly MemoryRow[]): Table {
  const counts = unique(rows.map(({ memories }) => memories));
  const cells = (query: string) =>
    counts.flatMap((memories) => {
      const row = rows.find((each) => each.query === query && each.memories === memories);
      return row ? [row.p50, row.p99, row.max].map((value) => value.toFixed(2)) : ['', '', ''];
    });
  return {
    title: 'Memory search by text, milliseconds',
    headings: [
      'Query',
      ...counts.flatMap((memories) => ['p50', 'p99', 'max'].map((name) => `${count(memories)} ${name}`)),
    ],
    rows: unique(rows.map(({ query }) => query)).map((query) => [query, ...cells(query)]),
  };
}

export function receiptsTable(rows: readonly ReceiptsRow[]): Table {
  return {
    title: 'Receipts: envelopes per second, on one core',
    headings: ['What', 'envelopes/s', 'of bare'],
    rows: rows.map(({ title, median, ofBare }) => [title, count(median), times(ofBare)]),
    note: `An envelope has ${count(rows[0]?.bytes ?? 0)} bytes on average. Bare: the signature alone, over the same bytes.`,
  };
}

export function proxyTables({ ways, wakes }: ProxyResult): Table[] {
  return [
    {
      title: "The router's public listener compared with a bare reverse proxy",
      headings: ['Way', 'p50', 'p99', 'added p50', 'added p99', 'requests/s', 'CPU µs/request'],
      rows: ways.map(({ title, p50, p99, addedP50, addedP99, perSecond, processorMicros }) => [
        ...[
          title,
          p50.toFixed(2),
          p99.toFixed(2),
          addedP50.toFixed(2),
          addedP99.toFixed(2),
          count(perSecond),
          processorMicros === null ? '' : count(processorMicros),
        ],
      ]),
      note: 'Milliseconds, one request at a time; requests per second, and processor time of the proxy per request, with 32 in parallel.',
    },
    {
      title: 'Start of a machine by the first request, milliseconds',
      headings: ['What', 'median'],
      rows: wakes.map(({ title, milliseconds }) => [title, ms(milliseconds)]),
    },
  ];
}

export function eventsTable(events: NonNullable<ConsolesResult['events']>): Table {
  return {
    title: 'Events at their readers, milliseconds after the end of the attempt',
    headings: ['Store', 'fires/s', 'streams', 'p50', 'p99', 'most', 'missing'],
    rows: events.map(({ store, perSecond, streams, p50, p99, most, missing }) => [
      ...[store, count(perSecond), count(streams), ms(p50), ms(p99), ms(most), count(missing)],
    ]),
    note: 'Each stream belongs to another user. Reader and chronosd share the computer.',
  };
}

export function consolesTable({ rows }: ConsolesResult): Table {
  return {
    title: 'Open consoles, Reveille on SQLite',
    headings: ['Consoles', 'fires/s', 'of none open', 'CPU µs/fire', 'of a core', 'pages read'],
    rows: rows.map(({ consoles, perSecond, ofNone, processorMicros, ofCore, looks }) => [
      ...[count(consoles), count(perSecond), times(ofNone)],
      ...[
        processorMicros === null ? '' : count(processorMicros),
        ofCore === null ? '' : ofCore.toFixed(3),
        count(looks),
      ],
    ]),
    note: 'Each console belongs to another user whose alarms fire in the burst. Processor time is that of chronosd. Of a core: the additional share compared with no open console.',
  };
}

export function conditionsTables({ events, checks }: ConditionsResult): Table[] {
  const cost = (value: number | null) => (value === null ? '' : value.toFixed(2));
  return [
    {
      title: 'Signed webhooks to their wakes, milliseconds from the start of the request',
      headings: ['Store', 'alarms', 'wakes', 'events', 'events/s', 'p50', 'p99', 'most', 'refused', 'lost', 'repeated'],
      rows: events.map(
        ({ store, alarms, collected, wakes, events: sent, perSecond, p50, p99, most, refused, lost, repeated }) => [
          ...[store, collected ? `${count(alarms)}, collected` : count(alarms), count(wakes)],
          ...[count(sent), count(perSecond)],
          ...[ms(p50), ms(p99), ms(most), count(refused), count(lost), count(repeated)],
        ],
      ),
      note: 'Each alarm belongs to another user, and its wakes follow one another. Collected: a wake carries the events of a second.',
    },
    {
      title: 'Checks that say no, milliseconds of processor time per check',
      headings: ['Store', 'checks', 'skipped', 'deliveries', 'chronosd', 'router'],
      rows: checks.map(({ store, checks: number, skipped, started, chronosdMs, routerMs }) => [
        ...[store, count(number), count(skipped), count(started), cost(chronosdMs), cost(routerMs)],
      ]),
      note: 'Each check reads an address of this computer and compares a value. The time of the router includes the request.',
    },
  ];
}

export function chronometricTables({ starts, calls }: ChronometricResult): Table[] {
  const ways = unique(calls.map(({ way }) => way));
  const cells = (tool: string) =>
    ways.flatMap((way) => {
      const row = calls.find((each) => each.tool === tool && each.way === way)!;
      return [row.p50, row.p99].map((value) => value.toFixed(2));
    });
  return [
    {
      title: 'Chronometric: cold start to the first answer, milliseconds',
      headings: ['Server', 'handshake', 'first answer'],
      rows: starts.map(({ title, handshake, answer }) => [title, ms(handshake), ms(answer)]),
    },
    {
      title: 'Chronometric: a call, milliseconds',
      headings: [
        'Tool',
        ...ways.flatMap((way) => {
          const { title } = calls.find((each) => each.way === way)!;
          return [`${title} p50`, 'p99'];
        }),
      ],
      rows: unique(calls.map(({ tool }) => tool)).map((tool) => [tool, ...cells(tool)]),
      note: 'The start and the end of a session are synced to disk before the answer. The tools of the bare server do nothing.',
    },
  ];
}

export function verdictsTable(verdicts: readonly Verdict[]): Table {
  return {
    title: 'Targets',
    headings: ['Target', 'limit', 'measured', 'verdict'],
    rows: verdicts.map(({ target, store, limit, measured, reached, missedBy }) => [
      store === undefined ? target : `${target}, ${store}`,
      limit,
      measured,
      reached ? 'reached' : `missed, ${missedBy}`,
    ]),
  };
}

/** The tables of all results, in the order of the page. */
export function tablesOf(results: Results): Table[] {
  const {
    lateness,
    burst,
    creates,
    growth,
    replicas,
    queue,
    endurance,
    resident,
    footprint,
    tools,
    boot,
    memory,
    receipts,
    chronometric,
    proxy,
    consoles,
  } = results;
  return [
    ...(lateness ? [latenessTable(lateness)] : []),
    ...(burst ? [burstTable(burst)] : []),
    ...(burst ? [databaseWorkTable(burst) ?? []].flat() : []),
    ...(burst ? burstTargetTables(burst) : []),
    ...(creates ? [createsTable(creates)] : []),
    ...(growth ? [growthTable(growth)] : []),
    ...(replicas ? [replicasTable(replicas)] : []),
    ...(queue ? queueTables(queue) : []),
    ...(endurance ? [lastingTable(endurance, true)] : []),
    ...(resident ? [lastingTable(resident, false)] : []),
    ...(footprint ? [idleTable(footprint), startsTable(footprint)] : []),
    ...(tools ? [toolsTable(tools)] : []),
    ...(boot ? [bootTable(boot)] : []),
    ...(memory ? [memoryTable(memory)] : []),
    ...(receipts ? [receiptsTable(receipts)] : []),
    ...(chronometric ? chronometricTables(chronometric) : []),
    ...(proxy ? proxyTables(proxy) : []),
    ...(results.conditions ? conditionsTables(results.conditions) : []),
    ...(consoles ? [consolesTable(consoles)] : []),
    ...(consoles?.events ? [eventsTable(consoles.events)] : []),
  ];
}
