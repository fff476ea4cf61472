import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { followStream } from './follow-stream.ts';

test('a reader that aborts between two events leaves no timer, which would keep its process alive', async () => {
  const clock = new ManualClock();
  const following = new AbortController();
  const open = () =>
    Promise.resolve(
      new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode('id: 1\nevent: tick\ndata: {}\n\n')),
      }),
    );
  const events = followStream({ open, read: (type) => type, name: 'a clock', clock }, { signal: following.signal });
  assert.equal((await events.next()).value, 'tick');
  assert.equal(clock.timers, 1);
  following.abort();
  assert.equal(clock.timers, 0);
});
