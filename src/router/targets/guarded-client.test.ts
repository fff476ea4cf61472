import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { atEnd } from '../testing/bench.ts';
import { call } from './call.ts';
import { GuardedClient, RefusedAddress } from './guarded-client.ts';

type Address = { address: string; family: number };

/** A receiver on this computer, and a client whose names lead where the test says, one answer after the other. */
async function start(t: TestContext, answers: (Address[] | Error)[]) {
  let received = 0;
  const server = createServer((_, response) => {
    received++;
    response.setHeader('connection', 'close').end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(t, () => server.close());
  let asked = 0;
  const client = new GuardedClient((_, done) => {
    const answer = answers[Math.min(asked++, answers.length - 1)]!;
    if (answer instanceof Error) done(answer, []);
    else done(null, answer);
  });
  atEnd(t, () => client.close());
  const url = new URL(`http://receiver.example:${(server.address() as AddressInfo).port}/`);
  const post = (allowPrivate: boolean) =>
    call(client.dispatcher(allowPrivate), {
      ...{ method: 'POST', url, headers: {}, body: '{}', secrets: [] },
      signal: new AbortController().signal,
    });
  return { post, received: () => received, asked: () => asked };
}

const here = { address: '127.0.0.1', family: 4 };
const there = { address: '203.0.114.1', family: 4 };

test('a name that leads to a private address is refused before a connection is made', async (t) => {
  const { post, received } = await start(t, [[here]]);
  const answer = await post(false);
  assert.equal(answer.result, 'unsent');
  assert.ok(answer.result === 'unsent' && answer.error instanceof RefusedAddress);
  assert.equal(received(), 0);
});

test('one private address among public ones is enough', async (t) => {
  const { post, received } = await start(t, [[there, here]]);
  assert.equal((await post(false)).result, 'unsent');
  assert.equal(received(), 0);
});

test('the connection goes to the address that was looked at, and a name is looked up once for it', async (t) => {
  // A resolver that answers well the first time and otherwise the second: what was checked is what is used.
  const { post, received, asked } = await start(t, [[here], [{ address: '169.254.169.254', family: 4 }]]);
  const first = await post(true);
  assert.equal(first.result, 'answered');
  assert.equal(asked(), 1);
  const second = await post(true);
  assert.ok(second.result === 'unsent' && second.error instanceof RefusedAddress);
  assert.equal(received(), 1);
});

test('a name that does not resolve is an error of its own', async (t) => {
  const { post } = await start(t, [new Error('getaddrinfo ENOTFOUND receiver.example')]);
  const answer = await post(false);
  assert.ok(answer.result === 'unsent' && /ENOTFOUND/.test(answer.why) && !(answer.error instanceof RefusedAddress));
  const { post: empty } = await start(t, [[]]);
  assert.equal((await empty(false)).result, 'unsent');
});
