/** A client connects with its metadata document: metadata, sign-in, consent, tokens, refresh and the device grant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createRemoteJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  jwtVerify,
  SignJWT,
} from 'jose';
import { ADMIN_TOKEN } from '../../../src/router/testing/bench.ts';
import { eventually } from '../../support/eventually.ts';
import {
  allow,
  post,
  REDIRECT,
  redeem,
  refresh,
  requestOf,
  startDevice,
  startOauthBench,
  type Tokens,
  verifierOf,
} from './bench.ts';

test('the metadata is at the address of RFC 8414 and at that of OpenID, and names what is on', async (t) => {
  const bench = await startOauthBench(t);
  for (const path of [
    '/.well-known/oauth-authorization-server/oauth',
    '/.well-known/openid-configuration/oauth',
    '/oauth/.well-known/openid-configuration',
    '/oauth/.well-known/oauth-authorization-server',
  ]) {
    const response = await fetch(bench.at + path, { headers: { origin: 'https://inspector.example.com' } });
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get('access-control-allow-origin'), 'https://inspector.example.com');
    const metadata = (await response.json()) as Record<string, unknown>;
    assert.equal(metadata.issuer, bench.issuer);
    assert.equal(metadata.authorization_endpoint, `${bench.issuer}/auth`);
    assert.equal(metadata.token_endpoint, `${bench.issuer}/token`);
    assert.equal(metadata.device_authorization_endpoint, `${bench.issuer}/device/auth`);
    assert.equal(metadata.revocation_endpoint, `${bench.issuer}/revoke`);
    assert.equal(metadata.registration_endpoint, undefined);
    assert.equal(metadata.client_id_metadata_document_supported, true);
    assert.equal(metadata.authorization_response_iss_parameter_supported, true);
    assert.deepEqual(metadata.code_challenge_methods_supported, ['S256']);
    assert.deepEqual(metadata.response_types_supported, ['code']);
    assert.deepEqual(metadata.response_modes_supported, ['query']);
    assert.deepEqual(metadata.scopes_supported, [
      'alarms:read',
      'alarms:write',
      'conversations:read',
      'time:read',
      'intents:read',
      'agent:ask',
    ]);
    assert.deepEqual(metadata.token_endpoint_auth_methods_supported, ['none', 'private_key_jwt']);
  }
});

test('a client gets a token for one endpoint, signed for the user who allowed it', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json');
  const asked = { client };
  const allowed = await allow(bench, asked, { token: await bench.tokenOf('ada') });
  assert.equal(allowed.answer.get('iss'), bench.issuer);
  assert.equal(allowed.answer.get('state'), 'the-state');
  const { status, json } = await redeem(bench, asked, allowed);
  assert.equal(status, 200, JSON.stringify(json));
  assert.equal(json.token_type, 'Bearer');
  assert.equal(json.expires_in, 600);
  const keys = createRemoteJWKSet(new URL(`${bench.issuer}/jwks`));
  const { payload } = await jwtVerify(json.access_token!, keys, {
    ...{ issuer: bench.issuer, audience: `${bench.at}/mcp/chronos`, typ: 'at+jwt' },
  });
  assert.equal(payload.sub, 'ada');
  assert.equal(payload.client_id, client);
  assert.equal(payload.scope, 'alarms:read alarms:write');
  assert.equal(decodeProtectedHeader(json.access_token!).alg, 'ES256');

  const next = await refresh(bench, client, json.refresh_token!);
  assert.equal(next.status, 200, JSON.stringify(next.json));
  assert.notEqual(next.json.refresh_token, json.refresh_token);
  const [connection] = bench.oauth.connections.list('ada');
  assert.equal(connection!.clientId, client);
  assert.equal(connection!.redirectHost, 'app.example.com');
  assert.ok(connection!.usedAt !== undefined);
});

test('the consent page names the host of the client, the user, the destination and each scope', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json', { client_name: 'Claude <b>\u202e' });
  const token = await bench.tokenOf('ada');
  const browser = bench.browser();
  const signIn = await browser.open(requestOf(bench, verifierOf(), { client }));
  assert.match(signIn.text, /Sign in/);
  assert.ok(signIn.text.includes(bench.documents.host));
  const wrong = await browser.submit(signIn, { do: 'sign-in', credential: 'rvp_wrong' });
  assert.equal(wrong.status, 401);
  const page = await browser.submit(wrong, { do: 'sign-in', credential: token });
  assert.ok(page.text.includes(`<strong>${bench.documents.host}</strong>`), page.text);
  assert.ok(page.text.includes('which calls itself “Claude &lt;b&gt;\\u202e”'), page.text);
  assert.ok(page.text.includes('<strong>ada</strong>'));
  assert.ok(page.text.includes('<strong>app.example.com</strong>'));
  assert.ok(page.text.includes('Set, change and cancel alarms'));
  assert.match(page.headers.get('content-security-policy')!, /frame-ancestors 'none'/);
  assert.equal(page.headers.get('x-frame-options'), 'DENY');
  assert.equal(page.headers.get('cache-control'), 'no-store');
  assert.ok(!/<script(?! src)|\sstyle=|\son\w+="/.test(page.text), 'no inline script or style');

  const denied = await browser.submit(page, { do: 'deny' });
  const answer = new URL(denied.url);
  assert.equal(answer.origin + answer.pathname, REDIRECT);
  assert.equal(answer.searchParams.get('error'), 'access_denied');
  assert.equal(answer.searchParams.get('iss'), bench.issuer);
  assert.equal(bench.oauth.connections.list('ada').length, 0);
});

test('a user may allow some of the scopes, and a request without scopes is for all of the resource', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json');
  const token = await bench.tokenOf('ada');
  const asked = { client, more: { scope: undefined } };
  const allowed = await allow(bench, asked, { token, scopes: ['alarms:read'] });
  const { json } = await redeem(bench, asked, allowed);
  assert.equal(json.scope, 'alarms:read');
  const next = await refresh(bench, client, json.refresh_token!, { scope: 'alarms:read alarms:write' });
  const { scope } = next.status === 200 ? decodeJwt(next.json.access_token!) : { scope: 'refused' };
  assert.ok(scope === 'alarms:read' || scope === 'refused', String(scope));
});

test('a client may ask for several endpoints, and each token is for one of them', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json');
  const browser = bench.browser();
  const verifier = verifierOf();
  const asked = { client, scope: 'alarms:read time:read intents:read offline_access' };
  const address = `${requestOf(bench, verifier, asked)}&resource=${encodeURIComponent(`${bench.at}/mcp/chronometric`)}`;
  const signIn = await browser.open(address);
  const page = await browser.submit(signIn, { do: 'sign-in', credential: await bench.tokenOf('ada') });
  assert.ok(!page.text.includes('intents:read'), 'a scope of another endpoint is not asked for');
  const answered = await browser.submit(page, { do: 'allow', scope: ['alarms:read', 'time:read'] });
  const code = new URL(answered.url).searchParams.get('code')!;
  const allowed = { code, verifier, answer: new URLSearchParams() };
  const first = await redeem(bench, asked, allowed, { resource: `${bench.at}/mcp/chronometric` });
  assert.equal(first.status, 200, JSON.stringify(first.json));
  const claims = decodeJwt(first.json.access_token!);
  assert.equal(claims.aud, `${bench.at}/mcp/chronometric`);
  assert.equal(claims.scope, 'time:read');
  const second = await refresh(bench, client, first.json.refresh_token!, { resource: `${bench.at}/mcp/chronos` });
  assert.equal(decodeJwt(second.json.access_token!).scope, 'alarms:read');
});

test('a program on the computer of the user gets its answer at any port of the loopback address', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/native.json', {
    redirect_uris: ['http://127.0.0.1/callback', 'http://localhost/callback', 'cursor://callback/mcp'],
  });
  const token = await bench.tokenOf('ada');
  const browser = bench.browser();
  for (const redirect of [
    'http://127.0.0.1:3118/callback',
    'http://localhost:49152/callback',
    'cursor://callback/mcp',
  ]) {
    const asked = { client, redirect };
    const allowed = await allow(bench, asked, { token, browser });
    assert.equal((await redeem(bench, asked, allowed)).status, 200, redirect);
  }
  const again = requestOf(bench, verifierOf(), { client, redirect: 'http://127.0.0.1:3118/callback' });
  const page = await browser.submit(await browser.open(again), { do: 'sign-in', credential: token });
  assert.ok(page.text.includes('a program on this computer'), 'a second request is shown too');
  assert.ok(page.text.includes('127.0.0.1:3118'));
});

test('a one-time code of the console signs in, once', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json');
  const code = 'c'.repeat(40);
  bench.codes.set(code, { user: 'ada' });
  await allow(bench, { client }, { token: `${bench.at}/o/${code}` });
  const browser = bench.browser();
  const page = await browser.open(requestOf(bench, verifierOf(), { client }));
  assert.equal((await browser.submit(page, { do: 'sign-in', credential: code })).status, 401);
});

test('each request has a sign-in of its own, of any user', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json');
  const browser = bench.browser();
  await allow(bench, { client }, { token: await bench.tokenOf('ada'), browser });
  const signIn = await browser.open(requestOf(bench, verifierOf(), { client }));
  assert.match(signIn.text, /name="credential"/, signIn.text);
  const page = await browser.submit(signIn, { do: 'sign-in', credential: await bench.tokenOf('bob') });
  assert.ok(page.text.includes('<strong>bob</strong>'), page.text);
  for (const cookie of browser.cookies()) assert.notEqual(cookie.path, '', `${cookie.name} is for every path`);
});

test('a device gets tokens after its user typed the code and allowed it', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/device.json', {
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    ...{ redirect_uris: [], response_types: [] },
  });
  const device = await startDevice(bench, client);
  const pending = await device.poll();
  assert.equal(pending.json.error, 'authorization_pending');
  const browser = bench.browser();
  const typed = await browser.open(device.complete);
  assert.ok(typed.text.includes(`value="${device.code}"`), typed.text);
  const confirm = await browser.submit(typed, { user_code: device.code });
  assert.ok(confirm.text.includes(device.code), confirm.text);
  const signIn = await browser.submit(confirm, { confirm: 'yes' });
  const page = await browser.submit(signIn, { do: 'sign-in', credential: await bench.tokenOf('ada') });
  assert.ok(page.text.includes('the device that shows the code'), page.text);
  const done = await browser.submit(page, { do: 'allow', scope: ['alarms:read'] });
  assert.match(done.text, /Connected/, done.text);
  const tokens = await device.poll();
  assert.equal(tokens.status, 200, JSON.stringify(tokens.json));
  assert.equal(decodeJwt(tokens.json.access_token!).sub, 'ada');
  assert.equal((await refresh(bench, client, tokens.json.refresh_token!)).status, 200);
  assert.notEqual((await device.poll()).status, 200, 'the code works once');
});

test('a device that is denied hears it', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/device.json', {
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
    ...{ redirect_uris: [], response_types: [] },
  });
  const device = await startDevice(bench, client);
  const browser = bench.browser();
  const confirm = await browser.submit(await browser.open(device.address), { user_code: device.code.toLowerCase() });
  const signIn = await browser.submit(confirm, { confirm: 'yes' });
  const page = await browser.submit(signIn, { do: 'sign-in', credential: await bench.tokenOf('ada') });
  assert.match((await browser.submit(page, { do: 'deny' })).text, /gets no access/);
  assert.equal((await device.poll()).json.error, 'access_denied');
});

test('an ended connection has no token any more, at once', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json');
  const asked = { client };
  const token = await bench.tokenOf('ada');
  const connect = async () => {
    const { json } = await redeem(bench, asked, await allow(bench, asked, { token }));
    return json as Tokens;
  };
  const isRevoked = ({ access_token }: Tokens) => {
    const claims = decodeJwt(access_token);
    return bench.oauth.isRevoked({
      ...{ subject: claims.sub!, clientId: client, tokenId: claims.jti, issuedAt: undefined, claims },
    });
  };
  const first = await connect();
  const second = await connect();
  assert.equal(isRevoked(first), false);
  const connections = bench.oauth.connections.list('ada');
  assert.equal(connections.length, 2);
  await assert.rejects(bench.oauth.connections.revoke('bob', connections[1]!.id), /no connected client/);
  await bench.oauth.connections.revoke('ada', connections[1]!.id);
  assert.deepEqual([isRevoked(first), isRevoked(second)], [true, false]);
  assert.equal((await refresh(bench, client, first.refresh_token!)).json.error, 'invalid_grant');

  // RFC 7009.
  const revocation = await post(bench, '/revoke', { client_id: client, token: second.refresh_token! });
  assert.equal(revocation.status, 200);
  assert.equal(isRevoked(second), true);
  assert.equal(bench.oauth.connections.list('ada').length, 0);
});

test('a connection ends with the credential of its sign-in', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json');
  const asked = { client };
  const browser = bench.browser();
  const { json } = await redeem(
    bench,
    asked,
    await allow(bench, asked, { token: await bench.tokenOf('ada'), browser }),
  );
  const { status } = await bench.send('DELETE', '/admin/users/ada', ADMIN_TOKEN);
  assert.equal(status, 200);
  const claims = decodeJwt(json.access_token!);
  const granted = { subject: 'ada', clientId: client, tokenId: claims.jti, issuedAt: undefined, claims };
  await eventually('the token is revoked', () => bench.oauth.isRevoked(granted));
  assert.deepEqual(bench.oauth.connectionsOf('ada'), []);
  assert.equal((await refresh(bench, client, json.refresh_token!)).json.error, 'invalid_grant');
});

test('a client may authenticate with a key of its document', async (t) => {
  const bench = await startOauthBench(t);
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const client = bench.documents.client('/keyed.json', {
    ...{ token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'ES256' },
    jwks: { keys: [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }] },
  });
  const asked = { client };
  const allowed = await allow(bench, asked, { token: await bench.tokenOf('ada') });
  assert.equal((await redeem(bench, asked, allowed)).json.error, 'invalid_client', 'not without its key');
  const assertion = (aud: string) =>
    new SignJWT({ jti: crypto.randomUUID() })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .setIssuer(client)
      .setSubject(client)
      .setAudience(aud)
      .setIssuedAt()
      .setExpirationTime('1m')
      .sign(privateKey);
  const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
  const foreign = await assertion('https://another.example');
  const wrong = await redeem(bench, asked, allowed, { client_assertion_type, client_assertion: foreign });
  assert.equal(wrong.json.error, 'invalid_client');
  const own = await assertion(bench.issuer);
  const right = await redeem(bench, asked, allowed, { client_assertion_type, client_assertion: own });
  assert.equal(right.status, 200, JSON.stringify(right.json));
  const replayed = await refresh(bench, client, right.json.refresh_token!, {
    client_assertion_type,
    client_assertion: own,
  });
  assert.equal(replayed.json.error, 'invalid_client', 'an assertion counts once');
});

test('connections survive a restart', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json');
  const asked = { client };
  const { json } = await redeem(bench, asked, await allow(bench, asked, { token: await bench.tokenOf('ada') }));
  await bench.restart();
  const next = await refresh(bench, client, json.refresh_token!);
  assert.equal(next.status, 200, JSON.stringify(next.json));
  assert.equal(decodeProtectedHeader(next.json.access_token!).kid, decodeProtectedHeader(json.access_token!).kid);
});
