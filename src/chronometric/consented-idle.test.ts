import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, settle } from '../kit/clock/testing/manual-clock.ts';
import { consentedIdle } from './consented-idle.ts';
import type { IdleReading } from './idle/idle.ts';
import { DEFAULT_PROFILE } from './profile/profile.ts';

const CALM = new AbortController().signal;

/** A desktop whose answers, and a profile whose consent, the test controls. */
function scene({ consent = true } = {}) {
  const desktop = { consent, opened: 0, asked: 0, stopped: false };
  const answers: ((reading: IdleReading) => void)[] = [];
  const clock = new ManualClock();
  const profile = {
    ready: async () => {},
    read: () => ({ profile: { ...DEFAULT_PROFILE, osIdleConsent: desktop.consent }, problems: [] }),
  };
  const open = async () => {
    desktop.opened++;
    return {
      read: (signal?: AbortSignal) =>
        new Promise<IdleReading>((resolve) => {
          desktop.asked++;
          answers.push(resolve);
          signal?.addEventListener('abort', () => {
            desktop.stopped = true;
            resolve({ unavailable: 'the server stops' });
          });
        }),
    };
  };
  const answer = (reading: IdleReading) => answers.shift()!(reading);
  return { desktop, clock, answer, idle: consentedIdle(profile, open, clock) };
}

const READING: IdleReading = { idleMs: 1234, source: 'x11' };

test('nothing is opened without consent', async () => {
  const { idle, desktop } = scene({ consent: false });
  assert.equal(await idle.read(), undefined);
  assert.equal(await idle.readSoon(CALM), undefined);
  assert.deepEqual([desktop.opened, desktop.asked], [0, 0]);
});

test('concurrent callers share one query, and the probes are opened once', async () => {
  const { idle, desktop, answer } = scene();
  const both = Promise.all([idle.read(), idle.readSoon(CALM)]);
  await settle();
  answer(READING);
  assert.deepEqual(await both, [READING, READING]);
  const again = idle.read();
  await settle();
  answer({ unavailable: 'gone' });
  assert.deepEqual(await again, { unavailable: 'gone' });
  assert.deepEqual([desktop.opened, desktop.asked], [1, 2]);
});

test('a tool call waits for three seconds; a caller without a limit gets the same reading later', async () => {
  const { idle, clock, answer, desktop } = scene();
  const [patient, soon] = [idle.read(), idle.readSoon(CALM)];
  await settle();
  await clock.advance(3000);
  assert.deepEqual(await soon, { unavailable: 'no probe has answered within 3 s' });
  answer(READING);
  assert.deepEqual(await patient, READING);
  assert.deepEqual([desktop.asked, clock.timers], [1, 0]);
});

test('a cancelled call does not wait', async () => {
  const { idle, answer } = scene();
  const caller = new AbortController();
  const soon = idle.readSoon(caller.signal);
  await settle();
  caller.abort();
  assert.ok('unavailable' in (await soon)!);
  answer(READING);
});

test('consent that is withdrawn during the query discards the reading', async () => {
  const { idle, desktop, answer } = scene();
  const reading = idle.readSoon(CALM);
  await settle();
  desktop.consent = false;
  answer(READING);
  assert.equal(await reading, undefined);
});

test('closing stops the running query', async () => {
  const { idle, desktop } = scene();
  const reading = idle.read();
  await settle();
  await idle.close();
  assert.equal(desktop.stopped, true);
  assert.deepEqual(await reading, { unavailable: 'the server stops' });
});

test('a failure to load the probes is reported without the error message', async () => {
  const { clock } = scene();
  const profile = {
    ready: async () => {},
    read: () => ({ profile: { ...DEFAULT_PROFILE, osIdleConsent: true }, problems: [] }),
  };
  const broken = consentedIdle(profile, () => Promise.reject(new Error('idle for 1234')), clock);
  assert.deepEqual(await broken.read(), { unavailable: 'the probes could not be loaded' });
});
