/** Refused requests at the MCP endpoints: each with the right status and header, without detail, and counted. */
import assert from 'node:assert/strict';
import { createHmac, createPublicKey } from 'node:crypto';
import { request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { exportSPKI, generateKeyPair } from 'jose';
import { sharedOwner } from '../../support/temporary.ts';
import { type McpHttpBench, startIssuer, startMcpHttp, type ToolResult } from './mcp-http-bench.ts';

const now = () => Math.floor(Date.now() / 1000);
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('tokens', () => {
  const owner = sharedOwner();
  let bench: McpHttpBench;
  before(async () => {
    bench = await startMcpHttp(owner);
  });
  after(() => owner.end());

  /** Sends a request, and checks the answer to a client without a usable token. */
  async function unauthorized(bearer: string | undefined, counted: string, headers: Record<string, string> = {}) {
    const before = bench.figures()[counted] ?? 0;
    const answer = await bench.call('tools/list', {}, { ...(bearer !== undefined && { bearer }), headers });
    assert.equal(answer.status, 401, answer.text);
    const metadata = `${bench.url}/.well-known/oauth-protected-resource/mcp/chronos`;
    const error = counted === 'no_token' ? '' : 'error="invalid_token", ';
    assert.equal(
      answer.headers.get('www-authenticate'),
      `Bearer ${error}scope="alarms:read alarms:write", resource_metadata="${metadata}"`,
    );
    // No detail: the answer is the same for each reason.
    assert.equal(answer.text, counted === 'no_token' ? '{"error":"unauthorized"}' : '{"error":"invalid_token"}');
    assert.equal(bench.figures()[counted], before + 1, `${counted} is counted`);
  }

  test('a request without a token learns where to get one', async () => {
    await unauthorized(undefined, 'no_token');
    await unauthorized(undefined, 'no_token', { authorization: 'Basic YWRhOnNlY3JldA==' });
    const { status, text, headers } = await bench.send('/.well-known/oauth-protected-resource/mcp/chronos');
    assert.equal(status, 200);
    assert.equal(headers.get('access-control-allow-origin'), '*');
    assert.deepEqual(JSON.parse(text), {
      resource: `${bench.url}/mcp/chronos`,
      authorization_servers: [bench.issuer.url],
      scopes_supported: ['alarms:read', 'alarms:write', 'conversations:read'],
      bearer_methods_supported: ['header'],
      resource_name: 'Reveille: alarms',
    });
  });

  test('a web page may read the metadata, and nothing else', async () => {
    const headers = { origin: 'https://any.example', 'access-control-request-method': 'GET' };
    const path = '/.well-known/oauth-protected-resource/mcp/chronos';
    const asked = await bench.send(path, { method: 'OPTIONS', headers });
    assert.deepEqual([asked.status, asked.headers.get('access-control-allow-origin')], [204, '*']);
    assert.equal((await bench.send(path, { method: 'POST', body: '{}' })).status, 405);
    assert.equal((await bench.send('/mcp/chronos', { method: 'OPTIONS', headers })).status, 403);
  });

  test('a token in the address does not count', async () => {
    const token = await bench.token();
    const answer = await bench.send(`/mcp/chronos?access_token=${token}`, { method: 'POST', body: '{}' });
    assert.equal(answer.status, 401);
  });

  test('tokens for another audience are refused, also those of another endpoint', async () => {
    for (const aud of [
      undefined,
      'https://elsewhere.example/mcp/chronos',
      bench.url,
      bench.resource('intents'),
      `${bench.resource('chronos')}/`,
      'client-1',
    ])
      await unauthorized(await bench.token({ aud }), 'wrong_audience');
    const several = await bench.token({ aud: ['https://elsewhere.example', bench.resource('chronos')] });
    assert.equal((await bench.call('tools/list', {}, { bearer: several })).status, 200);
  });

  test('an expired token, one without an end, and one that is not valid yet are refused', async () => {
    await unauthorized(await bench.token({ exp: now() - 60 }), 'expired');
    await unauthorized(await bench.token({ exp: undefined }), 'bad_claims');
    await unauthorized(await bench.token({ nbf: now() + 600 }), 'bad_claims');
  });

  test('a foreign issuer is refused, with its own keys and with those of the trusted one', async () => {
    const foreign = await startIssuer(owner);
    const claims = { aud: bench.resource('chronos'), scope: 'alarms:read' };
    await unauthorized(await foreign.sign(claims), 'foreign_issuer');
    await unauthorized(await foreign.sign({ ...claims, iss: bench.issuer.url }), 'bad_signature');
    for (const iss of [foreign.url, `${bench.issuer.url}/`, undefined])
      await unauthorized(await bench.issuer.sign({ ...claims, iss }), 'foreign_issuer');
    assert.deepEqual(foreign.asked, [], 'no request is made to an issuer that a token names');
  });

  test('a token without a signature, or with one by another algorithm, is refused', async () => {
    const [, payload] = (await bench.token()).split('.');
    for (const alg of ['none', 'None', 'nOnE'])
      await unauthorized(`${encoded({ alg, typ: 'at+jwt' })}.${payload}.`, 'malformed');
    // The public key as a shared secret.
    const pem = await exportSPKI(bench.issuer.pair.publicKey);
    for (const secret of [pem, createPublicKey(pem).export({ type: 'spki', format: 'der' })]) {
      const head = `${encoded({ alg: 'HS256', kid: bench.issuer.kid })}.${payload}`;
      const mac = createHmac('sha256', secret).update(head).digest('base64url');
      await unauthorized(`${head}.${mac}`, 'malformed');
    }
  });

  test('a key that the token itself names or holds does not count', async () => {
    const foreign = await startIssuer(owner);
    const { privateKey } = await generateKeyPair('ES256');
    const claims = { aud: bench.resource('chronos'), scope: 'alarms:read' };
    for (const header of [{ jku: `${foreign.url}/jwks` }, { x5u: `${foreign.url}/jwks` }, { jwk: { kty: 'EC' } }])
      await unauthorized(await bench.issuer.sign(claims, header, privateKey), 'bad_signature');
    await unauthorized(await bench.issuer.sign(claims, { kid: '../../etc/passwd' }, privateKey), 'bad_signature');
    assert.deepEqual(foreign.asked, []);
  });

  test('tokens with unknown keys do not make the router ask their issuer each time', async () => {
    const before = bench.issuer.asked.length;
    const { privateKey } = await generateKeyPair('ES256');
    const claims = { aud: bench.resource('chronos'), scope: 'alarms:read' };
    for (let n = 0; n < 50; n++) {
      const bearer = await bench.issuer.sign(claims, { kid: `key-${n}` }, privateKey);
      assert.equal((await bench.call('tools/list', {}, { bearer })).status, 401);
    }
    assert.equal(bench.issuer.asked.length, before);
  });

  test('a body beyond the limit is refused', async () => {
    const bearer = await bench.token();
    const answer = await bench.call('tools/call', { name: 'alarm_set', x: 'x'.repeat(1_100_000) }, { bearer });
    assert.equal(answer.status, 413);
  });

  test('a changed token and text that is no token are refused', async () => {
    const [header, payload, signature] = (await bench.token()).split('.');
    const bob = encoded({ ...JSON.parse(Buffer.from(payload!, 'base64url').toString()), sub: 'subject-of-bob' });
    await unauthorized(`${header}.${bob}.${signature}`, 'bad_signature');
    for (const text of ['x', 'a.b.c', '..', `${header}.${payload}`, 'rvp_0123456789ab_secret', `${'x'.repeat(12_300)}`])
      await unauthorized(text, 'malformed');
  });

  test('a token without a client, or of a subject that is no user, is refused', async () => {
    await unauthorized(await bench.token({ client_id: undefined }), 'bad_claims');
    await unauthorized(await bench.token({ client_id: 'x'.repeat(501) }), 'bad_claims');
    await unauthorized(await bench.token({ sub: undefined }), 'bad_claims');
    for (const sub of ['ada', 'subject-of-ADA', '__proto__', 'constructor']) {
      const answer = await bench.call('tools/list', {}, { bearer: await bench.token({ sub }) });
      assert.deepEqual([answer.status, answer.text], [403, '{"error":"access_denied"}']);
      assert.equal(answer.headers.get('www-authenticate'), null, 'another token would not help');
    }
    assert.equal(bench.figures().no_user, 4);
  });

  test('a missing scope is asked for by 403, together with the present scopes of the client', async () => {
    const asks = async (scope: string, tool: string) => {
      const bearer = await bench.token({ scope });
      const answer = await bench.call('tools/call', { name: tool, arguments: {} }, { bearer });
      return [answer.status, /scope="([^"]*)"/.exec(answer.headers.get('www-authenticate') ?? '')?.[1]];
    };
    assert.deepEqual(await asks('alarms:read', 'alarm_list'), [200, undefined]);
    assert.deepEqual(await asks('alarms:read', 'alarm_set'), [403, 'alarms:read alarms:write']);
    assert.deepEqual(await asks('alarms:read', 'alarm_cancel'), [403, 'alarms:read alarms:write']);
    assert.deepEqual(await asks('alarms:write', 'alarm_list'), [403, 'alarms:read alarms:write']);
    assert.deepEqual(await asks('', 'alarm_list'), [403, 'alarms:read']);
    assert.deepEqual(await asks('ALARMS:READ alarms:rea openid', 'alarm_list'), [403, 'alarms:read']);
    assert.deepEqual(await asks('time:read intents:read', 'alarm_list'), [403, 'alarms:read']);
    const refused = await bench.call('initialize', {}, { bearer: await bench.token({ scope: 'openid' }) });
    assert.equal(refused.status, 403);
    assert.match(refused.headers.get('www-authenticate')!, /^Bearer error="insufficient_scope", /);
    assert.equal(refused.text, '{"error":"insufficient_scope"}');
    // As Entra and Okta write scopes.
    for (const claims of [{ scp: 'alarms:read' }, { scp: ['openid', 'alarms:read'] }]) {
      const bearer = await bench.token({ scope: undefined, ...claims });
      assert.equal((await bench.call('tools/list', {}, { bearer })).status, 200);
    }
  });

  test('several messages in one request cannot hide a call that needs another scope', async () => {
    const bearer = await bench.token({ scope: 'alarms:read' });
    const batch = ['tools/list', 'tools/call'].map((method, id) => ({
      ...{ jsonrpc: '2.0', id, method },
      params: { name: 'alarm_set', arguments: { kind: 'once', wake_message: 'x', delay_seconds: 9 } },
    }));
    const post = (body: string, token = bearer) =>
      bench.send('/mcp/chronos', {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          authorization: `Bearer ${token}`,
        },
        body,
      });
    assert.equal((await post(JSON.stringify(batch))).status, 403);
    const writing = await bench.token();
    const allowed = await post(JSON.stringify(batch), writing);
    const [listed, set] = allowed.json() as { result: { tools?: object[]; structuredContent?: { status: string } } }[];
    assert.deepEqual([listed?.result.tools?.length, set?.result.structuredContent?.status], [3, 'active']);
    // The last of two members with one name counts, here and in the SDK.
    const text = JSON.stringify(batch[1]);
    const twice = `{"method":"tools/list",${text.slice(1)}`;
    assert.equal((await post(twice)).status, 403);
    const names = text.replace('"name":"alarm_set"', '"name":"alarm_list","name":"alarm_set"');
    assert.equal((await post(names)).status, 403);
    for (const body of ['', '{', '[]', '"x"', `${'['.repeat(5000)}`, '\xff'])
      assert.equal((await post(body)).status, 400, JSON.stringify(body.slice(0, 10)));
  });

  test('no session id is valid here: 404, for any subject', async () => {
    for (const sub of ['subject-of-ada', 'subject-of-bob']) {
      const bearer = await bench.token({ sub });
      const answer = await bench.call('tools/list', {}, { bearer, headers: { 'mcp-session-id': 'of-another' } });
      assert.equal(answer.status, 404);
    }
    assert.equal(bench.figures().unknown_session, 2);
    const without = await bench.call('tools/list', {}, { headers: { 'mcp-session-id': 'of-another' } });
    assert.equal(without.status, 401, 'the token comes first');
    const bearer = await bench.token();
    const { protocolVersion, capabilities } = { protocolVersion: '2025-11-25', capabilities: {} };
    const hello = { protocolVersion, capabilities, clientInfo: { name: 'test', version: '1' } };
    const opened = await bench.call('initialize', hello, { bearer });
    assert.equal(opened.status, 200, opened.text);
    assert.equal(opened.headers.get('mcp-session-id'), null, 'none is given out');
  });

  test('streams and sessions of older revisions are not there: 405', async () => {
    const headers = { authorization: `Bearer ${await bench.token()}`, accept: 'text/event-stream' };
    for (const method of ['GET', 'DELETE', 'PUT', 'PATCH'])
      assert.equal((await bench.send('/mcp/chronos', { method, headers })).status, 405, method);
  });

  test('web pages and rebound names are kept out', async () => {
    const bearer = await bench.token();
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1', `${bench.url}.evil.example`]) {
      const answer = await bench.call('tools/list', {}, { bearer, headers: { origin } });
      assert.equal(answer.status, 403, origin);
      assert.equal(answer.headers.get('access-control-allow-origin'), null);
    }
    assert.equal(bench.figures().foreign_origin, 5);
    const rebound = await new Promise<number>((resolve, reject) => {
      const { hostname, port } = new URL(bench.url);
      const headers = { host: `evil.example:${port}`, authorization: `Bearer ${bearer}` };
      const sent = request({ hostname, port, path: '/mcp/chronos', method: 'POST', headers }, (answer) =>
        resolve(answer.statusCode ?? 0),
      );
      sent.on('error', reject);
      sent.end('{}');
    });
    assert.equal(rebound, 403);
  });

  test('other paths below /mcp and /.well-known are not served, and a missing part is not there', async () => {
    const headers = { authorization: `Bearer ${await bench.token()}` };
    for (const path of [
      ...['/mcp', '/mcp/', '/mcp/neo', '/mcp/neo/', '/mcp/chronos/x', '/MCP/chronos', '/mcp/chronometric'],
      ...['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp/neo'],
      '/mcp/intents',
    ])
      assert.equal((await bench.send(path, { headers })).status, 404, path);
    assert.equal((await bench.send('/mcp/%63hronos', { headers })).status, 404);
  });

  test('an address may end with a slash', async () => {
    const { text } = await bench.send('/.well-known/oauth-protected-resource/mcp/chronos/');
    assert.equal(JSON.parse(text).resource, `${bench.url}/mcp/chronos`);
    const headers = { authorization: `Bearer ${await bench.token()}`, 'content-type': 'application/json' };
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    assert.equal((await bench.send('/mcp/chronos/', { method: 'POST', headers, body })).status, 200);
    const { status, headers: answer } = await bench.send('/mcp/chronos/', { method: 'POST', body });
    assert.equal(status, 401);
    assert.match(answer.get('www-authenticate')!, /oauth-protected-resource\/mcp\/chronos"/);
  });

  test('an answer without a stream is whole when its texts contain other line ends', async () => {
    const bearer = await bench.token();
    const message = 'a\u2028data: 42';
    await bench.tool('alarm_set', { wake_message: message, label: 'lines', when: 'in 2 hours' }, bearer);
    const params = { name: 'alarm_list', arguments: { text: 'lines', full: true } };
    const { text } = await bench.call('tools/call', params, { bearer, headers: { accept: 'application/json' } });
    const { result } = JSON.parse(text) as { result: ToolResult };
    const [alarm] = result.structuredContent.alarms as { wake_message: string }[];
    assert.equal(alarm?.wake_message, message);
  });

  test('an answer has the type that the client reads', async () => {
    const headers = { authorization: `Bearer ${await bench.token()}`, 'content-type': 'application/json' };
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    const [json, stream] = ['application/json', 'text/event-stream'];
    for (const [accept, type] of [
      ...[
        ['*/*', json],
        ['application/*;q=0.8', json],
        ['text/html, */*;q=0.1', json],
        [json, json],
      ],
      ...[
        ['Application/JSON, Text/Event-Stream', stream],
        [stream, stream],
        ['text/*, */*', stream],
      ],
    ] as const) {
      const answer = await bench.send('/mcp/chronos', { method: 'POST', headers: { ...headers, accept }, body });
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, type], `${accept}: ${answer.text}`);
      assert.deepEqual(answer.json(), { result: {}, jsonrpc: '2.0', id: 1 });
    }
    const refused = await bench.send('/mcp/chronos', {
      method: 'POST',
      headers: { ...headers, accept: 'text/html' },
      body,
    });
    assert.equal(refused.status, 406);
    assert.match(refused.text, /the answer is application\/json or text\/event-stream; Accept must include it/);
  });

  test('a refusal has its own reason', async () => {
    const bearer = await bench.token();
    const foreign = await bench.call('ping', {}, { bearer, headers: { origin: 'https://evil.example' } });
    assert.match(foreign.text, /pages of the origin .*https:\/\/evil\.example.* ROUTER_MCP_ORIGINS/);
    const other = await bench.send('/mcp/neo', { method: 'POST', body: '{}' });
    assert.match(other.text, /there is no MCP endpoint at \/mcp\/neo; the endpoints are \/mcp\/chronos, /);
    const session = await bench.call('ping', {}, { bearer, headers: { 'mcp-session-id': 'x' } });
    assert.match(session.text, /Session not found: this endpoint has no sessions/);
    const method = await bench.send('/mcp/chronos', { headers: { authorization: `Bearer ${bearer}` } });
    assert.match(method.text, /Method not allowed: GET; send messages with POST/);
  });

  test('the counts are in the metrics of the router', async () => {
    const { text } = await bench.internal.send('GET', '/metrics', 'metrics-token-of-the-tests');
    for (const result of ['no_token', 'wrong_audience', 'expired', 'foreign_issuer', 'insufficient_scope'])
      assert.match(text, new RegExp(`router_service_requests_total\\{service="mcp",result="${result}"\\} [1-9]`));
  });
});

