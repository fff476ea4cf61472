import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(ROOT, 'docs', 'internals', 'decisions', '0028-points-of-the-sources.md'), 'utf8');

/** The cells of the tables below a heading. */
function rowsBelow(heading: string): string[][] {
  const section = page.split('\n## ').find((part) => part.startsWith(heading)) ?? '';
  return section
    .split('\n')
    .filter((line) => /^\| \d+ \| /.test(line))
    .map((line) => line.slice(2, -2).split(' | '));
}

/** The test files that a cell names. */
const filesIn = (cell: string) => [...cell.matchAll(/`([^`]+\.ts)`/g)].map(([, path]) => path!);

const late = rowsBelow('Met late');
const different = rowsBelow('Different on purpose');

test('the decision on the sources numbers its points without a gap', () => {
  for (const rows of [late, different])
    assert.deepEqual(
      rows.map(([number]) => Number(number)),
      rows.map((_, index) => index + 1),
    );
  assert.deepEqual([late.length, different.length], [25, 17]);
});

test('every test that the decision on the sources names exists', () => {
  for (const row of [...late, ...different]) {
    const files = filesIn(row.at(-1)!);
    assert.ok(files.length > 0, `point ${row.join(' | ')} names no test`);
    for (const file of files) assert.ok(existsSync(join(ROOT, file)), `${file} does not exist`);
  }
});

test('every deliberate difference has an existing decision', () => {
  const linked = (cell: string) => [...cell.matchAll(/\]\((\d{4}-[^)]+)\)/g)].map(([, path]) => path!);
  for (const row of different) {
    const decisions = linked(row[4]!);
    assert.ok(decisions.length > 0, row.join(' | '));
    for (const path of decisions) assert.ok(existsSync(join(ROOT, 'docs', 'internals', 'decisions', path)), path);
  }
});

test('the decision on chronometric answers the four open questions of the sources and names their trade-offs', () => {
  const decision = readFileSync(join(ROOT, 'docs', 'internals', 'decisions', '0017-chronometric.md'), 'utf8');
  const questions = [...decision.matchAll(/^(\d)\. \*(.+?\?)\* (.+)/gm)].map(([, number, question]) => [
    number,
    question,
  ]);
  assert.deepEqual(
    questions.map(([number]) => number),
    ['1', '2', '3', '4'],
  );
  const about = ['energy_zone', 'consent', 'mark_session_start', 'threshold'];
  for (const [index, word] of about.entries()) assert.match(questions[index]![1]!, new RegExp(word));
  assert.match(decision, /`get_status`/);
});
