import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Lateness, latenessOf } from './statistics.ts';
import { bestPeer, burstRates, judge, verdictsOf } from './verdicts.ts';
import type { BurstResult } from './workloads/burst.ts';

const late = (p50: number, p99: number): Lateness => ({ ...latenessOf([p50, p99], 2, 0), p50, p99 });

const drain = (system: string, median: number): BurstResult['rows'][number] => ({
  system,
  title: system,
  median,
  toRaw: 0.5,
  own: null,
  rounds: [],
});

const BURST: BurstResult = {
  count: 40_000,
  seconds: 4,
  raw: { median: 30_000, rounds: [] },
  targets: [],
  rows: [
    drain('reveille-sqlite', 9_000),
    drain('slow-peer', 1_000),
    drain('fast-peer', 10_000),
    drain('fast-peer-default', 15_000),
  ],
};

test('an upper and a lower limit are reached at the limit itself', () => {
  const write = String;
  assert.equal(judge({ target: 't', limit: 15, measured: 15, at: 'most', write }).reached, true);
  assert.equal(judge({ target: 't', limit: 15, measured: 15.1, at: 'most', write }).reached, false);
  assert.equal(judge({ target: 't', limit: 0.7, measured: 0.7, at: 'least', write }).reached, true);
  assert.equal(judge({ target: 't', limit: 0.7, measured: 0.6, at: 'least', write }).reached, false);
});

test('a missed target states the difference', () => {
  const write = String;
  assert.equal(judge({ target: 't', limit: 10, measured: 15, at: 'most', write }).missedBy, '50 % over');
  assert.equal(judge({ target: 't', limit: 10, measured: 4, at: 'least', write }).missedBy, '60 % short');
  assert.equal(judge({ target: 't', limit: 10, measured: null, at: 'most', write }).missedBy, 'no figure');
});

test('lateness is judged at 1,000 and 3,000 fires per second, each store by its own limits', () => {
  const row = { title: '', seconds: 30, rounds: [], bodyBytes: 0 };
  const verdicts = verdictsOf({
    lateness: [
      { ...row, system: 'reveille-sqlite', rate: 1000, median: late(2, 16) },
      { ...row, system: 'reveille-sqlite', rate: 3000, median: late(100, 100) },
      { ...row, system: 'reveille-postgres', rate: 1000, median: late(5, 16) },
      { ...row, system: 'fast-peer', rate: 1000, median: late(100, 100) },
    ],
  });
  assert.deepEqual(
    verdicts.map(({ limit, reached }) => [limit, reached]),
    [
      ['at most 3.0 ms', true],
      ['at most 8.7 ms', false],
      ['at most 5.0 ms', true],
      ['at most 15.8 ms', false],
      ['at most 20.0 ms', false],
    ],
  );
});

test('the best peer is the fastest in its best setting', () => {
  assert.equal(bestPeer(burstRates(BURST))?.system, 'fast-peer');
});

test('a burst is judged against the best peer of the same target', () => {
  const target = (system: string, perSecond: number) => ({
    ...{ system, title: system },
    drain: { perSecond, missing: 0, repeated: 0 },
  });
  const rows = [target('reveille-sqlite', 4_500), target('fast-peer', 1_000), target('slow-peer', 5_000)];
  const verdicts = verdictsOf({
    burst: {
      ...BURST,
      targets: [
        { target: 'slow', rows },
        { target: 'tls', rows },
      ],
    },
  });
  assert.deepEqual(
    verdicts.map(({ target, store, limit, measured, reached }) => [target, store, limit, measured, reached]),
    [
      ['Burst, compared to the best peer (fast-peer)', 'SQLite', 'at least 1.00 ×', '0.90 ×', false],
      [
        'Burst at a target behind TLS, compared to the best peer (slow-peer)',
        'SQLite',
        'at least 0.90 ×',
        '0.90 ×',
        true,
      ],
    ],
  );
});

test('the work per fire is judged for chronosd and for its database server', () => {
  const own = { processorMicroseconds: 60, writtenBytes: 11 * 1024, peakMegabytes: 201 };
  const database = { walBytes: 9_000, walImages: 1, walRecords: 90, hotShare: 0, serverMicroseconds: 36 };
  const rounds = [{ perSecond: 1, missing: 0, repeated: 0, database }];
  const rows = [
    { ...drain('reveille-sqlite', 1), own },
    { ...drain('reveille-postgres', 1), own, rounds },
  ];
  assert.deepEqual(
    verdictsOf({ burst: { ...BURST, rows } }).map(({ target, store, limit, reached }) => [
      target,
      store,
      limit,
      reached,
    ]),
    [
      ['CPU of chronosd per fire', 'SQLite', 'at most 60 µs', true],
      ['Peak resident memory in the burst', 'SQLite', 'at most 200 MB', false],
      ['Bytes written per fire', 'SQLite', 'at most 10.0 KiB', false],
      ['CPU of chronosd per fire', 'PostgreSQL', 'at most 60 µs', true],
      ['Peak resident memory in the burst', 'PostgreSQL', 'at most 200 MB', false],
      ['CPU of the database server per fire', 'PostgreSQL', 'at most 35 µs', false],
    ],
  );
});