test('an issuer that is down is not asked with every request, and the answer is 503', async (t) => {
  const bench = await startMcpHttp(t);
  const list = async (bearer: string) => (await bench.call('tools/list', {}, { bearer })).status;
  bench.issuer.state.isDown = true;
  assert.equal(await list(await bench.token()), 503);
  const { length } = bench.issuer.asked;
  const answers = await Promise.all(Array.from({ length: 20 }, async () => list(await bench.token())));
  assert.deepEqual(new Set(answers), new Set([503]));
  assert.equal(bench.issuer.asked.length, length, 'it is asked again only after a pause');
  assert.equal(bench.figures().issuer_unavailable, 21);
});

test('keys are read from no private address that only the metadata name', async (t) => {
  const hidden = await startIssuer(t);
  const bench = await startMcpHttp(t);
  bench.issuer.state.jwksUri = `${hidden.url}/jwks`;
  const answer = await bench.call('tools/list', {}, { bearer: await bench.token() });
  assert.deepEqual([answer.status, answer.text], [503, '{"error":"temporarily_unavailable"}']);
  assert.deepEqual(hidden.asked, []);
});

test('pages of a configured origin may call, and no others', async (t) => {
  const bench = await startMcpHttp(t, { ROUTER_MCP_ORIGINS: 'https://inspector.example' });
  const origin = 'https://inspector.example';
  const asked = await bench.send('/mcp/chronos', {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
  });
  assert.equal(asked.status, 204);
  assert.equal(asked.headers.get('access-control-allow-origin'), origin);
  assert.equal(asked.headers.get('access-control-allow-headers'), 'authorization');
  const answer = await bench.call('tools/list', {}, { bearer: await bench.token(), headers: { origin } });
  assert.deepEqual([answer.status, answer.headers.get('access-control-allow-origin')], [200, origin]);
  const without = await bench.call('tools/list', {}, { headers: { origin } });
  assert.match(without.headers.get('access-control-expose-headers') ?? '', /WWW-Authenticate/);
});

test('one user cannot use up the listener, and another is not disturbed', async (t) => {
  const bench = await startMcpHttp(t, { ROUTER_PUBLIC_REQUESTS_PER_MINUTE: '40' });
  const [ada, bob] = [await bench.token(), await bench.token({ sub: 'subject-of-bob' })];
  const answers: number[] = [];
  for (let n = 0; n < 12; n++) answers.push((await bench.call('tools/list', {}, { bearer: ada })).status);
  assert.deepEqual(answers.slice(0, 10), Array(10).fill(200));
  assert.equal(answers.at(-1), 429);
  assert.equal((await bench.call('tools/list', {}, { bearer: bob })).status, 200);
});
