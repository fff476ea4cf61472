/** Further attacks on the MCP endpoints: with a token of less, of another issuer, and with requests that are no honest ones. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { generateKeyPair } from 'jose';
import { createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { loadOrCreateKey } from '../../../src/kit/identity/keys.ts';
import { personProof } from '../../../src/kit/identity/person-rights.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { CHRONOS_ADMIN, type McpHttpBench, startIssuer, startMcpHttp, TRANSPORT } from './mcp-http-bench.ts';

const now = () => Math.floor(Date.now() / 1000);

/** The agent of a user beside the router, with proofs of a person. */
async function personOf(bench: McpHttpBench, label: string) {
  const key = loadOrCreateKey(join(bench.folder, `${label}.key`));
  const place = { url: bench.chronos.url, token: TRANSPORT, identity: agentIdentity(label, key), clock: systemClock };
  const operator = createChronosClient({ ...place, adminToken: CHRONOS_ADMIN });
  await operator.enrollAgent({ label, public_key: key.publicKeyHex });
  return createChronosClient({
    ...{ ...place, principal: holdPrincipal() },
    person: (request) => personProof('Ada', request, { secret: CHRONOS_ADMIN, now: Date.now() }),
  });
}

describe('alarms of the user', () => {
  const owner = sharedOwner();
  let bench: McpHttpBench;
  before(async () => {
    bench = await startMcpHttp(owner);
  });
  after(() => owner.end());

  test('a client sees no address that wakes the agent without its scope, and no header of a check', async () => {
    const ada = await personOf(bench, 'ada');
    const hook = await ada.createAlarm({
      kind: 'event',
      wake_message: 'x',
      event: { source: 'webhook', verify: 'path' },
    });
    assert.match(hook.hook!.address, /\/hooks\/|\/h\//);
    const headers = { authorization: 'Bearer the-secret-of-the-check' };
    const http = { url: 'https://example.com/', headers };
    await ada.createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: 9000, check: { http } });
    const listed = async (scope: string) =>
      (await bench.tool('alarm_list', { full: true }, await bench.token({ scope }))).source;
    const read = await listed('alarms:read');
    assert.ok(!read.includes(hook.hook!.address), read);
    for (const text of [read, await listed('alarms:read alarms:write')]) {
      assert.ok(!text.includes('the-secret-of-the-check'), text);
      assert.ok(text.includes('https://example.com/'), 'the check itself is shown');
    }
    for (const scope of ['alarms:read', 'alarms:read alarms:write']) {
      const args = { alarm_id: hook.id, full: true };
      const { source, isError } = await bench.tool('alarm_list', args, await bench.token({ scope }));
      assert.equal(isError, undefined);
      assert.ok(!source.includes(hook.hook!.address), source);
    }
    // The address of a person's alarm is no client's, whatever its scopes.
    assert.ok(!(await listed('alarms:read alarms:write')).includes(hook.hook!.address));
  });

  test('a client neither starts nor moves a command of the user', async () => {
    const ada = await personOf(bench, 'ada');
    const run = { argv: ['./backup.sh'] };
    const { id } = await ada.createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: 9000, run });
    const bearer = await bench.token();
    for (const args of [
      { action: 'trigger' },
      { delay_seconds: 1 },
      { when: 'in 1 second' },
      { wake_message: '; rm -rf ~' },
      { payload: { argv: ['id'] } },
      { run: null },
      { urgent: true },
      { conversation_id: 'other' },
    ]) {
      const { structuredContent } = await bench.tool('alarm_set', { alarm_id: id, ...args }, bearer);
      assert.equal(structuredContent.code, 'forbidden', JSON.stringify([args, structuredContent]));
    }
    const { fire_at, wake_message } = await ada.getAlarm(id);
    assert.ok(Date.parse(fire_at!) > Date.now() + 8_000_000 && wake_message === 'x');
    await bench.tool('alarm_cancel', { alarm_id: id }, bearer);
    assert.equal((await ada.getAlarm(id)).status, 'cancelled');
  });
});

