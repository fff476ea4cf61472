import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { diceOf, rounds } from '../../../test/support/random/random.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { openState } from './open-state.ts';
import { DAY_MS } from './testing/state-bench.ts';
import type { Acknowledgement } from './testing/writer.fixture.ts';

const ENTRY = fileURLToPath(import.meta.resolve('./testing/writer.fixture.ts'));
const KILLS = rounds(16, 200);
/** Processes that write to one file at the same time. */
const WRITERS = 4;

/** Runs a writer, and kills it after a number of acknowledgements. */
async function write(
  t: TestContext,
  dataDir: string,
  count: number,
  killAfter = Number.POSITIVE_INFINITY,
  delayMs = 0,
) {
  // The first process that ends by itself fills the cache. Without it, the short-lived processes would mostly compile.
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: join(dataDir, '..', 'compiled') };
  const child = spawn(process.execPath, [ENTRY, dataDir, String(count)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
  });
  const kill = () => child.kill('SIGKILL');
  t.after(kill);
  const closed = once(child, 'close');
  const acknowledged: Acknowledgement[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    // The last line may be incomplete.
    if (line.endsWith('}')) acknowledged.push(JSON.parse(line) as Acknowledgement);
    if (acknowledged.length === killAfter) setTimeout(kill, delayMs);
  }
  const [code, signal] = await closed;
  return { acknowledged, code, signal };
}

const all = <K extends keyof Acknowledgement>(acknowledged: readonly Acknowledgement[], key: K) =>
  acknowledged.map((one) => one[key]).filter((value) => value !== undefined);

/** Compares the file with the acknowledgements. @returns the number of sessions */
function check(t: TestContext, dataDir: string, acknowledged: readonly Acknowledgement[]): number {
  const state = openState({ dataDir, clock: systemClock, dayEnd: (instant) => instant + DAY_MS });
  t.after(() => state.close());
  const now = systemClock.now();
  const sessions = state.sessionsBetween(0, now + DAY_MS);
  assert.ok(sessions.filter(({ endedAt }) => endedAt === undefined).length <= 1, 'one open session at most');
  const endings = new Map(sessions.map(({ id, ending }) => [id, ending]));
  assert.equal(endings.size, sessions.length);
  for (const id of all(acknowledged, 'started')) assert.ok(endings.has(id), `the start of ${id} is lost`);
  for (const id of all(acknowledged, 'ended')) assert.equal(endings.get(id), 'ended');
  for (const id of all(acknowledged, 'autoClosed')) assert.equal(endings.get(id), 'auto_closed');
  const closed = [...all(acknowledged, 'ended'), ...all(acknowledged, 'autoClosed')];
  assert.equal(new Set(closed).size, closed.length, 'a session ends once');
  for (const { startedAt, endedAt, lastSeenAt, activeMs } of sessions) {
    assert.ok(lastSeenAt >= startedAt && (endedAt === undefined || endedAt >= startedAt));
    assert.ok(activeMs >= 0 && activeMs <= (endedAt ?? now + DAY_MS) - startedAt);
  }
  assert.equal(state.spansBetween(0, now + DAY_MS).length, 1);
  // Of two prompts at about the same time, either may be stored last.
  const lastPrompt = Math.max(...all(acknowledged, 'prompted'));
  assert.ok(state.lastPromptAt()! > lastPrompt - 10_000, 'the last prompt is lost');
  const db = new DatabaseSync(join(dataDir, 'chronometric.db'));
  t.after(() => db.close());
  assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' });
  return sessions.length;
}

test(`killed ${KILLS} times while writing, ${WRITERS} processes on one file: nothing acknowledged is lost`, async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const { acknowledged } = await write(t, dataDir, 1);
  const dice = diceOf(t);
  let kills = 0;
  const writer = async () => {
    while (kills < KILLS) {
      kills++;
      const written = await write(t, dataDir, Number.POSITIVE_INFINITY, 1 + dice(12), dice(4));
      assert.equal(written.signal, 'SIGKILL');
      acknowledged.push(...written.acknowledged);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
  assert.equal(kills, KILLS);
  const sessions = check(t, dataDir, acknowledged);
  t.diagnostic(`${kills} kills, ${acknowledged.length} acknowledgements, ${sessions} sessions`);
});

test('several processes that create the file at the same time lose no write', async (t) => {
  const dataDir = join(temporaryFolder(t), 'new');
  const written = await Promise.all(Array.from({ length: WRITERS }, () => write(t, dataDir, 60)));
  assert.deepEqual(
    written.map(({ code }) => code),
    written.map(() => 0),
  );
  const acknowledged = written.flatMap((one) => one.acknowledged);
  const sessions = check(t, dataDir, acknowledged);
  assert.equal(sessions, all(acknowledged, 'started').length, 'no unacknowledged session');
});
