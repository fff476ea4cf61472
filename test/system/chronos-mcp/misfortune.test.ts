import assert from 'node:assert/strict';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { type StandInChronosd, startStandInChronosd } from '../../support/stand-ins/chronosd.ts';
import { type AgentFiles, makeAgentFiles } from './agent-files.ts';
import { type McpProcess, spawnMcp } from './mcp-process.ts';

let chronosd: StandInChronosd;
let agent: AgentFiles;
let mcp: McpProcess;
before(async () => {
  chronosd = await startStandInChronosd();
});
after(() => chronosd.close());
beforeEach(() => {
  agent = makeAgentFiles();
});
afterEach(() => {
  chronosd.misbehave = undefined;
  mcp.kill();
  agent.remove();
});

async function start(env: Record<string, string> = {}): Promise<void> {
  mcp = spawnMcp({ ...agent.envFor(chronosd), ...env });
  await mcp.initialize();
}

type Failure = { code: string; message: string; retryable: boolean };

async function failureOf(name: string, argumentsJson: string): Promise<Failure> {
  const { answer } = await mcp.request('tools/call', `{"name":"${name}","arguments":${argumentsJson}}`);
  assert.equal(answer.result?.isError, true, JSON.stringify(answer));
  const failure = answer.result.structuredContent as Failure;
  assert.deepEqual(JSON.parse(answer.result.content[0].text), failure);
  return failure;
}

async function stillServes(): Promise<void> {
  const { answer } = await mcp.request('tools/list', '{}');
  assert.equal(answer.result.tools.length, 3);
}

/** Sends a call, number 99, that chronosd never answers. Resolves when it has arrived, with its fate. */
function callThatHangs(): Promise<{ givenUp: Promise<void> }> {
  const arrived = new Promise<{ givenUp: Promise<void> }>((resolve) => {
    chronosd.misbehave = (request, response) => {
      if (request.method !== 'GET') return false;
      resolve({ givenUp: new Promise((closed) => response.once('close', closed)) });
      return true;
    };
  });
  mcp.write('{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"alarm_list","arguments":{}}}');
  return arrived;
}

const SET = '{"kind":"once","wake_message":"x","delay_seconds":60}';

