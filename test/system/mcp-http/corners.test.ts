/** Messages that unusual or faulty clients send: each has one answer, over stdio and over HTTP. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sharedOwner } from '../../support/temporary.ts';
import { type McpProcess, spawnMcp } from '../chronos-mcp/mcp-process.ts';
import { type McpHttpBench, startMcpHttp } from './mcp-http-bench.ts';

type Corner = {
  readonly sent: string | Buffer;
  /** The answer: its text, or a pattern. `undefined`: the message is not answered. */
  readonly answer: string | RegExp | undefined;
  /** The status over HTTP; by default 200, or 202 without an answer. */
  readonly status?: number;
};

const pong = (id: string) => `{"result":{},"jsonrpc":"2.0","id":${id}}`;
const error = (id: string, code: number, message: string) =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":${JSON.stringify(message)}}}`;
const request = (method: string, params?: string, id = '1') =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}"${params === undefined ? '' : `,"params":${params}`}}`;
const ping = (id: string) => request('ping', undefined, id);
const hello = (version: string) =>
  `{"protocolVersion":"${version}","capabilities":{},"clientInfo":{"name":"test","version":"0"}}`;

const LARGE = '12345678901234567890';
const invalid = (what: string, sent: string, message: string, id = '1'): [string, Corner] => [
  what,
  { sent, answer: error(id, -32_602, message) },
];
const refused = (
  what: string,
  sent: string | Buffer,
  message: string,
  id = 'null',
  code = -32_600,
): [string, Corner] => [what, { sent, answer: error(id, code, message), status: 400 }];
const answered = (what: string, sent: string | Buffer, answer: string | RegExp): [string, Corner] => [
  what,
  { sent, answer },
];
const silent = (what: string, sent: string): [string, Corner] => [what, { sent, answer: undefined }];

const RESPONSE_OR_METHOD =
  'a message must have a method, or be the response to a request: with jsonrpc, id, and result or error';
const alone =
  'a batch of messages needs protocol revision 2025-03-26 (this client uses "2025-11-25"); send each message alone';
