import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BootRow } from '../workloads/boot.ts';
import type { ToolsRow } from '../workloads/tools.ts';
import { bootTable, chronometricTables, memoryTable, receiptsTable, tablesOf, toolsTable } from './tables.ts';

const time = (p50: number, p99: number) => ({ p50, p99 });

const called = (way: ToolsRow['way'], call: ToolsRow['call'], added: ToolsRow['added']): ToolsRow => ({
  ...{ way, call, added },
  title: `through ${way}`,
  callTitle: call,
  median: time(0.2, 1.25),
  rounds: [],
});

test('tool calls have a line per client, with the signed difference to the first', () => {
  const { headings, rows } = toolsTable([
    called('sdk', 'short', time(0, 0)),
    called('pool', 'short', time(0.015, -0.4)),
    called('sdk', 'long', time(0, 0)),
    called('pool', 'long', time(1.5, 0.0001)),
  ]);
  const columns = ['short p50', 'added', 'short p99', 'added', 'long p50', 'added', 'long p99', 'added'];
  assert.deepEqual(headings, ['Through', ...columns]);
  assert.deepEqual(rows, [
    ['through sdk', '200', '', '1,250', '', '200', '', '1,250', ''],
    ['through pool', '200', '+15', '1,250', '−400', '200', '+1,500', '1,250', '0'],
  ]);
});

test('starts have a line per client and a column per number of servers', () => {
  const row = (way: BootRow['way'], servers: number, milliseconds: number): BootRow => ({
    ...{ way, servers, milliseconds },
    title: way,
    rounds: [],
  });
  const { headings, rows } = bootTable([
    row('surface', 1, 400),
    row('sdk-in-turn', 1, 300),
    row('surface', 10, 1800.4),
  ]);
  assert.deepEqual(headings, ['Way', '1 server', '10 servers']);
  assert.deepEqual(rows, [
    ['surface', '400', '1,800'],
    ['sdk-in-turn', '300', ''],
  ]);
});

test('recall has a line per kind of query and columns per number of memories', () => {
  const row = { query: 'a word', queries: 10, p50: 0.125, p99: 12, max: 20 };
  const { headings, rows } = memoryTable([
    { ...row, memories: 10_000 },
    { ...row, memories: 100_000, max: 30 },
  ]);
  assert.deepEqual(headings.slice(0, 5), ['Query', '10,000 p50', '10,000 p99', '10,000 max', '100,000 p50']);
  assert.deepEqual(rows, [['a word', '0.13', '12.00', '20.00', '0.13', '12.00', '30.00']]);
});

test('receipts have a line per operation and the bare signature for comparison', () => {
  const row = { way: 'verify' as const, title: 'check', bytes: 662, rounds: [6000] };
  const { rows, note } = receiptsTable([{ ...row, median: 6000, ofBare: 0.75 }]);
  assert.deepEqual(rows, [['check', '6,000', '0.75 ×']]);
  assert.match(note ?? '', /662 bytes/);
});

test('chronometric has a table of starts, and one of calls with columns per server', () => {
  const row = { tool: 'idle_status', rounds: [] };
  const [starts, calls] = chronometricTables({
    starts: [{ way: 'reveille', title: 'ours', handshake: 150.2, answer: 180, rounds: [180] }],
    calls: [
      { ...row, way: 'reveille', title: 'ours', p50: 0.5, p99: 2 },
      { ...row, way: 'sdk', title: 'bare', p50: 0.07, p99: 0.3 },
    ],
  });
  assert.deepEqual(starts?.rows, [['ours', '150', '180']]);
  assert.deepEqual(calls?.headings, ['Tool', 'ours p50', 'p99', 'bare p50', 'p99']);
  assert.deepEqual(calls?.rows, [['idle_status', '0.50', '2.00', '0.07', '0.30']]);
});

test('only measured workloads have tables', () => {
  assert.deepEqual(tablesOf({}), []);
  assert.deepEqual(
    tablesOf({ boot: [], memory: [] }).map(({ title }) => title.split(',')[0]),
    ['Start of an agent until its tools are ready', 'Memory search by text'],
  );
});
