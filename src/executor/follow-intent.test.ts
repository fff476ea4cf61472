import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, settle } from '../kit/clock/testing/manual-clock.ts';
import { followIntent } from './client.ts';

const encoder = new TextEncoder();

function streamOf(...chunks: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
      controller.close();
    },
  });
}

function follow(streams: (() => ReadableStream<Uint8Array>)[]) {
  const clock = new ManualClock();
  const aborter = new AbortController();
  const follower = { hints: 0, opened: 0, clock, aborter };
  const open = async () => {
    const next = streams[follower.opened];
    follower.opened++;
    if (!next) throw new Error('no stream');
    return next();
  };
  followIntent(open, { clock, signal: aborter.signal, onHint: () => follower.hints++ });
  return follower;
}

test('each known event is a hint, however the bytes are cut; comments and unknown events are none', async () => {
  const text = ': hi\r\n\r\nevent: gate.inv|oked\ndata: {}\n\nevent: other\ndata\n\nevent:intent.attest\r|\n\r\n';
  const follower = follow([() => streamOf(...text.split('|'))]);
  await settle(20);
  assert.equal(follower.hints, 3, 'the open stream and two events');
  follower.aborter.abort();
});

test('a stream that cannot be opened is retried with growing pauses until the signal aborts', async () => {
  const follower = follow([]);
  await settle();
  assert.equal(follower.opened, 1);
  await follower.clock.advance(500);
  assert.equal(follower.opened, 2);
  await follower.clock.advance(500);
  assert.equal(follower.opened, 2);
  await follower.clock.advance(500);
  assert.equal(follower.opened, 3);
  follower.aborter.abort();
  await follower.clock.advance(60_000);
  assert.equal(follower.opened, 3);
});

test('a line without an end does not fill the memory', async () => {
  const endless = 'x'.repeat(600 * 1024);
  const follower = follow([() => streamOf(endless, endless, 'event: gate.invoked\n\n')]);
  await settle(40);
  assert.equal(follower.hints, 1, 'only that it was opened');
  follower.aborter.abort();
});
