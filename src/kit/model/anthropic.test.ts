import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { systemClock } from '../clock/clock.ts';
import { anthropicModel } from './anthropic.ts';
import type { ModelRequest } from './model.ts';

const KEY = 'sk-ant-canary-0123456789';

type Request = {
  path: string;
  headers: IncomingHttpHeaders;
  body: {
    system: unknown;
    messages: { role: string; content: Record<string, unknown>[] }[];
    tools?: { name: string }[];
  };
};

/** An endpoint that speaks Anthropic's messages, streamed. */
async function endpoint(t: TestContext, answer: (response: ServerResponse) => void | Promise<void>) {
  const requests: Request[] = [];
  const server = createServer(async (incoming, response) => {
    let text = '';
    for await (const part of incoming.setEncoding('utf8')) text += part;
    requests.push({ path: incoming.url ?? '', headers: incoming.headers, body: JSON.parse(text) });
    await answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return {
    requests,
    model: anthropicModel({ baseUrl, model: 'configured-model', apiKey: KEY, prefix: 'NEO', clock: systemClock }),
  };
}

function send(response: ServerResponse, type: string, members: object): void {
  response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`);
}

function begin(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const usage = { input_tokens: 11, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', content: [], model: 'served-model', usage };
  send(response, 'message_start', { message: { ...message, stop_reason: null, stop_sequence: null } });
}

function block(response: ServerResponse, index: number, contentBlock: object, ...deltas: object[]): void {
  send(response, 'content_block_start', { index, content_block: contentBlock });
  for (const delta of deltas) send(response, 'content_block_delta', { index, delta });
  send(response, 'content_block_stop', { index });
}

function end(response: ServerResponse, reason: string): void {
  send(response, 'message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 7 } });
  send(response, 'message_stop', {});
  response.end();
}

const text = (content: string) =>
  [
    { type: 'text', text: '' },
    { type: 'text_delta', text: content },
  ] as const;

function request(members: Partial<ModelRequest> = {}): ModelRequest {
  return {
    system: 'You are Neo.',
    messages: [{ role: 'user', content: 'Look.' }],
    tools: [{ name: 'fs__read', description: 'Reads.', parameters: { type: 'object', properties: {} } }],
    signal: new AbortController().signal,
    onText: () => {},
    ...members,
  };
}

test('text and calls are read from the stream; key, system and tools are sent in their places', async (t) => {
  const { model, requests } = await endpoint(t, (response) => {
    begin(response);
    block(response, 0, ...text('Let me look.'));
    const [one, other] = ['{"path":', '"/a","n":1}'].map((part) => ({ type: 'input_json_delta', partial_json: part }));
    block(response, 1, { type: 'tool_use', id: 'toolu_1', name: 'fs__read', input: {} }, one!, other!);
    end(response, 'tool_use');
  });
  const answer = await model.generate(request());
  assert.equal(answer.text, 'Let me look.');
  assert.equal(answer.model, 'served-model');
  const [call] = answer.toolCalls!;
  assert.deepEqual([call?.id, call?.name, JSON.parse(call!.input)], ['toolu_1', 'fs__read', { path: '/a', n: 1 }]);
  const [sent] = requests;
  assert.equal(sent!.path, '/v1/messages');
  assert.equal(sent!.headers['x-api-key'], KEY);
  assert.match(JSON.stringify(sent!.body.system), /You are Neo/);
  assert.deepEqual(
    sent!.body.tools?.map(({ name }) => name),
    ['fs__read'],
  );
});

test('results are sent in one message, with error marks and images; incomplete arguments become an object', async (t) => {
  const { model, requests } = await endpoint(t, (response) => {
    begin(response);
    block(response, 0, ...text('Done.'));
    end(response, 'end_turn');
  });
  const image = { mediaType: 'image/png', data: 'iVBORw0KGgo=' };
  const answer = await model.generate(
    request({
      messages: [
        { role: 'user', content: 'Look.' },
        {
          role: 'assistant',
          content: '',
          toolCalls: [
            { id: 'toolu_1', name: 'fs__read', input: '{"path":"/a"}' },
            { id: 'toolu_2', name: 'fs__read', input: '{"pa' },
          ],
        },
        { role: 'tool', callId: 'toolu_1', name: 'fs__read', content: 'a picture', images: [image], isError: false },
        { role: 'tool', callId: 'toolu_2', name: 'fs__read', content: 'not JSON', isError: true },
        { role: 'user', content: 'Go on.' },
      ],
    }),
  );
  assert.deepEqual([answer.text, answer.cutOff, answer.toolCalls], ['Done.', undefined, undefined]);
  const { messages } = requests[0]!.body;
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  );
  assert.deepEqual(
    messages[1]!.content.map(({ input }) => input),
    [{ path: '/a' }, { not_a_json_object: '{"pa' }],
  );
  const [first, second, nextText] = messages[2]!.content;
  assert.match(JSON.stringify(first), /"tool_use_id":"toolu_1".*a picture.*"media_type":"image\/png".*iVBORw0KGgo=/);
  assert.deepEqual([second?.tool_use_id, second?.is_error], ['toolu_2', true]);
  assert.equal(nextText?.text, 'Go on.');
});

test('a refused key, a limit, an outage and a cut stream have different errors, and the key is not quoted', async (t) => {
  const refusing =
    (status: number, headers: Record<string, string> = {}) =>
    (response: ServerResponse) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify({ type: 'error', error: { type: 'some_error', message: `no, ${KEY}` } }));
    };
  const cases = [
    [
      refusing(401),
      'unauthorized',
      false,
      /^the model endpoint answered 401: no, \[redacted\]; check NEO_MODEL_API_KEY$/,
    ],
    [refusing(429, { 'retry-after': '7' }), 'rate_limited', true, /^the model endpoint answered 429/],
    [refusing(529), 'unavailable', true, /^the model endpoint answered 529/],
    [
      async (response: ServerResponse) => {
        begin(response);
        await new Promise<void>((resolve) => response.write('\n', () => resolve()));
        response.destroy();
      },
      'unavailable',
      true,
      /^the answer of the model endpoint failed midway: ./,
    ],
    [
      (response: ServerResponse) => {
        begin(response);
        send(response, 'error', { error: { type: 'overloaded_error', message: `Overloaded ${KEY}` } });
        response.end();
      },
      'unavailable',
      true,
      /^the answer of the model endpoint failed midway: ./,
    ],
  ] as const;
  for (const [answer, code, retryable, expected] of cases) {
    const { model } = await endpoint(t, answer);
    await assert.rejects(model.generate(request()), (error) => {
      assert.ok(error instanceof ReveilleError, String(error));
      assert.deepEqual([error.code, error.retryable], [code, retryable], error.message);
      assert.match(error.message, expected);
      assert.ok(!error.message.includes('canary'));
      return true;
    });
  }
});