test('creates are judged by bare inserts for many clients, on SQLite also by the rate of one client', () => {
  const row = { title: '', inserts: 10_000, posts: 30_000, rounds: [] };
  const creates = [
    { ...row, system: 'reveille-sqlite', clients: 1, creates: 2_000, ratio: 0.2 },
    { ...row, system: 'reveille-postgres', clients: 1, creates: 100, ratio: 0.01 },
    { ...row, system: 'reveille-postgres', clients: 64, creates: 5_900, ratio: 0.59 },
  ];
  assert.deepEqual(
    verdictsOf({ creates }).map(({ store, limit, reached }) => [store, limit, reached]),
    [
      ['SQLite', 'at least 2,000/s', true],
      ['PostgreSQL', 'at least 0.60 ×', false],
    ],
  );
});

test('growth compares the largest stock with the smallest, in any order', () => {
  const row = {
    system: 'reveille-sqlite',
    title: '',
    rate: 200,
    windows: [],
    claim: { p50: 1, p99: 1 },
    residentMegabytes: 1,
    storeBytes: 1,
  };
  const [verdict] = verdictsOf({
    growth: [
      { ...row, pending: 5_000_000, median: late(1, 16) },
      { ...row, pending: 10_000, median: late(1, 10) },
    ],
  });
  assert.deepEqual([verdict?.measured, verdict?.reached], ['1.60 ×', false]);
});

const recalled = (query: string, memories: number, p99: number) => ({
  ...{ query, memories, p99 },
  queries: 100,
  p50: 1,
  max: 100,
});

test('recall is judged by its slowest kind of query, and only with 100,000 memories', () => {
  const memory = [recalled('a', 10_000, 90), recalled('b', 100_000, 20), recalled('c', 100_000, 3)];
  const [verdict, ...more] = verdictsOf({ memory });
  assert.deepEqual([verdict?.limit, verdict?.measured, verdict?.reached], ['at most 20.0 ms', '20.0 ms', true]);
  assert.match(verdict?.target ?? '', /100,000 memories.*\(b\)/);
  assert.deepEqual(more, []);
  assert.deepEqual(verdictsOf({ memory: memory.slice(0, 1) }), []);
  const [missed] = verdictsOf({ memory: [recalled('b', 100_000, 30)] });
  assert.deepEqual([missed?.reached, missed?.missedBy], [false, '50 % over']);
});

test('checking receipts is judged, signing them is not', () => {
  const row = { title: '', bytes: 662, ofBare: 1, rounds: [] };
  const receipts = [
    { ...row, way: 'verify' as const, median: 6000 },
    { ...row, way: 'append' as const, median: 10 },
  ];
  assert.deepEqual(
    verdictsOf({ receipts }).map(({ limit, measured, reached }) => [limit, measured, reached]),
    [['at least 5,000', '6,000', true]],
  );
});

test('chronometric is judged by its first answer and its slowest tool; the bare server is not judged', () => {
  const start = { title: '', handshake: 100, rounds: [] };
  const call = { title: '', p50: 1, rounds: [] };
  const chronometric = {
    starts: [
      { ...start, way: 'reveille' as const, answer: 290 },
      { ...start, way: 'sdk' as const, answer: 900 },
    ],
    calls: [
      { ...call, way: 'reveille' as const, tool: 'a', p99: 2 },
      { ...call, way: 'reveille' as const, tool: 'b', p99: 6 },
      { ...call, way: 'sdk' as const, tool: 'b', p99: 60 },
    ],
  };
  assert.deepEqual(
    verdictsOf({ chronometric }).map(({ target, measured, reached }) => [target, measured, reached]),
    [
      ['Chronometric, cold start to the first answer', '290 ms', true],
      ['Chronometric, p99 of the slowest tool (b)', '6.0 ms', false],
    ],
  );
});

test('a restart is judged by the next fire and by the last waiting fire', () => {
  const row = { scenario: 'restart' as const, system: 'reveille-sqlite', title: '', rate: 800, lateness: late(1, 2) };
  const queue = [{ ...row, recovery: { firstFireMs: 400, overdueMs: null, caughtUpMs: 0, processEnded: true } }];
  assert.deepEqual(
    verdictsOf({ queue }).map(({ measured, reached }) => [measured, reached]),
    [
      ['400 ms', true],
      ['never', false],
      ['0', true],
    ],
  );
});

test('memory under a load without deletion is judged at its end', () => {
  const window = { lateness: late(1, 2), fileBytes: 0 };
  const windows = [
    { ...window, residentMegabytes: 250 },
    { ...window, residentMegabytes: 199 },
  ];
  const [verdict] = verdictsOf({ resident: { rate: 500, windowSeconds: 300, windows } });
  assert.deepEqual(
    [verdict?.target, verdict?.store, verdict?.measured, verdict?.reached],
    ['Resident after 10 minutes at 500 creates and fires per second', 'SQLite', '199 MB', true],
  );
});

test('a workload without results is not judged', () => {
  assert.deepEqual(verdictsOf({}), []);
});
