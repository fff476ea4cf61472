import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { watchCommand } from '../../support/pseudo-terminal.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';

const skip = needs('script');

test('at a terminal the difference is shown before anything is written, and only a yes writes it', {
  skip,
}, async (t) => {
  const home = temporaryFolder(t);
  const file = join(home, '.cursor', 'mcp.json');
  const env = { PATH: process.env.PATH ?? '', HOME: home };
  const connectAndAnswer = async (answer: string) => {
    const screen = watchCommand({ columns: 120, rows: 50 }, [process.execPath, PROGRAM, 'connect', 'cursor'], env);
    t.after(() => screen.end());
    await screen.until(/Write this\? \[y\/N\] ?$/);
    assert.match(screen.rows().join('\n'), /~\/\.cursor\/mcp\.json is made\n[\s\S]*\+ +"chronos": \{/);
    assert.equal(existsSync(file), false);
    await screen.type(`${answer}\r`, /Nothing was written\.|Cursor is connected/);
    return screen.rows().join('\n');
  };
  for (const answer of ['', 'no', 'x']) {
    assert.match(await connectAndAnswer(answer), /Nothing was written\./);
    assert.equal(existsSync(file), false);
  }
  assert.match(await connectAndAnswer('y'), /Cursor is connected: /);
  assert.ok(readFileSync(file, 'utf8').includes(PROGRAM));
});
