import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fieldOf, memberOf, OWNER_FIELDS } from '../../src/wire/alarm-fields.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Files of `src` written by hand, without tests. */
const SOURCES = globSync('src/**/*.{ts,sql}', { cwd: ROOT })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => !path.endsWith('.test.ts') && !path.includes('/testing/'))
  .map((path) => [path, readFileSync(join(ROOT, path), 'utf8')] as const);

const naming = (name: string) =>
  SOURCES.filter(([, text]) => new RegExp(`\\b(${name}|${memberOf(name)}|${name.replaceAll('_', '-')})\\b`).test(text))
    .map(([path]) => path)
    .sort();

test('a field of an alarm is named by the table, its migrations, and the code that acts on it', () => {
  assert.deepEqual(naming('wake_computer'), [
    // It is explained to models.
    'src/chronos-mcp/help.ts',
    // It is refused beside looks.
    'src/chronos/alarm/definition.ts',
    'src/chronos/daemon.ts',
    'src/chronos/store/postgres/migrations/0012-sleep.sql',
    'src/chronos/store/sqlite/find.ts',
    'src/chronos/store/sqlite/migrations/0012-sleep.sql',
    'src/chronos/store/sqlite/migrations/0013-hot-rows.sql',
    'src/chronos/store/store.ts',
    'src/cli/commands/up.ts',
    // WakeSystem of a timer.
    'src/cli/import/systemd.ts',
    'src/cli/tree/alarm.ts',
    'src/cli/tree/upkeep.ts',
    'src/wire/alarm-fields.ts',
    'src/wire/alarm-rights.ts',
  ]);
});

test('no two fields have the same flag, control or row', () => {
  const fields = OWNER_FIELDS.map(fieldOf);
  const names = {
    flag: fields.flatMap(({ flag }) => (flag ? [flag.name] : [])),
    control: fields.flatMap(({ form }) => (form ? [form.name] : [])),
    row: fields.flatMap(({ row }) => (row ? [row[0]] : [])),
    fact: fields.flatMap(({ fact }) => (fact ? [fact[0]] : [])),
  };
  for (const [kind, given] of Object.entries(names)) assert.deepEqual(given, [...new Set(given)], kind);
});
