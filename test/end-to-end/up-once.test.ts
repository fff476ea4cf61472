import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { PROGRAM } from '../support/cluster/processes.ts';

const run = promisify(execFile);
const home = mkdtempSync(join(tmpdir(), 'reveille-once-'));
const env = { PATH: process.env.PATH, REVEILLE_HOME: home, CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0' };
after(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));

const FIELDS = [
  'alarm_id',
  'fire_id',
  'scheduled_for',
  'delivered_at',
  'lateness_ms',
  'machine_start_ms',
  'conversation_id',
  'turn_id',
  'reply',
  'model',
];

test('"up --once --json" in an empty home prints one line about an alarm that woke a sleeping agent, and exits 0', async () => {
  const { stdout, stderr } = await run(process.execPath, [PROGRAM, 'up', '--once', '--json'], { env });
  assert.equal(stderr, '');
  const lines = stdout.trim().split('\n');
  assert.equal(lines.length, 1);
  const fire = JSON.parse(lines[0]!);
  assert.deepEqual(Object.keys(fire), FIELDS);
  assert.ok(fire.lateness_ms >= 0, `fired ${-fire.lateness_ms} ms early`);
  assert.ok(fire.machine_start_ms > 0, 'the agent was awake before the alarm fired');
  assert.equal(fire.model, 'offline');
  assert.match(fire.reply, /A timer woke me/);
});

test('only the owner can read the keys and secrets of the first run', () => {
  for (const file of ['secrets.json', 'identity.json', 'keys/agent.key']) {
    assert.equal(statSync(join(home, file)).mode & 0o777, 0o600, file);
  }
  assert.equal(statSync(home).mode & 0o777, 0o700);
});

test('a second run fires again, and prints text for a person', async () => {
  const { stdout } = await run(process.execPath, [PROGRAM, 'up', '--once'], { env });
  assert.match(stdout, /chronosd {2}http:\/\/127\.0\.0\.1:\d+/);
  const off = stdout.split('\n').filter((line) => line.startsWith('  disabled  '));
  assert.match(
    off[0]!,
    /^ {2}disabled {2}model: Neo answers offline; set NEO_MODEL, NEO_MODEL_BASE_URL and NEO_MODEL_API_KEY$/,
  );
  assert.equal(off.filter((line) => /web_search: .* is not set; set NEO_SEARCH_URL/.test(line)).length, 1);
  assert.match(stdout, /fired {2}welcome: (?:on time|[\d.]+ m?s late); the agent started in \d+ ms/);
});

test('a damaged database is reported and left untouched', async () => {
  const { createHash } = await import('node:crypto');
  const { readFileSync, writeFileSync } = await import('node:fs');
  const file = join(home, 'chronos', 'chronos.db');
  const bytes = readFileSync(file);
  bytes.fill(0x5a, 0, 4096);
  writeFileSync(file, bytes);
  const digest = () => createHash('sha256').update(readFileSync(file)).digest('hex');
  const before = digest();
  await assert.rejects(
    run(process.execPath, [PROGRAM, 'up', '--once'], { env }),
    (error: Error & { stderr: string; code: number }) => {
      assert.equal(error.code, 1);
      assert.match(error.stderr, /chronos\.db/);
      assert.match(error.stderr, /untouched/);
      return true;
    },
  );
  assert.equal(digest(), before);
});

test('a wrong setting stops the start with its name, its value and the allowed values', async () => {
  const wrong = { ...env, CHRONOS_CONCURRENCY: 'many' };
  await assert.rejects(
    run(process.execPath, [PROGRAM, 'up', '--once'], { env: wrong }),
    (error: Error & { stderr: string }) => {
      assert.match(error.stderr, /CHRONOS_CONCURRENCY must be a whole number from 1 to 10000 \(got "many"\)/);
      return true;
    },
  );
});
