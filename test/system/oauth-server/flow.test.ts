/** A client connects with its metadata document: metadata, sign-in, consent, tokens, refresh and the device grant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLocalJWKSet, createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import { allow, redeem, refresh, startOauthBench } from './bench.ts';

test('a client gets a token for one endpoint, signed for the user who allowed it', async (t) => {
  const bench = await startOauthBench(t);
  const client = bench.documents.client('/client.json');
  const token = await bench.tokenOf('ada');
  const asked = { client };
  const allowed = await allow(bench, asked, { token });
  assert.equal(allowed.answer.get('iss'), bench.issuer);
  assert.equal(allowed.answer.get('state'), 'the-state');
  const { status, json } = await redeem(bench, asked, allowed);
  assert.equal(status, 200, JSON.stringify(json));
  assert.equal(json.token_type, 'Bearer');
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
  void createLocalJWKSet;
});
