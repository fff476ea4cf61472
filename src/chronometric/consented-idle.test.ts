import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, settle } from '../kit/clock/testing/manual-clock.ts';
import { consentedIdle } from './consented-idle.ts';
import type { IdleReading } from './idle/idle.ts';
import { DEFAULT_PROFILE } from './profile/default-profile.ts';

const CALM = new AbortController().signal;

/** A desktop that answers when the test says so, and a profile that changes when it says so. */
function scene({ consent = true } = {}) {
  const said = { consent, opened: 0, asked: 0, stopped: false };
  const answers: ((reading: IdleReading) => void)[] = [];
  const clock = new ManualClock();
  const profile = {
    ready: async () => {},
    read: () => ({ profile: { ...DEFAULT_PROFILE, osIdleConsent: said.consent }, problems: [] }),
  };
  const open = async () => {
    said.opened++;
    return {
      read: (signal?: AbortSignal) =>
        new Promise<IdleReading>((resolve) => {
          said.asked++;
          answers.push(resolve);
          signal?.addEventListener('abort', () => {
            said.stopped = true;
            resolve({ unavailable: 'the server stops' });
          });
        }),
    };
  };
  const answer = (reading: IdleReading) => answers.shift()!(reading);
  return { said, clock, answer, idle: consentedIdle(profile, open, clock) };
}

const READING: IdleReading = { idleMs: 1234, source: 'x11' };

test('nothing is opened without consent', async () => {
  const { idle, said } = scene({ consent: false });
  assert.equal(await idle.read(), undefined);
  assert.equal(await idle.readSoon(CALM), undefined);
  assert.deepEqual([said.opened, said.asked], [0, 0]);
});

test('one look at a time serves all who want one, and the probes are opened once', async () => {
  const { idle, said, answer } = scene();
  const both = Promise.all([idle.read(), idle.readSoon(CALM)]);
  await settle();
  answer(READING);
  assert.deepEqual(await both, [READING, READING]);
  const again = idle.read();
  await settle();
  answer({ unavailable: 'gone' });
  assert.deepEqual(await again, { unavailable: 'gone' });
  assert.deepEqual([said.opened, said.asked], [1, 2]);
});

test('a tool call waits for three seconds, and whoever can wait gets the same look later', async () => {
  const { idle, clock, answer, said } = scene();
  const [patient, soon] = [idle.read(), idle.readSoon(CALM)];
  await settle();
  await clock.advance(3000);
  assert.deepEqual(await soon, { unavailable: 'no probe has answered within 3 s' });
  answer(READING);
  assert.deepEqual(await patient, READING);
  assert.deepEqual([said.asked, clock.timers], [1, 0]);
});

test('a call that is called off does not wait', async () => {
  const { idle, answer } = scene();
  const caller = new AbortController();
  const soon = idle.readSoon(caller.signal);
  await settle();
  caller.abort();
  assert.ok('unavailable' in (await soon)!);
  answer(READING);
});

test('consent that is taken back during the look takes the reading away', async () => {
  const { idle, said, answer } = scene();
  const reading = idle.readSoon(CALM);
  await settle();
  said.consent = false;
  answer(READING);
  assert.equal(await reading, undefined);
});

test('closing stops the look that is under way', async () => {
  const { idle, said } = scene();
  const reading = idle.read();
  await settle();
  await idle.close();
  assert.equal(said.stopped, true);
  assert.deepEqual(await reading, { unavailable: 'the server stops' });
});

test('probes that cannot be loaded are a reason, without what was said about it', async () => {
  const { clock } = scene();
  const profile = {
    ready: async () => {},
    read: () => ({ profile: { ...DEFAULT_PROFILE, osIdleConsent: true }, problems: [] }),
  };
  const broken = consentedIdle(profile, () => Promise.reject(new Error('idle for 1234')), clock);
  assert.deepEqual(await broken.read(), { unavailable: 'the probes could not be loaded' });
});
