import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../test/support/eventually.ts';
import { ManualClock } from '../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../kit/log/log.ts';
import { startPings } from './ping.ts';

test('a ping says whether due occurrences are claimed, and stops', async (t) => {
  const seen: string[] = [];
  const server = createServer(({ method, url }, response) => {
    seen.push(`${method} ${url}`);
    response.end('OK');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const clock = new ManualClock();
  let due: number | Error = 0;
  const store = {
    now: () => clock.now(),
    async countDue({ now }: { now: number }) {
      assert.equal(now, clock.now() - 60_000);
      if (due instanceof Error) throw due;
      return due;
    },
  };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/abc`;
  const stop = startPings({ url, everyMs: 60_000, store, clock, log: silentLogger });
  await eventually('the first ping', () => seen.length === 1);
  due = 1;
  await clock.advance(60_000);
  await eventually('the second ping', () => seen.length === 2);
  due = new Error('the disk is gone');
  await clock.advance(60_000);
  await eventually('the third ping', () => seen.length === 3);
  stop();
  await clock.advance(600_000);
  assert.deepEqual(seen, ['GET /abc', 'GET /abc/fail', 'GET /abc/fail']);
});
