import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { systemClock } from '../../kit/clock/clock.ts';
import type { GrantedToken, TrustedIssuer } from '../../wire/remote-caller.ts';
import { IssuerKeys } from './issuer-keys.ts';
import { createVerifier } from './verifier.ts';

const ISSUER = 'http://127.0.0.1:8087/oauth';
const PUBLIC = 'https://reveille.example.com';

/** A verifier of an issuer in this process, whose keys need no request. */
async function verifierOf(alg: string, more: Partial<TrustedIssuer> = {}) {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg }] };
  const issuer: TrustedIssuer = {
    ...{ issuer: ISSUER, subjectClaim: 'sub', keys: async () => keys, userOf: (subject: string) => subject, ...more },
  };
  const verifier = createVerifier({
    ...{ issuers: [issuer], clock: systemClock, publicUrl: () => PUBLIC },
    keys: new IssuerKeys({ allow: '', clock: systemClock }),
  });
  const sign = (claims: object = {}) => {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: ISSUER, sub: 'ada', client_id: 'c1', aud: `${PUBLIC}/mcp/chronos`, exp: now + 60, ...claims };
    return new SignJWT(all).setProtectedHeader({ alg, kid: 'k' }).sign(privateKey);
  };
  return { verifier, sign };
}

for (const alg of ['ES256', 'RS256', 'PS256', 'EdDSA'])
  test(`a token by ${alg} names its user and its client, and holds nothing of itself`, async () => {
    const { verifier, sign } = await verifierOf(alg);
    const token = await sign({ scope: 'alarms:read openid intents:read', client_name: 'Chat' });
    const verdict = await verifier.verify(token, 'chronos');
    assert.ok('caller' in verdict, JSON.stringify(verdict));
    const { scopes, expiresAt, ...caller } = verdict.caller;
    assert.deepEqual([...scopes], ['alarms:read', 'intents:read']);
    assert.ok(expiresAt > Date.now());
    const named = { userId: 'ada', subject: 'ada', issuer: ISSUER, clientId: 'c1', clientName: 'Chat' };
    assert.deepEqual(caller, named);
    assert.ok(!JSON.stringify(verdict).includes(token.split('.')[2]!));
  });

test('the id of a user is in lower case if it is a UUID', async () => {
  const { verifier, sign } = await verifierOf('ES256');
  const verdict = await verifier.verify(await sign({ sub: '018F3B1C-0000-7000-8000-00000000000A' }), 'chronos');
  assert.equal('caller' in verdict && verdict.caller.userId, '018f3b1c-0000-7000-8000-00000000000a');
});

test('an issuer can name another audience for an endpoint, which counts for no other', async () => {
  const audiencesOf = (endpoint: string) => (endpoint === 'chronos' ? ['api://alarms'] : []);
  const { verifier, sign } = await verifierOf('ES256', { audiencesOf });
  const token = await sign({ aud: 'api://alarms' });
  assert.ok('caller' in (await verifier.verify(token, 'chronos')));
  assert.deepEqual(await verifier.verify(token, 'intents'), {
    refused: 'wrong_audience',
    about: 'the audience is "api://alarms"',
  });
});

test('a revoked token is refused, and an open answer learns of it', async () => {
  const revoked = new Set<string | undefined>();
  const asked: GrantedToken[] = [];
  const isRevoked = (token: GrantedToken) => {
    asked.push(token);
    return revoked.has(token.tokenId);
  };
  const { verifier, sign } = await verifierOf('ES256', { isRevoked });
  const token = await sign({ jti: 't1', iat: 1_700_000_000, extra: 7 });
  const verdict = await verifier.verify(token, 'chronos');
  assert.ok('caller' in verdict);
  const [{ claims, ...granted }] = asked as [GrantedToken];
  assert.deepEqual(granted, { subject: 'ada', clientId: 'c1', tokenId: 't1', issuedAt: 1_700_000_000_000 });
  assert.equal(claims.extra, 7);
  assert.equal(await verifier.isRevoked(verdict.caller), false);
  revoked.add('t1');
  assert.equal(await verifier.isRevoked(verdict.caller), true);
  assert.deepEqual(await verifier.verify(token, 'chronos'), { refused: 'revoked' });
  assert.equal(await verifier.isRevoked({ ...verdict.caller }), true, 'a caller that it has not verified');
});

test('an error of an issuer is no verdict on the token', async () => {
  const fails = async () => {
    throw new Error('its store is busy');
  };
  for (const more of [{ keys: fails }, { isRevoked: fails }] as const) {
    const { verifier, sign } = await verifierOf('ES256', more as Partial<TrustedIssuer>);
    const verdict = await verifier.verify(await sign(), 'chronos');
    assert.deepEqual(verdict, { refused: 'issuer_unavailable', about: 'its store is busy' });
  }
});
