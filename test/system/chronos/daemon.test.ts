import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';

function setUp(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-chronosd-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return (settings: Record<string, string> = {}) =>
    startChronos({
      config: parseChronosConfig({ CHRONOS_PORT: '0', CHRONOS_DATA_DIR: folder, CHRONOS_DEV: '1', ...settings }),
      clock: systemClock,
      log: silentLogger,
    });
}

test('a second chronosd on the same folder is refused, and the first one continues', async (t) => {
  const start = setUp(t);
  const first = await start();
  await assert.rejects(start(), { code: 'unavailable' });
  assert.equal((await fetch(`${first.url}/readyz`)).status, 200);
  await first.close();
});

test('a port in use stops the start and leaves the folder unlocked', async (t) => {
  const start = setUp(t);
  const elsewhere = mkdtempSync(join(tmpdir(), 'reveille-chronosd-'));
  t.after(() => rmSync(elsewhere, { recursive: true }));
  const first = await start({ CHRONOS_DATA_DIR: elsewhere });
  await assert.rejects(start({ CHRONOS_PORT: String(first.port) }), {
    code: 'unavailable',
    message: /cannot listen on/,
  });
  const second = await start();
  await Promise.all([first.close(), second.close()]);
});

test('closing twice is the same as closing once, and stored alarms are there at the next start', async (t) => {
  const start = setUp(t);
  const first = await start();
  const closing = first.close();
  assert.equal(first.close(), closing);
  await closing;
  await assert.rejects(fetch(first.url));
  const second = await start();
  assert.equal((await fetch(`${second.url}/readyz`)).status, 200);
  await second.close();
});
