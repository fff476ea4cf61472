import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Report } from '../results.ts';
import { createsSummary, renderBenchmarks, schedulersTable } from './benchmarks-page.ts';
import { renderResults } from './results-page.ts';

const STORED = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'results.json'), 'utf8')) as Report;
const EMPTY: Report = { ...STORED, results: {}, measured: {} };
const LINES_MAX = 80;

test(`the page for users has at most ${LINES_MAX} lines`, () => {
  const lines = renderBenchmarks(STORED).trimEnd().split('\n');
  assert.ok(lines.length <= LINES_MAX, `${lines.length} lines`);
});

test('a target has one row for both stores, with both limits where they differ and missed figures in bold', () => {
  const recovery = (firstFireMs: number) => ({ firstFireMs, overdueMs: 10, caughtUpMs: 0, processEnded: false });
  const queued = STORED.results.queue!.filter(({ scenario }) => scenario === 'restart');
  const queue = queued.map((row) => ({ ...row, recovery: recovery(row.system === 'reveille-sqlite' ? 9_000 : 5) }));
  const page = renderBenchmarks({ ...EMPTY, results: { queue } });
  assert.match(
    page,
    /\| From the return of a killed store to the next fire \| at most 2,000 ms \| \*\*9,000 ms\*\* \| 5 ms \|/,
  );
  assert.match(page, /^5 of 6 figures reach their limit/m);
  const { lateness } = STORED.results;
  assert.match(
    renderBenchmarks({ ...EMPTY, results: { lateness: lateness! } }),
    /\| Lateness p99 at 1,000 fires\/s \| at most 8\.7 ms \/ at most 15\.8 ms \|/,
  );
});

test('schedulers are compared in their best settings; a figure that was not measured is empty', () => {
  const { lateness, ...others } = STORED.results;
  const titles = schedulersTable(STORED.results).rows.map(([title]) => title!);
  assert.deepEqual(titles.slice(0, 2), ['Reveille, SQLite', 'Reveille, PostgreSQL']);
  assert.ok(titles.every((title) => !title.includes('default')));
  assert.ok(schedulersTable({ lateness: lateness! }).rows.every((row) => row.slice(4).every((cell) => cell === '')));
  assert.ok(schedulersTable(others).rows.every((row) => row.slice(1, 4).every((cell) => cell === '')));
});

test('creates have a line per system and a column per number of clients', () => {
  const row = { system: 'a', title: 'A', inserts: 1, posts: 1, rounds: [] };
  const { headings, rows } = createsSummary([
    { ...row, clients: 64, creates: 6_000, ratio: 0.5 },
    { ...row, clients: 1, creates: 1_000, ratio: 0.25 },
  ]);
  assert.deepEqual(headings.slice(1), ['1 client', '64 clients']);
  assert.deepEqual(rows, [['A', '1,000 (0.25 ×)', '6,000 (0.50 ×)']]);
});

test('a report without results has both pages', () => {
  assert.doesNotMatch(renderBenchmarks(EMPTY), /## Reveille and other schedulers/);
  assert.match(renderResults(EMPTY), /^## Method$/m);
});
