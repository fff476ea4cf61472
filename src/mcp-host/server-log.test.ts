import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../kit/log/log.ts';
import { ServerLog } from './server-log.ts';

function makeLog(t: { after(run: () => void): void }, secrets: string[] = []) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-server-log-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const clock = new ManualClock();
  const log = new ServerLog({ folder, alias: 'fs', secrets, clock, log: silentLogger });
  return { log, clock, text: () => readFileSync(log.path, 'utf8') };
}

test('lines are assembled from chunks, without control characters and secrets', (t) => {
  const { log, text } = makeLog(t, ['my-secret', 'my-secret-longer']);
  const bytes = Buffer.from('first \u001b[31mred\u001b[0m wörld\u0007\nkey my-secret-longer and my-secret\npartial');
  for (const byte of bytes) log.stderr(Buffer.from([byte]));
  assert.equal(log.lastOutput, 'first red wörld | key [hidden] and [hidden] | partial');
  assert.match(text(), /^2026-06-15T08:10:00\.000Z stderr first red wörld\n.* stderr key \[hidden\] and \[hidden\]\n/);
  log.clearLast();
  assert.equal(log.lastOutput, '');
});

test('a flood is cut off within the second, and a long file is rotated', async (t) => {
  const { log, clock, text } = makeLog(t);
  const chunk = Buffer.from(`${'x'.repeat(1000)}\n`.repeat(1000));
  log.stderr(chunk);
  assert.ok(statSync(log.path).size <= 256 * 1024);
  await clock.advance(1000);
  log.line('host', 'go on');
  assert.match(text(), /host \d+ lines were dropped because the server wrote too fast\n.*host go on\n$/);
  for (let second = 0; second < 20; second++) {
    log.stderr(chunk);
    await clock.advance(1000);
  }
  assert.ok(existsSync(`${log.path}.1`));
  assert.ok(statSync(log.path).size <= 1024 * 1024 && statSync(`${log.path}.1`).size <= 1024 * 1024);
});

test('a line without end is stored in part', (t) => {
  const { log } = makeLog(t);
  for (let chunk = 0; chunk < 100; chunk++) log.stderr(Buffer.alloc(65_536, 'x'));
  assert.equal(log.lastOutput.length, 401);
});

test('the last output is never cut in the middle of a character', (t) => {
  const { log } = makeLog(t);
  for (const tail of ['', 'x']) {
    log.line('stderr', `${'🔔'.repeat(300)}${tail}`);
    assert.ok(log.lastOutput.isWellFormed());
  }
});
