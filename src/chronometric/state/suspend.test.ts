import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { openState } from './open-state.ts';
import { BEAT_MS, REAL_BREAK_MS } from './state.ts';
import { DAY_MS } from './testing/state-bench.ts';

const ENTRY = fileURLToPath(import.meta.resolve('./testing/heartbeat.fixture.ts'));
/** Seconds of the heartbeats' clock per real second. */
const SPEED = 200;

function heartbeat(t: TestContext, dataDir: string, origin: number): ChildProcess {
  const child = spawn(process.execPath, [ENTRY, dataDir, String(origin), String(SPEED)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

async function beats(children: readonly ChildProcess[], number: number): Promise<void> {
  for (let beat = 0; beat < number; beat++) await Promise.all(children.map((child) => once(child.stdout!, 'data')));
}

test('processes stopped for a quarter of an hour, as on a suspended laptop, do not count that time and restart the count', async (t) => {
  const dataDir = temporaryFolder(t);
  const origin = systemClock.now();
  const now = () => origin + (systemClock.now() - origin) * SPEED;
  const state = openState({ dataDir, clock: { ...systemClock, now }, dayEnd: (instant) => instant + DAY_MS });
  t.after(() => state.close());
  state.start('sleep on it', now(), 'auto_close');
  const children = [heartbeat(t, dataDir, origin), heartbeat(t, dataDir, origin)];
  await beats(children, 8);

  for (const child of children) child.kill('SIGSTOP');
  const stopped = now();
  await delay((3 * REAL_BREAK_MS) / SPEED);
  const continued = now();
  for (const child of children) child.kill('SIGCONT');
  await beats(children, 8);

  const session = state.open()!;
  const later = now();
  assert.ok(session.activeMs > 0);
  const slept = continued - stopped - 2 * BEAT_MS;
  assert.ok(
    session.activeMs <= later - session.startedAt - slept,
    `${session.activeMs} of ${later - session.startedAt}`,
  );
  assert.ok(session.activeSinceBreakMs > 0);
  assert.ok(session.activeSinceBreakMs <= later - continued);
  const spans = state.spansBetween(session.startedAt, later);
  assert.ok(!spans.some(({ from, to }) => from < stopped + 2 * BEAT_MS && to > continued), 'no span contains the stop');
});
