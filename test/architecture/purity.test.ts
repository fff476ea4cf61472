import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const SRC = join(import.meta.dirname, '..', '..', 'src');
const sources = globSync('**/*.ts', { cwd: SRC })
  .filter((path) => !path.endsWith('.test.ts') && !path.includes('/testing/'))
  .map((path) => ({ path, text: readFileSync(join(SRC, path), 'utf8') }));

function offenders(pattern: RegExp, allowed: RegExp): string[] {
  return sources.filter(({ path, text }) => !allowed.test(path) && pattern.test(text)).map(({ path }) => path);
}

test('only the system clock reads the wall clock or the monotonic one', () => {
  assert.deepEqual(offenders(/\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(/, /^kit\/clock\/clock\.ts$/), []);
});

test('only the command line reads the environment', () => {
  assert.deepEqual(offenders(/\bprocess\.env\b/, /^cli\//), []);
});

test('src holds TypeScript, SQL and data, and other languages only for the browser', () => {
  const others = globSync('**/*', { cwd: SRC, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(ts|sql|json)$/.test(entry.name))
    .filter((entry) => !/[\\/](?:console[\\/]assets|testing)$/.test(entry.parentPath))
    .map((entry) => entry.name);
  assert.deepEqual(others, []);
});

test('no file has a meaningless name', () => {
  const vague = globSync('**/*', { cwd: SRC }).filter((path) =>
    /(^|\/)(utils?|helpers?|common|misc|shared)(\.|\/|$)/i.test(path),
  );
  assert.deepEqual(vague, []);
});