describe('requests', () => {
  const owner = sharedOwner();
  let bench: McpHttpBench;
  before(async () => {
    bench = await startMcpHttp(owner);
  });
  after(() => owner.end());

  /** The status of a request as it is written, with every header. The server closes the connection, as requested. */
  async function raw(
    headers: readonly string[],
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    path = '/mcp/chronos',
  ) {
    const { hostname, port } = new URL(bench.url);
    const lines = [
      `POST ${path} HTTP/1.1`,
      ...(headers.some((line) => /^host:/i.test(line)) ? [] : [`Host: ${hostname}:${port}`]),
      ...['Content-Type: application/json', 'Accept: application/json, text/event-stream', 'Connection: close'],
      ...headers,
      `Content-Length: ${Buffer.byteLength(body)}`,
    ];
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
    await new Promise<void>((resolve) => {
      socket.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      socket.on('close', resolve);
    });
    return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text };
  }

  test('of two credentials none is better than the worse one', async () => {
    const good = await bench.token();
    const bad = await bench.token({ aud: 'https://elsewhere.example' });
    assert.equal((await raw([`Authorization: Bearer ${good}`])).status, 200);
    for (const headers of [
      [`Authorization: Bearer ${bad}`, `Authorization: Bearer ${good}`],
      [`Authorization: Basic eA==`, `Authorization: Bearer ${good}`],
      [`Authorization: Bearer ${bad}, Bearer ${good}`],
      [`Authorization: Bearer ${good} ${good}`],
      [`Authorization: Bearer ${good}, ${good}`],
      [`Proxy-Authorization: Bearer ${good}`],
      [`X-Authorization: Bearer ${good}`],
      [`Cookie: authorization=Bearer ${good}; access_token=${good}`],
    ]) {
      const { status, text } = await raw(headers);
      assert.ok(status === 401 || status === 400, `${status} ${headers.map((line) => line.slice(0, 40))}\n${text}`);
    }
  });

  test('no header of a proxy changes the resource, and no other host is answered', async () => {
    const evil = 'https://evil.example';
    const stolen = await bench.token({ aud: `${evil}/mcp/chronos` });
    const good = await bench.token();
    for (const headers of [
      ['X-Forwarded-Host: evil.example', 'X-Forwarded-Proto: https'],
      ['Forwarded: host=evil.example;proto=https'],
      ['X-Original-URL: /mcp/intents', 'X-Rewrite-URL: /mcp/intents'],
      ['X-HTTP-Method-Override: GET'],
    ]) {
      const { status, text } = await raw([`Authorization: Bearer ${stolen}`, ...headers]);
      assert.equal(status, 401, text);
      assert.doesNotMatch(text, /evil\.example/);
      assert.equal((await raw([`Authorization: Bearer ${good}`, ...headers])).status, 200);
    }
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.nip.io', 'evil.example:80'])
      assert.equal((await raw([`Host: ${host}`, `Authorization: Bearer ${good}`])).status, 403, host);
  });

  test('members that hide a call do not hide its scope', async () => {
    const bearer = await bench.token({ scope: 'alarms:read' });
    const alarm = '{"kind":"once","wake_message":"hidden","delay_seconds":9000}';
    const bodies = [
      `{"jsonrpc":"2.0","id":1,"m\\u0065thod":"tools/call","params":{"n\\u0061me":"alarm_set","arguments":${alarm}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"alarm_list"},"params":{"name":"alarm_set","arguments":${alarm}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["alarm_set"],"arguments":${alarm}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{"0":"alarm_set"},"arguments":${alarm}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"alarm_set ","arguments":${alarm}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ALARM_SET","arguments":${alarm}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","__proto__":{"method":"tools/call"},"params":{"__proto__":{"name":"alarm_set","arguments":${alarm}}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call ","params":{"name":"alarm_set","arguments":${alarm}}}`,
      `{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"alarm_set","arguments":${alarm}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","result":{},"params":{"name":"alarm_set","arguments":${alarm}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"constructor","params":{"name":"toString"}}`,
      `{"jsonrpc":"2.0","id":{"__proto__":1},"method":"tools/call","params":{"name":"alarm_set","arguments":${alarm}}}`,
    ];
    for (const body of bodies) {
      const { text, status } = await raw([`Authorization: Bearer ${bearer}`], body);
      assert.ok(status >= 200 && status < 500, `${status} ${body}`);
      assert.doesNotMatch(text, /"id":"[0-9a-f-]{36}"/, body);
    }
    // Headers of the revision 2026-07-28 name the call too; the body counts.
    const list = ['Mcp-Method: tools/list', 'Mcp-Name: alarm_list', 'Mcp-Protocol-Version: 2026-07-28'];
    const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"alarm_set","arguments":${alarm}}}`;
    assert.equal((await raw([`Authorization: Bearer ${bearer}`, ...list], call)).status, 403);
    assert.doesNotMatch((await bench.tool('alarm_list', { full: true }, bearer)).source, /hidden/);
    assert.equal(({} as { name?: string }).name, undefined);
  });

  test('a flood of handshakes and of large bodies leaves the others their turn', async () => {
    const [ada, bob] = [await bench.token(), await bench.token({ sub: 'subject-of-bob' })];
    const hello = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x'.repeat(50_000), version: '1' },
    };
    const flood = Array.from({ length: 300 }, () => bench.call('initialize', hello, { bearer: ada }));
    const answer = await bench.call('tools/list', {}, { bearer: bob });
    assert.equal(answer.status, 200);
    const statuses = new Set((await Promise.all(flood)).map(({ status }) => status));
    for (const status of statuses) assert.ok(status === 200 || status === 429, String([...statuses]));
  });
});

describe('tokens', () => {
  const owner = sharedOwner();
  let bench: McpHttpBench;
  before(async () => {
    bench = await startMcpHttp(owner);
  });
  after(() => owner.end());
  const statusOf = async (bearer: string) => (await bench.call('tools/list', {}, { bearer })).status;

  test('headers of a token that change how it is read are refused', async () => {
    const aud = bench.resource('chronos');
    const claims = { aud, scope: 'alarms:read' };
    const { privateKey } = await generateKeyPair('ES256');
    for (const header of [
      { crit: ['x'], x: 1 },
      { crit: ['b64'], b64: false },
      { crit: [] },
      { zip: 'DEF', crit: ['zip'] },
    ]) {
      const signed = await bench.issuer.sign(claims, header).catch(() => undefined);
      if (signed !== undefined) assert.equal(await statusOf(signed), 401, JSON.stringify(header));
    }
    for (const kid of ["' OR 1=1", '../key', 'http://127.0.0.1/x', '', '__proto__', 'x'.repeat(5000)])
      assert.equal(await statusOf(await bench.issuer.sign(claims, { kid }, privateKey)), 401, kid.slice(0, 20));
    // Of JSON with a second member of the same name, the signed one counts.
    const [head, body, signature] = (await bench.issuer.sign(claims)).split('.');
    for (const text of [
      `${head}.${body}.${signature}.`,
      `${head}.${body}.`,
      `${head}.${body}.${signature}=`,
      `${head}..${signature}`,
    ])
      assert.notEqual(await statusOf(text), 200, text.slice(-20));
  });

  test('clocks may differ by 30 seconds, and no more', async () => {
    assert.equal(await statusOf(await bench.token({ exp: now() - 20 })), 200);
    assert.equal(await statusOf(await bench.token({ exp: now() - 40 })), 401);
    assert.equal(await statusOf(await bench.token({ nbf: now() + 20 })), 200);
    assert.equal(await statusOf(await bench.token({ nbf: now() + 45 })), 401);
    for (const exp of ['9999999999', null, [9_999_999_999]])
      assert.equal(await statusOf(await bench.token({ exp })), 401, String(exp));
  });

  test('a token for another endpoint of this host is refused at each', async () => {
    for (const from of ['chronos', 'chronometric', 'intents'])
      for (const at of ['chronos', 'intents']) {
        const bearer = await bench.token({}, from);
        const { status } = await bench.call('tools/list', {}, { bearer, endpoint: at });
        if (from !== at) assert.ok(status === 401 || status === 404, `${from} at ${at}: ${status}`);
      }
    const a2a = await bench.token({ aud: `${bench.url}/a2a`, scope: 'agent:ask alarms:write alarms:read' });
    assert.equal(await statusOf(a2a), 401);
  });
});

test('the same subject of two issuers is not the same user', async (t) => {
  const other = await startIssuer(t);
  const first = await startIssuer(t);
  const issuers = [
    { issuer: first.url, users: { 'subject-of-ada': 'ada', bob: 'carol' } },
    { issuer: other.url, users: { 'subject-of-ada': 'bob' } },
  ];
  const bench = await startMcpHttp(t, { ROUTER_MCP_ISSUERS: JSON.stringify(issuers) });
  const claims = { aud: bench.resource('chronos'), scope: 'alarms:read alarms:write' };
  const alarm = { kind: 'once', wake_message: 'of ada', delay_seconds: 9000 };
  await bench.tool('alarm_set', alarm, await first.sign(claims));
  assert.doesNotMatch((await bench.tool('alarm_list', { full: true }, await other.sign(claims))).source, /of ada/);
  assert.match((await bench.tool('alarm_list', { full: true }, await first.sign(claims))).source, /of ada/);
  const crossed = await other.sign({ ...claims, iss: first.url });
  assert.equal((await bench.call('tools/list', {}, { bearer: crossed })).status, 401);
  const unknown = await other.sign({ ...claims, sub: 'bob' });
  assert.equal((await bench.call('tools/list', {}, { bearer: unknown })).status, 403, 'known to the other issuer only');
});
