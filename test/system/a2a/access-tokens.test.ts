/** Access tokens as credentials of A2A: the right ones act for one user and client, within their scopes; no other counts. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { exportJWK, generateKeyPair } from 'jose';
import { parseMcpHttpConfig } from '../../../src/mcp-http/config.ts';
import { type Issuer, startIssuer } from '../mcp-http/mcp-http-bench.ts';
import { openA2aBench, textMessage } from './bench.ts';

async function openWithIssuer(t: TestContext) {
  const issuer = await startIssuer(t);
  const users = { 'subject-of-ada': 'ada', 'subject-of-bob': 'bob' };
  const clients = { 'client-1': 'Scout' };
  const issuers = parseMcpHttpConfig({
    ROUTER_MCP_ISSUERS: JSON.stringify([{ issuer: issuer.url, users, clients }]),
  });
  const bench = await openA2aBench(t, { issuers });
  bench.ada.replyTo = () => 'for ada';
  bench.bob.replyTo = () => 'for bob';
  const aud = `${bench.url}/a2a`;
  return { issuer, bench, aud, token: (claims: object = {}) => issuer.sign({ aud, scope: 'agent:ask', ...claims }) };
}

test('a valid token acts for its user, under the name of its client, within its scopes', async (t) => {
  const { bench, token } = await openWithIssuer(t);
  const [ada, bob, other] = await Promise.all([
    token(),
    token({ sub: 'subject-of-bob' }),
    token({ client_id: 'client-2' }),
  ]);
  const message = textMessage('hello');
  const answer = await bench.rest('POST', '/message:send', message, ada);
  assert.equal(answer.json.task.artifacts[0].parts[0].text, 'for ada');
  assert.deepEqual(bench.ada.turns[0]!.body.sent_by, { kind: 'agent', name: 'Scout (client client-1)' });
  assert.equal(
    (await bench.rest('POST', '/message:send', message, bob)).json.task.artifacts[0].parts[0].text,
    'for bob',
  );
  for (const stranger of [bob, other, bench.tokens.ada])
    assert.equal((await bench.rest('GET', `/tasks/${answer.json.task.id}`, undefined, stranger)).status, 404);
  // Another token of the same client and user sees the task.
  const renewed = await token({ jti: 'another' });
  assert.equal((await bench.rest('GET', `/tasks/${answer.json.task.id}`, undefined, renewed)).status, 200);
  const reader = await token({ scope: 'alarms:write' });
  const refused = await bench.rest('POST', '/message:send', textMessage('x'), reader);
  assert.equal(refused.status, 403);
  assert.match(
    refused.headers.get('www-authenticate')!,
    /error="insufficient_scope", scope="agent:ask", resource_metadata=/,
  );
  const alarm = { message: { messageId: 'a', role: 'ROLE_USER', parts: [{ data: { alarm: { kind: 'once' } } }] } };
  assert.equal((await bench.rest('POST', '/message:send', alarm, ada)).status, 403);
  const metadata = await fetch(`${bench.url}/.well-known/oauth-protected-resource/a2a`);
  const { resource, scopes_supported } = (await metadata.json()) as { resource: string; scopes_supported: string[] };
  assert.equal(resource, `${bench.url}/a2a`);
  assert.deepEqual(scopes_supported, ['agent:ask', 'alarms:write']);
});

async function wrongTokens({ url, sign, kid, pair }: Issuer, aud: string): Promise<Record<string, string>> {
  const now = Math.floor(Date.now() / 1000);
  const base = { aud, scope: 'agent:ask' };
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { iss: url, sub: 'subject-of-ada', client_id: 'client-1', iat: now, exp: now + 300, ...base };
  const stranger = await generateKeyPair('ES256');
  const shared = new TextEncoder().encode(JSON.stringify(await exportJWK(pair.publicKey)));
  const valid = await sign(base);
  const [head, body, signature] = valid.split('.') as [string, string, string];
  return {
    'for an MCP endpoint': await sign({ ...base, aud: aud.replace('/a2a', '/mcp/chronos') }),
    'for the whole listener': await sign({ ...base, aud: aud.replace('/a2a', '') }),
    'for a path below': await sign({ ...base, aud: `${aud}/` }),
    'for another host': await sign({ ...base, aud: 'https://elsewhere.example/a2a' }),
    'for nothing': await sign({ scope: 'agent:ask' }),
    expired: await sign({ ...base, exp: now - 120 }),
    'without an end': await sign({ ...base, exp: undefined }),
    'not valid yet': await sign({ ...base, nbf: now + 600 }),
    'of another issuer': await sign({ ...base, iss: 'https://elsewhere.example' }),
    'without an issuer': await sign({ ...base, iss: undefined }),
    'of an unknown subject': await sign({ ...base, sub: 'subject-of-eve' }),
    'of a user by name': await sign({ ...base, sub: 'ada' }),
    'without a subject': await sign({ ...base, sub: undefined }),
    'without a client': await sign({ ...base, client_id: undefined }),
    'signed by another key': await sign(base, {}, stranger.privateKey),
    'signed with the public key': await sign(base, { alg: 'HS256' }, shared),
    'without a signature': `${encoded({ alg: 'none', kid })}.${encoded(claims)}.`,
    'with another body': `${head}.${encoded({ ...claims, sub: 'subject-of-bob' })}.${signature}`,
    'with a cut signature': `${head}.${body}.${signature.slice(0, -4)}`,
    'too long': `${head}.${body}.${'x'.repeat(20_000)}`.slice(0, 13_000),
    'like a personal token': `rvp_${valid}`,
  };
}

test('no other token is accepted, and the refusal has no detail', async (t) => {
  const { issuer, bench, aud } = await openWithIssuer(t);
  const tokens = await wrongTokens(issuer, aud);
  const answers = new Set<string>();
  for (const [what, token] of Object.entries(tokens)) {
    const { status, headers, text } = await bench.rest('POST', '/message:send', textMessage('x'), token);
    assert.equal(status, 401, what);
    assert.match(headers.get('www-authenticate')!, /^Bearer resource_metadata="[^"]+\/oauth-protected-resource\/a2a"$/);
    answers.add(text);
  }
  assert.equal(answers.size, 1);
  assert.equal(bench.ada.turns.length + bench.bob.turns.length, 0);
  t.diagnostic(`${Object.keys(tokens).length} tokens: 0 accepted`);
});
