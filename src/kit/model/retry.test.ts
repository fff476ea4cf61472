import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import type { Model, ModelRequest } from './model.ts';
import { generateWithRetries, type Retry } from './retry.ts';

function request(signal = new AbortController().signal): ModelRequest {
  return {
    system: '',
    messages: [],
    signal,
    onText: () => {},
  };
}

/** A model that rejects with each error in turn and then answers. */
function failing(...errors: unknown[]): Model & { calls: () => number } {
  let calls = 0;
  return {
    name: 'failing',
    calls: () => calls,
    generate() {
      const error = errors[calls++];
      return error === undefined ? Promise.resolve({ text: 'ok', model: 'failing' }) : Promise.reject(error);
    },
  };
}

function run(model: Model, signal?: AbortSignal) {
  const clock = new ManualClock();
  const delays: number[] = [];
  const onRetry = ({ delayMs }: Retry) => delays.push(delayMs);
  const answer = generateWithRetries(model, request(signal), { clock, onRetry });
  answer.catch(() => {});
  return { clock, delays, answer };
}

const busy = (retryAfterSeconds?: number) =>
  new ReveilleError('rate_limited', 'busy', retryAfterSeconds === undefined ? {} : { retryAfterSeconds });

test('a retryable error is tried again after 1, 2 and 4 seconds', async () => {
  const model = failing(busy(), busy(), busy());
  const { clock, delays, answer } = run(model);
  await clock.advance(999);
  assert.equal(model.calls(), 1);
  await clock.advance(6001);
  assert.equal((await answer).text, 'ok');
  assert.deepEqual(delays, [1000, 2000, 4000]);
});

test('the fourth failure is final, and its message has the number of tries', async () => {
  const model = failing(busy(), busy(), busy(), busy());
  const { clock, answer } = run(model);
  await clock.advance(60_000);
  await assert.rejects(answer, { code: 'rate_limited', message: 'busy (tried 4 times)' });
  assert.equal(model.calls(), 4);
});

test('Retry-After sets the wait, and a wait of more than a minute ends the request', async () => {
  const short = run(failing(busy(17)));
  await short.clock.advance(16_999);
  assert.deepEqual(short.delays, [17_000]);
  await short.clock.advance(1);
  assert.equal((await short.answer).text, 'ok');

  const long = run(failing(busy(3600)));
  await assert.rejects(long.answer, { message: 'busy (it requests a wait of 3600 s, which is too long for a turn)' });
});

test('a permanent error is thrown at once', async () => {
  for (const error of [new ReveilleError('unauthorized', 'no'), new TypeError('a bug')]) {
    const model = failing(error);
    await assert.rejects(run(model).answer, error);
    assert.equal(model.calls(), 1);
  }
});

test('an abort ends the wait', async () => {
  const abort = new AbortController();
  const model = failing(busy());
  const { clock, answer } = run(model, abort.signal);
  await clock.advance(10);
  abort.abort(new Error('stop'));
  await assert.rejects(answer, { message: 'stop' });
  assert.equal(model.calls(), 1);
  assert.equal(clock.timers, 0);
});
