import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { systemClock } from '../clock/clock.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import type { ModelRequest } from './model.ts';
import { openAICompatibleModel } from './openai-compatible.ts';
import type { EndpointOptions } from './streamed.ts';
import {
  beginStream,
  breakingOff,
  endStream,
  modelEndpoint,
  refusing,
  type Script,
  saying,
  sendPiece,
} from './testing/model-endpoint.ts';

const KEY = 'sk-canary-0123456789';

function request(members: Partial<ModelRequest> = {}): ModelRequest {
  return {
    system: 'You are Neo.',
    messages: [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'three \0 𝒳  ' },
    ],
    signal: new AbortController().signal,
    onText: () => {},
    ...members,
  };
}

async function endpointAndModel(t: TestContext, script: Script, options: Partial<EndpointOptions> = {}) {
  const endpoint = await modelEndpoint(t, script);
  const { baseUrl } = endpoint;
  const model = openAICompatibleModel({
    baseUrl,
    model: 'configured-model',
    apiKey: KEY,
    prefix: 'NEO',
    clock: systemClock,
    ...options,
  });
  return { endpoint, model };
}

async function errorOf(answer: Promise<unknown>): Promise<ReveilleError> {
  const error = await answer.then(
    () => assert.fail('it was answered'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ReveilleError, String(error));
  assert.ok(!JSON.stringify([error.message, error.stack]).includes('canary'));
  return error;
}

test('a streamed answer arrives in pieces, with the reported model and token counts', async (t) => {
  const { endpoint, model } = await endpointAndModel(t, saying('Good', ' morning', ' 𝒳'));
  const pieces: string[] = [];
  const answer = await model.generate(request({ onText: (piece) => pieces.push(piece) }));
  assert.deepEqual(answer, {
    text: 'Good morning 𝒳',
    model: 'served-model',
    usage: { inputTokens: 11, outputTokens: 7 },
  });
  assert.deepEqual(pieces, ['Good', ' morning', ' 𝒳']);
  const [sent] = endpoint.requests;
  assert.equal(sent!.path, '/v1/chat/completions');
  assert.equal(sent!.headers.authorization, `Bearer ${KEY}`);
  assert.equal(sent!.body.model, 'configured-model');
  assert.equal(sent!.body.stream, true);
  assert.deepEqual(sent!.body.messages, [
    { role: 'system', content: 'You are Neo.' },
    { role: 'user', content: 'one' },
    { role: 'assistant', content: 'two' },
    { role: 'user', content: 'three \0 𝒳  ' },
  ]);
});

test('a local endpoint needs no key', async (t) => {
  const { endpoint, model } = await endpointAndModel(t, saying('ok'), { apiKey: undefined });
  assert.equal((await model.generate(request())).text, 'ok');
  assert.equal(endpoint.requests[0]!.headers.authorization, undefined);
});

test('a refused key is not retryable, names the variable to check, and is not quoted', async (t) => {
  const { endpoint, model } = await endpointAndModel(t, refusing(401, `Incorrect API key provided: ${KEY}.`));
  const error = await errorOf(model.generate(request()));
  assert.equal(error.code, 'unauthorized');
  assert.equal(error.retryable, false);
  assert.equal(
    error.message,
    'the model endpoint answered 401: Incorrect API key provided: [redacted].; check NEO_MODEL_API_KEY',
  );
  assert.equal(endpoint.requests.length, 1);
});

test('the error for 429 has the value of Retry-After', async (t) => {
  const { model } = await endpointAndModel(t, refusing(429, 'slow down', { 'retry-after': '2' }));
  const error = await errorOf(model.generate(request()));
  assert.deepEqual([error.code, error.retryable, error.retryAfterSeconds], ['rate_limited', true, 2]);
});

test('the error of a failing endpoint is retryable, and the request is not repeated', async (t) => {
  const { endpoint, model } = await endpointAndModel(t, refusing(503, 'overloaded'));
  const error = await errorOf(model.generate(request()));
  assert.deepEqual([error.code, error.retryable], ['unavailable', true]);
  assert.match(error.message, /^the model endpoint answered 503: overloaded/);
  assert.equal(endpoint.requests.length, 1);
});

test('an answer that is not JSON is reported with its status', async (t) => {
  const { model } = await endpointAndModel(t, (response) => {
    response.writeHead(502, { 'content-type': 'text/html' });
    response.end('<h1>Bad Gateway</h1>');
  });
  assert.match((await errorOf(model.generate(request()))).message, /^the model endpoint answered 502: Bad Gateway/);
});

test('the error of an unreachable endpoint is retryable', async (t) => {
  const { model } = await endpointAndModel(t, saying('x'), { baseUrl: 'http://127.0.0.1:1/v1' });
  const error = await errorOf(model.generate(request()));
  assert.match(error.message, /^the model endpoint cannot be reached: /);
  assert.equal(error.retryable, true);
});

test('the error of a cut, incomplete, malformed or failed stream is retryable', async (t) => {
  const scripts: Script[] = [
    breakingOff('half'),
    (response) => {
      beginStream(response);
      sendPiece(response, 'half');
      response.end();
    },
    (response) => {
      beginStream(response);
      response.end('data: {"choices": [\n\n');
    },
    (response) => {
      beginStream(response);
      response.end(`data: ${JSON.stringify({ error: { message: `overloaded ${KEY}` } })}\n\n`);
    },
    saying(),
  ];
  for (const script of scripts) {
    const { model } = await endpointAndModel(t, script);
    const error = await errorOf(model.generate(request()));
    assert.deepEqual([error.code, error.retryable], ['unavailable', true], error.message);
    assert.match(error.message, /^the answer of the model endpoint failed midway: ./);
  }
});

test('an answer that the endpoint ended early has the reason', async (t) => {
  const { model } = await endpointAndModel(t, (response) => {
    beginStream(response);
    sendPiece(response, 'as far as');
    endStream(response, 'length');
  });
  const answer = await model.generate(request());
  assert.equal(answer.text, 'as far as');
  assert.equal(answer.cutOff, 'the model reached its output limit before it finished');
});

test('a request without data or without an end is aborted', async (t) => {
  for (const [limits, expected] of [
    [{ silenceMs: 5000 }, 'sent nothing for 5 s'],
    [{ totalMs: 9000 }, 'did not finish within 9 s'],
  ] as const) {
    const clock = new ManualClock();
    const started = Promise.withResolvers<void>();
    const { endpoint, model } = await endpointAndModel(
      t,
      (response) => {
        beginStream(response);
        sendPiece(response, 'wait');
      },
      { clock, ...limits },
    );
    const failure = errorOf(model.generate(request({ onText: () => started.resolve() })));
    await started.promise;
    await clock.advance(10_000);
    const error = await failure;
    assert.deepEqual([error.code, error.retryable], ['unavailable', true]);
    assert.match(error.message, new RegExp(expected));
    await endpoint.requests[0]!.gone;
    assert.equal(clock.timers, 0);
  }
});

test('each piece of a slow stream restarts the silence timeout', async (t) => {
  const clock = new ManualClock();
  const pieces: string[] = [];
  let heard = Promise.withResolvers<void>();
  let respond: Parameters<Script>[0] | undefined;
  const { model } = await endpointAndModel(
    t,
    (response) => {
      respond = response;
      beginStream(response);
      sendPiece(response, 'a');
    },
    { clock, silenceMs: 5000 },
  );
  const onText = (piece: string) => {
    pieces.push(piece);
    heard.resolve();
  };
  const answer = model.generate(request({ onText }));
  for (const piece of ['b', 'c', 'd']) {
    await heard.promise;
    heard = Promise.withResolvers<void>();
    await clock.advance(4000);
    sendPiece(respond!, piece);
  }
  await heard.promise;
  endStream(respond!);
  assert.equal((await answer).text, 'abcd');
});

test('an abort ends the request at the endpoint', async (t) => {
  const abort = new AbortController();
  const { endpoint, model } = await endpointAndModel(t, (response) => {
    beginStream(response);
    sendPiece(response, 'wait');
  });
  const answer = model.generate(request({ signal: abort.signal, onText: () => abort.abort(new Error('Neo stops')) }));
  await assert.rejects(answer, { message: 'Neo stops' });
  await endpoint.requests[0]!.gone;
});

test('an endless answer is aborted', async (t) => {
  const { endpoint, model } = await endpointAndModel(t, async (response, { gone }) => {
    beginStream(response);
    const over = gone.then(() => true);
    while (!(await Promise.race([over, new Promise((resolve) => setImmediate(resolve, false))]))) {
      sendPiece(response, 'x'.repeat(16_384));
    }
  });
  const error = await errorOf(model.generate(request()));
  assert.match(error.message, /longer than 262144 characters/);
  assert.equal(error.retryable, false);
  await endpoint.requests[0]!.gone;
});

test('a redirect is not followed', async (t) => {
  const elsewhere = await modelEndpoint(t, saying('caught'));
  const { model } = await endpointAndModel(t, (response) => {
    response.writeHead(307, { location: `${elsewhere.baseUrl}/chat/completions` });
    response.end();
  });
  assert.match((await errorOf(model.generate(request()))).message, /^the model endpoint answered 307/);
  assert.equal(elsewhere.requests.length, 0);
});
