import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReveilleError } from '../wire/errors.ts';
import type { Daemon, OnProgress } from './providers/provider.ts';
import { Startup, SUPERSEDED } from './startup.ts';
import { ShiftingClock } from './testing/shifting-clock.ts';

const daemon: Daemon = { url: 'http://127.0.0.1:1', gone: new AbortController().signal, cold: true };

/** A start with a provider that the test controls. */
function begin() {
  const clock = new ShiftingClock();
  const provider = Promise.withResolvers<Daemon | undefined>();
  const events: string[] = [];
  const late: ReveilleError[] = [];
  let onProgress: OnProgress = () => {};
  let signal = new AbortController().signal;
  const startup = new Startup({
    run: (given, report) => {
      signal = given;
      onProgress = report;
      return provider.promise;
    },
    clock,
    limitMs: 5000,
    onLate: (error) => late.push(error),
    onReady: (ready) => events.push(ready ? 'ready' : 'nothing there'),
    onFailed: () => events.push('failed'),
  });
  return { clock, provider, events, late, startup, onProgress, signal };
}

test('a start that succeeds reports its duration; one that found a daemon, or none, reports 0', async () => {
  for (const [found, took] of [
    [daemon, 3000],
    [{ ...daemon, cold: false }, 0],
    [undefined, 0],
  ] as const) {
    const { clock, provider, events, startup } = begin();
    clock.advance(3000);
    provider.resolve(found);
    const ms = await startup.outcome;
    assert.ok(ms >= took && (took > 0 || ms === 0), `${ms}`);
    assert.deepEqual(events, [found ? 'ready' : 'nothing there']);
  }
});

test('a start that fails notifies its supervisor before its waiters', async () => {
  const { provider, events, startup } = begin();
  const waiting = startup.outcome.catch((thrown: unknown) => {
    assert.deepEqual(events, ['failed']);
    throw thrown;
  });
  provider.reject(new Error('no such image'));
  await assert.rejects(waiting, { code: 'internal' });
  await startup.settled;
});

test('a cancelled start answers at once, and its late success is ignored', async () => {
  const { provider, events, startup, signal } = begin();
  startup.cancel(SUPERSEDED);
  assert.equal(await startup.outcome, 0);
  assert.equal(signal.reason, SUPERSEDED);
  provider.resolve(daemon);
  await startup.settled;
  assert.deepEqual(events, []);
});

test('a start that takes too long reports its last progress, and rejects with it when cancelled', async () => {
  const { clock, provider, late, startup, onProgress } = begin();
  onProgress('the machine is replacing');
  assert.equal(startup.waitsFor, 'the machine is replacing');
  clock.advance(5000);
  assert.equal(late.length, 1);
  startup.cancel(late[0]!);
  const message = 'starting the machine took longer than 5000 ms and was given up: the machine is replacing';
  await assert.rejects(startup.outcome, { code: 'unavailable', status: 504, message });
  provider.reject(late[0]);
  await startup.settled;
});
