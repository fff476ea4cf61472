import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { homeAt } from '../home/home.ts';
import { attend } from './unreachable.ts';

test('a daemon that accepts connections and does not answer is reported within 10 s', async (t) => {
  const taken: Socket[] = [];
  const mute = createServer((socket) => taken.push(socket.on('error', () => {})));
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of taken) socket.destroy();
    mute.close();
  });
  const clock = new ManualClock();
  const url = `http://127.0.0.1:${(mute.address() as AddressInfo).port}`;
  const reasons: Error[] = [];
  const work = attend({ url, home: homeAt(temporaryFolder(t)), clock })(
    (signal) =>
      new Promise<void>((resolve) =>
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason);
          resolve();
        }),
      ),
  );
  const began = clock.monotonic();
  await clock.advance(5000);
  await eventually('it gets the health query', () => taken.length > 0);
  assert.equal(reasons.length, 0);
  await clock.advance(4999);
  await work;
  assert.ok(clock.monotonic() - began < 10_000);
  assert.match(reasons[0]!.message, /^listens, but does not answer \(for \d s\): its process may be stopped/);
});
