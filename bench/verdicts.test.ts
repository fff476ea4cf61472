import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Lateness, latenessOf } from './statistics.ts';
import { bestPeer, judge, verdictsOf } from './verdicts.ts';
import type { BurstResult } from './workloads/burst.ts';

const late = (p50: number, p99: number): Lateness => ({ ...latenessOf([p50, p99], 2, 0), p50, p99 });

const drain = (system: string, median: number, raw: number) => ({
  system,
  title: system,
  median,
  toRaw: median / raw,
  own: null,
  rounds: [],
});

const burst = (raw: number): BurstResult => ({
  count: 40_000,
  seconds: 4,
  raw: { median: raw, rounds: [] },
  targets: [],
  rows: [
    drain('reveille-sqlite', 9_000, raw),
    drain('slow-peer', 1_000, raw),
    drain('fast-peer', 2_000, raw),
    drain('fast-peer-default', 5_000, raw),
  ],
});

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
  assert.equal(bestPeer(burst(10_000))?.system, 'fast-peer');
});

test('a burst is judged against the raw rate and the best peer', () => {
  const [toRaw, toPeer] = verdictsOf({ burst: burst(16_000) });
  assert.deepEqual([toRaw?.measured, toRaw?.reached, toRaw?.note], ['0.56 ×', true, undefined]);
  assert.deepEqual([toPeer?.measured, toPeer?.reached], ['4.50 ×', true]);
});

test('a target that the burst itself rules out is marked', () => {
  const [toRaw] = verdictsOf({ burst: burst(30_000) });
  assert.equal(toRaw?.reached, false);
  assert.match(toRaw?.note ?? '', /cannot be reached with this burst: the target is 15,000\/s, 10,000\/s fall due/);
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
    [verdict?.target, verdict?.measured, verdict?.reached],
    ['Resident after 10 minutes at 500 creates and fires per second, SQLite', '199 MB', true],
  );
});

test('a workload without results is not judged', () => {
  assert.deepEqual(verdictsOf({}), []);
});