describe('input on stdin', () => {
  test('garbage gets a parse error, and the server continues', async () => {
    await start();
    const lines: (string | Buffer)[] = [
      'hello',
      '{"jsonrpc":',
      '\u0000',
      Buffer.from([0xff, 0xfe, 0x7b]),
      '{"a":"\ud800',
    ];
    for (const line of lines) {
      mcp.write(line);
      assert.equal((JSON.parse(await mcp.nextLine()) as { error: { code: number } }).error.code, -32700);
    }
    mcp.write('');
    mcp.write('   \r');
    await stillServes();
  });

  test('JSON that is not a message is answered under its id where it has one, with all digits', async () => {
    await start();
    const lines: [line: string, answerStart: string][] = [
      ['17', '{"jsonrpc":"2.0","id":null,"error":{"code":-32600'],
      ['{"jsonrpc":"1.0","id":"a","method":"ping"}', '{"jsonrpc":"2.0","id":"a","error":{"code":-32600'],
      [
        '{"jsonrpc":"1.0","id":12345678901234567890,"method":"ping"}',
        '{"jsonrpc":"2.0","id":12345678901234567890,"error"',
      ],
    ];
    for (const [line, answerStart] of lines) {
      mcp.write(line);
      const answer = await mcp.nextLine();
      assert.ok(answer.startsWith(answerStart), `${line} got ${answer}`);
    }
    await stillServes();
  });

  test('a 10 MB message is read and refused for its actual fault', async () => {
    await start();
    const failure = await failureOf('alarm_set', `{"kind":"once","wake_message":"${'x'.repeat(10_000_000)}"}`);
    assert.match(failure.message, /wake_message must be at most 65536 bytes of UTF-8, it has 10000000/);
    assert.ok(failure.message.length < 1000);
    await stillServes();
  });

  test('a message beyond the limit is dropped without being buffered, and the server continues', async () => {
    await start();
    const megabyte = 'x'.repeat(1024 * 1024);
    mcp.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"');
    for (let written = 0; written < 20; written++) mcp.child.stdin.write(megabyte);
    mcp.write('"}');
    assert.match(await mcp.nextLine(), /"code":-32600,"message":"a message must have at most 16777216 bytes/);
    await stillServes();
  });

  test('deep nesting is refused by a result that says so, wherever it is, and always answered', async () => {
    await start();
    for (const levels of [200, 30_000, 1_000_000]) {
      const deep = `${'['.repeat(levels)}${']'.repeat(levels)}`;
      const set = `{"kind":"once","wake_message":"x","delay_seconds":60,"payload":${deep}}`;
      for (const given of [set, `{"kind":${deep}}`]) {
        const { answer } = await mcp.request('tools/call', `{"name":"alarm_set","arguments":${given}}`);
        assert.equal(answer.result?.isError, true, JSON.stringify(answer).slice(0, 300));
        assert.match(answer.result.content[0].text, /nest|deep/, answer.result.content[0].text.slice(0, 300));
      }
    }
    await stillServes();
  });

  test('unknown tools and unknown methods are protocol errors', async () => {
    await start();
    const unknown = await mcp.request('tools/call', '{"name":"alarm_snooze","arguments":{}}');
    assert.equal(unknown.answer.error?.code, -32602);
    assert.match(unknown.answer.error?.message ?? '', /alarm_set, alarm_list, alarm_cancel/);
    for (const name of ['constructor', '__proto__', '']) {
      const { answer } = await mcp.request('tools/call', JSON.stringify({ name, arguments: {} }));
      assert.equal(answer.error?.code, -32602, name);
    }
    assert.equal((await mcp.request('alarms/ring', '{}')).answer.error?.code, -32601);
    await stillServes();
  });
});

describe('when chronosd is faulty', () => {
  test('no listener: unavailable, with the address and the remedy', async () => {
    await start({ MATRIX_CHRONOS_URL: 'http://127.0.0.1:1' });
    const failure = await failureOf('alarm_list', '{}');
    assert.deepEqual([failure.code, failure.retryable], ['unavailable', true]);
    assert.match(failure.message, /http:\/\/127\.0\.0\.1:1 .*reveille up/);
  });

  test('it hangs: unavailable after the timeout', async () => {
    await start({ MATRIX_CHRONOS_TIMEOUT_MS: '300' });
    chronosd.misbehave = () => true;
    assert.match((await failureOf('alarm_set', SET)).message, /did not answer within 300 ms/);
    await stillServes();
  });

  test('one hanging call delays no other', async () => {
    await start();
    await callThatHangs();
    const { answer } = await mcp.request('tools/call', `{"name":"alarm_set","arguments":${SET}}`);
    assert.equal(answer.result.isError, undefined);
  });

  test('it resets the connection, answers HTML, or another error: each has its code and sentence', async () => {
    await start();
    const cases: [answer: (response: ServerResponse) => void, code: string, says: RegExp][] = [
      [(response) => response.destroy(), 'unavailable', /closed the connection before it answered .*idempotency_key/],
      [(response) => response.end('<!doctype html><p>hi'), 'unavailable', /not an envelope; it is unknown/],
      // Of a proxy that lost the answer, and of one that passed nothing on.
      ...[502, 503, 504].map((status): [(response: ServerResponse) => void, string, RegExp] => [
        (response) => response.writeHead(status).end('<h1>Bad Gateway</h1>'),
        'unavailable',
        new RegExp(
          `${status} with a body .*; it is unknown whether the request .* same idempotency_key; without one, list`,
        ),
      ]),
      [
        (response) => response.writeHead(404).end('<h1>Not here</h1>'),
        'unavailable',
        /404 with a body that is not an envelope$/,
      ],
      [
        (response) =>
          response
            .writeHead(409)
            .end('{"ok":false,"error":{"code":"conflict","message":"differs in label","retryable":false}}'),
        'conflict',
        /^differs in label$/,
      ],
      [
        (response) =>
          response
            .writeHead(503)
            .end('{"ok":false,"error":{"code":"unavailable","message":"disk full","retryable":true}}'),
        'unavailable',
        /^disk full$/,
      ],
    ];
    for (const [answer, code, text] of cases) {
      chronosd.misbehave = (request, response) => {
        if (request.method !== 'POST' || request.url !== '/v1/alarms') return false;
        answer(response);
        return true;
      };
      const failure = await failureOf('alarm_set', SET);
      assert.equal(failure.code, code);
      assert.match(failure.message, text);
    }
  });

  test('it refuses the proof: reported once, not retried, and without the key or the tokens', async () => {
    await start();
    chronosd.seen.length = 0;
    chronosd.misbehave = (request, response) => {
      if (!request.url?.endsWith('/verify')) return false;
      response
        .writeHead(403)
        .end('{"ok":false,"error":{"code":"forbidden","message":"not enrolled","retryable":false}}');
      return true;
    };
    assert.deepEqual(await failureOf('alarm_list', '{}'), {
      code: 'forbidden',
      message: 'not enrolled',
      retryable: false,
    });
    assert.equal(chronosd.seen.length, 2);
    assert.equal(await mcp.end(), 0);
    assert.doesNotMatch(mcp.stderr(), new RegExp(chronosd.token));
  });

  test('an action that fails after an edit says that the edit has been made', async () => {
    await start();
    const id = '01a206a3-09b9-75e1-9cfa-bb6341bc3a57';
    chronosd.misbehave = ({ method, url }, response) => {
      if (method !== 'PATCH' && !url?.endsWith('/trigger')) return false;
      const refused = '{"ok":false,"error":{"code":"conflict","message":"it has ended","retryable":false}}';
      response.writeHead(method === 'PATCH' ? 200 : 409, { 'content-type': 'application/json' });
      response.end(method === 'PATCH' ? `{"ok":true,"data":{"id":"${id}"}}` : refused);
      return true;
    };
    const failure = await failureOf('alarm_set', `{"alarm_id":"${id}","label":"x","action":"trigger"}`);
    assert.deepEqual(failure, {
      ...{ code: 'conflict', retryable: false },
      message: 'it has ended; the edit of its fields has been made, trigger has not',
    });
    assert.equal((await failureOf('alarm_set', `{"alarm_id":"${id}","action":"trigger"}`)).message, 'it has ended');
  });

  test('a list that exceeds an MCP message is refused with the remedy', async () => {
    await start();
    chronosd.misbehave = (request, response) => {
      if (request.method !== 'GET') return false;
      const view = { id: 'a', wake_message: '\u0001'.repeat(65_536) };
      const alarms = Array.from({ length: 12 }, () => view);
      response.end(JSON.stringify({ ok: true, data: { alarms, count: 12 } }));
      return true;
    };
    const failure = await failureOf('alarm_list', '{"full":true}');
    assert.equal(failure.code, 'invalid_request');
    assert.match(failure.message, /smaller limit/);
  });
});

describe('the key file and the settings', () => {
  test('a key that others can read, an invalid key and a missing key have different errors at the call', async () => {
    await start();
    assert.equal((await mcp.request('tools/call', '{"name":"alarm_list"}')).answer.result.isError, undefined);
    chmodSync(agent.keyFile, 0o644);
    const open = await failureOf('alarm_list', '{}');
    assert.deepEqual([open.code, /chmod 600/.test(open.message)], ['forbidden', true]);
    rmSync(agent.keyFile);
    const missing = await failureOf('alarm_list', '{}');
    assert.equal(missing.code, 'not_found');
    assert.ok(missing.message.includes(agent.keyFile));
    writeFileSync(agent.keyFile, 'deadbeef', { mode: 0o600 });
    const short = await failureOf('alarm_list', '{}');
    assert.match(short.message, /64 hex/);
    assert.doesNotMatch(short.message, /deadbeef/);
  });

  test('without settings a call names the remedy; settings of this machine are found without a restart', async () => {
    mcp = spawnMcp({});
    await mcp.initialize();
    const failure = await failureOf('alarm_list', '{}');
    assert.equal(failure.code, 'unavailable');
    assert.match(failure.message, /reveille up.*MATRIX_CHRONOS_URL/);
    mcp.kill();

    const { url, token } = chronosd;
    const local = { url, token, userId: agent.userId, keyFile: agent.keyFile };
    mcp = spawnMcp({ LOCAL_DEFAULTS: JSON.stringify(local) });
    await mcp.initialize();
    assert.equal((await mcp.request('tools/call', '{"name":"alarm_list"}')).answer.result.isError, undefined);
  });
});

describe('the end', () => {
  test('the end of stdin ends the process; a call in progress is answered before', async () => {
    await start();
    assert.equal(await mcp.end(), 0);
    await start({ MATRIX_CHRONOS_TIMEOUT_MS: '300' });
    await callThatHangs();
    assert.equal(await mcp.end(), 0);
    const [line, ...more] = mcp.unread();
    assert.match(line ?? '', /did not answer within 300 ms.*"id":99}$/);
    assert.deepEqual(more, []);
  });

  test('the last line needs no line feed', async () => {
    await start();
    mcp.child.stdin.write('{"jsonrpc":"2.0","id":5,"method":"ping"}');
    assert.equal(await mcp.end(), 0);
    assert.deepEqual(mcp.unread(), ['{"result":{},"jsonrpc":"2.0","id":5}']);
  });

  test('a client that stops reading ends the process, also during a call after the end of stdin', async () => {
    await start();
    const { givenUp } = await callThatHangs();
    mcp.write('{"jsonrpc":"2.0","id":5,"method":"ping","params":{}}');
    await mcp.nextLine();
    const exited = new Promise<number | null>((resolve) => mcp.child.once('exit', resolve));
    mcp.child.stdout.destroy();
    mcp.write('{"jsonrpc":"2.0","id":6,"method":"ping","params":{}}');
    mcp.child.stdin.end();
    await givenUp;
    assert.equal(await exited, 0);
  });

  test('SIGTERM ends the process, also during a call', async () => {
    await start();
    await callThatHangs();
    const exited = new Promise<number | null>((resolve) => mcp.child.once('exit', resolve));
    mcp.child.kill('SIGTERM');
    assert.equal(await exited, 0);
  });

  test('a client that stops reading ends the process', async () => {
    await start();
    const exited = new Promise<number | null>((resolve) => mcp.child.once('exit', resolve));
    mcp.child.stdout.destroy();
    mcp.write('{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{}}');
    assert.equal(await exited, 0);
  });

  test('a call that the client cancels is aborted and not answered', async () => {
    await start();
    const { givenUp } = await callThatHangs();
    mcp.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}');
    await givenUp;
    await stillServes();
    assert.deepEqual(mcp.unread(), []);
    assert.equal(await mcp.end(), 0);
  });
});