const TOOLS = /^{"result":{"tools":\[{"name":"alarm_set"/;
const batch = (...members: readonly string[]) => `[${members.join(',')}]`;

const ANY_REVISION: readonly [string, Corner][] = [
  answered('a ping', ping('1'), pong('1')),
  answered('a byte order mark', Buffer.from(`\ufeff${ping('1')}`), pong('1')),
  answered('a carriage return before the line feed', `${ping('1')}\r`, pong('1')),
  refused('UTF-16', Buffer.from(`\ufeff${ping('1')}`, 'utf16le'), 'a message must be JSON in UTF-8', 'null', -32_700),
  refused(
    'half of a surrogate pair in UTF-8',
    Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
    'a message must be JSON in UTF-8',
    'null',
    -32_700,
  ),
  refused('text that is not JSON', '{"jsonrpc":"2.0",', 'a message must be JSON in UTF-8', 'null', -32_700),
  answered('an id beyond the precision of numbers', ping(LARGE), pong(LARGE)),
  answered('a negative one', ping(`-${LARGE}`), pong(`-${LARGE}`)),
  answered('an id with an exponent', ping('1e2'), pong('1e2')),
  answered(
    'such an id of an unknown method',
    request('nope', undefined, LARGE),
    error(LARGE, -32_601, 'Method not found'),
  ),
  invalid('such an id of invalid params', request('ping', '[]', LARGE), 'params must be an object', LARGE),
  answered('an id with an escaped half of a surrogate pair', ping('"\\ud800"'), pong('"\\ud800"')),
  answered('an empty id', ping('""'), pong('""')),
  answered('an id that looks like a number', ping(`"${LARGE}"`), pong(`"${LARGE}"`)),
  answered('two ids: the last one counts', `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, pong('2')),
  refused('an id that is a fraction', ping('1.5'), 'id must be a string or a whole number', '1.5'),
  refused('an id that is null', ping('null'), 'id must be a string or a whole number'),
  refused('an id that is an object', ping('{"a":1}'), 'id must be a string or a whole number'),
  silent('a notification with the id null', request('notifications/initialized', undefined, 'null')),
  silent('an unknown notification', '{"jsonrpc":"2.0","method":"notifications/nope","params":[1]}'),
  silent(
    'a cancellation of an unknown request',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}',
  ),
  silent('a response to no request', '{"jsonrpc":"2.0","id":5,"result":{}}'),
  refused('jsonrpc is absent', '{"id":1,"method":"ping"}', 'jsonrpc must be "2.0"', '1'),
  refused('jsonrpc is a number', '{"jsonrpc":2.0,"id":1,"method":"ping"}', 'jsonrpc must be "2.0"', '1'),
  refused('method is a number', '{"jsonrpc":"2.0","id":1,"method":5}', 'method must be a string', '1'),
  refused('method is absent', '{"jsonrpc":"2.0","id":1}', RESPONSE_OR_METHOD),
  refused('a number', '17', 'a message must be a JSON object'),
  answered('an unknown member', '{"jsonrpc":"2.0","id":1,"method":"ping","trace":"x"}', pong('1')),
  answered('params is null', request('tools/list', 'null'), TOOLS),
  answered('cursor is null', request('tools/list', '{"cursor":null}'), TOOLS),
  answered('progressToken is null', request('tools/list', '{"_meta":{"progressToken":null}}'), TOOLS),
  answered(
    'arguments is null',
    request('tools/call', '{"name":"alarm_list","arguments":null}'),
    /^{"result":{"content":\[{"type":"text","text":"(?!.*arguments)/,
  ),
  invalid('params is a list', request('tools/list', '[]'), 'params must be an object'),
  invalid('cursor is a number', request('tools/list', '{"cursor":5}'), 'params.cursor must be a string'),
  invalid('_meta is a number', request('nope', '{"_meta":5}'), 'params._meta must be an object'),
  invalid('a call without params', request('tools/call'), 'params is required'),
  invalid(
    'arguments that are a list',
    request('tools/call', '{"name":"alarm_list","arguments":[]}'),
    'params.arguments must be an object',
  ),
  invalid('a call without a name', request('tools/call', '{"arguments":{}}'), 'params.name is required'),
  invalid(
    'a call of an unknown tool',
    request('tools/call', '{"name":"nope"}'),
    'unknown tool "nope"; the tools are alarm_set, alarm_list, alarm_cancel',
  ),
  invalid(
    'deep nesting',
    request('tools/list', `{"x":${'['.repeat(200)}${']'.repeat(200)}}`),
    'params must not nest lists and objects more than 128 deep, counted from the outside of the message',
  ),
  invalid(
    'capabilities that are not objects',
    request('initialize', hello('2025-11-25').replace('{}', '{"roots":true}')),
    'params.capabilities.roots must be an object',
  ),
  answered(
    'an unknown revision',
    request('initialize', hello('1999-01-01')),
    /^{"result":{"protocolVersion":"2025-11-25"/,
  ),
  answered(
    'a second handshake',
    request('initialize', hello('2025-11-25')),
    /^{"result":{"protocolVersion":"2025-11-25"/,
  ),
];

const CORNERS: Readonly<Record<string, readonly [string, Corner][]>> = {
  '2025-11-25': [...ANY_REVISION, refused('a batch', batch(ping('1')), alone), refused('an empty batch', '[]', alone)],
  '2025-03-26': [
    answered('a batch of one', batch(ping('1')), `[${pong('1')}]`),
    answered(
      'ids in a batch',
      batch(ping(LARGE), ping('"a"'), ping('1')),
      `[${[LARGE, '"a"', '1'].map(pong).join(',')}]`,
    ),
    answered('equal ids in a batch', batch(ping('1'), ping('1')), `[${pong('1')},${pong('1')}]`),
    silent(
      'a batch of notifications',
      batch('{"jsonrpc":"2.0","method":"notifications/nope"}', '{"jsonrpc":"2.0","method":"notifications/nope"}'),
    ),
    answered(
      'a notification in a batch',
      batch('{"jsonrpc":"2.0","method":"notifications/nope"}', ping('1')),
      `[${pong('1')}]`,
    ),
    answered(
      'a faulty message in a batch',
      batch('17', ping('1'), request('ping', '[]', LARGE)),
      new RegExp(
        `^\\[(?=.*"id":null,"error":{"code":-32600)(?=.*${pong('1').replace(/[{}]/g, '\\$&')})(?=.*"id":${LARGE},"error":{"code":-32602).*\\]$`,
      ),
    ),
    answered(
      'a handshake in a batch',
      batch(request('initialize', hello('2025-03-26'))),
      `[${error('1', -32_600, 'initialize must not be part of a batch')}]`,
    ),
    refused('an empty batch', '[]', 'a batch must have at least one message'),
    refused(
      'a batch of 101',
      batch(...Array.from({ length: 101 }, () => ping('1'))),
      'a batch must have at most 100 messages (got 101)',
    ),
  ],
  // As the HTTP transport has it, a client that names no revision is one of 2025-03-26.
  none: [
    answered('a ping before the handshake', ping('1'), pong('1')),
    answered('a batch', batch(ping('1')), `[${pong('1')}]`),
    refused('an empty batch', '[]', 'a batch must have at least one message'),
    answered('a list before the handshake', request('tools/list'), TOOLS),
  ],
};

const UNREACHABLE = { MATRIX_CHRONOS_URL: 'http://127.0.0.1:1', MATRIX_CHRONOS_TOKEN: 'unused', MATRIX_USER_ID: 'ada' };

function check(given: string | undefined, { answer }: Corner): void {
  if (given === undefined || answer === undefined) assert.equal(given, answer);
  else if (typeof answer === 'string') assert.deepEqual(JSON.parse(given), JSON.parse(answer));
  else assert.match(given, answer);
  // The order of members is not fixed; the digits of ids are.
  if (typeof answer === 'string') assert.deepEqual(given!.match(/"id":[^,}]*/g), answer.match(/"id":[^,}]*/g));
}

for (const [revision, corners] of Object.entries(CORNERS)) {
  describe(`over stdio, revision ${revision}`, () => {
    let mcp: McpProcess;
    before(async () => {
      mcp = spawnMcp(UNREACHABLE);
      if (revision !== 'none') await mcp.request('initialize', hello(revision));
    });
    after(() => mcp.kill());

    for (const [what, corner] of corners)
      test(what, async () => {
        mcp.write(corner.sent);
        check(corner.answer === undefined ? undefined : await mcp.nextLine(), corner);
        mcp.write(ping('"the next one"'));
        assert.equal(await mcp.nextLine(), pong('"the next one"'));
      });
  });

  describe(`over HTTP, revision ${revision}`, () => {
    const owner = sharedOwner();
    let bench: McpHttpBench;
    let authorization: string;
    before(async () => {
      bench = await startMcpHttp(owner);
      authorization = `Bearer ${await bench.token()}`;
    });
    after(() => owner.end());

    for (const accept of ['application/json, text/event-stream', 'application/json'])
      for (const [what, corner] of corners)
        test(`${what} (${accept})`, async () => {
          const { status, text } = await bench.send('/mcp/chronos', {
            method: 'POST',
            headers: {
              ...{ 'content-type': 'application/json', authorization, accept },
              ...(revision !== 'none' && { 'mcp-protocol-version': revision }),
            },
            body: corner.sent,
          });
          const { answer, status: expected = answer === undefined ? 202 : 200 } = corner;
          assert.equal(status, expected, text);
          const json = /^data: (.*)$/m.exec(text)?.[1] ?? text;
          check(json === '' ? undefined : json, corner);
        });
  });
}
