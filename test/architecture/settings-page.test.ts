import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { settingsPage } from '../../schemas/settings-page.ts';

const SRC = join(import.meta.dirname, '..', '..', 'src');

/** Variables of the operating system, of connected clients, and between parts of Reveille. */
const NOT_SETTINGS =
  /^(?:PATH|HOME|XDG_\w+|DBUS_\w+|DISPLAY|WAYLAND_DISPLAY|TERM|USER|TZ|GITHUB_TOKEN|NAME|APPDATA|LOCALAPPDATA|CLAUDE_CONFIG_DIR|CODEX_HOME|GEMINI_CLI_HOME|OPENCLAW_STATE_DIR)$/;

test('docs/reference/settings.md names every variable that the code reads; "npm run schemas" writes it anew', () => {
  const page = settingsPage();
  assert.equal(readFileSync(join(SRC, '..', 'docs', 'reference', 'settings.md'), 'utf8'), page);
  const read = globSync('**/*.ts', { cwd: SRC, exclude: ['**/*.test.ts', '**/testing/**'] }).flatMap((file) => {
    const source = readFileSync(join(SRC, file), 'utf8');
    return [...source.matchAll(/\b(?:settings|environment|env)\.([A-Z][A-Z0-9_]{2,})\b/g)].map((match) => match[1]!);
  });
  const missing = new Set(read.filter((name) => !NOT_SETTINGS.test(name) && !page.includes(`\`${name}\` |`)));
  assert.deepEqual([...missing], []);
  assert.ok(read.includes('REVEILLE_LOG'));
});

test("each row has the variable's meaning and its default", () => {
  const rows = settingsPage()
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  assert.ok(rows.length > 150, `${rows.length} variables`);
  for (const row of rows) assert.match(row, /^\| `[A-Z][A-Z0-9_]*` \| (?:`[^`]+`)? \| .*\| [^|]+[.] \|$/);
  assert.ok(
    rows.some((row) => row.startsWith('| `CHRONOS_PORT` | `9096` | a whole number from 0 to 65535 | The port;')),
  );
  assert.ok(rows.some((row) => row.startsWith('| `ROUTER_PUBLIC_TLS_CERT` |  |  | Path of the listener')));
});
