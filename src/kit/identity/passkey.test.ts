import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import { verifyAuthenticationResponse } from '@simplewebauthn/server';
import { diceOf } from '../../../test/support/random/random.ts';
import type { Assertion, Passkey } from '../../wire/passkey.ts';
import { assertionProblem, challengeOf, passkeyId, placeProblem, registrationProblem, signCountOf } from './passkey.ts';
import { changedAssertion, type Oddity, type PasskeyAlgorithm, testPasskey } from './testing/passkey.ts';

const TEXT = '{"approved":true}';
const ALGORITHMS: readonly PasskeyAlgorithm[] = ['es256', 'eddsa', 'rs256'];

/** The key in COSE form (RFC 9053), which the library expects. */
function coseOf({ public_key }: Passkey): Uint8Array<ArrayBuffer> {
  const jwk = createPublicKey({ key: Buffer.from(public_key, 'hex'), format: 'der', type: 'spki' }).export({
    format: 'jwk',
  });
  const bytes = (text: unknown) => Buffer.from(String(text), 'base64url').toString('hex');
  if (jwk.kty === 'EC')
    return Uint8Array.from(Buffer.from(`a5010203262001215820${bytes(jwk.x)}225820${bytes(jwk.y)}`, 'hex'));
  if (jwk.kty === 'OKP')
    return Uint8Array.from(Buffer.from(`a401010327200621 5820${bytes(jwk.x)}`.replace(' ', ''), 'hex'));
  return Uint8Array.from(Buffer.from(`a401030339010020590100${bytes(jwk.n)}2143${bytes(jwk.e)}`, 'hex'));
}

/** Verdict of an independent library on an assertion. */
async function libraryAccepts(
  passkey: Passkey,
  { authenticator_data, client_data, signature }: Assertion,
): Promise<boolean> {
  const text = (hex: string) => Buffer.from(hex, 'hex').toString('base64url');
  const id = text(passkey.credential_id);
  try {
    const { verified } = await verifyAuthenticationResponse({
      response: {
        ...{ id, rawId: id, type: 'public-key' as const, clientExtensionResults: {} },
        response: {
          authenticatorData: text(authenticator_data),
          clientDataJSON: Buffer.from(client_data).toString('base64url'),
          signature: text(signature),
        },
      },
      expectedChallenge: challengeOf(TEXT),
      expectedOrigin: passkey.origin,
      expectedRPID: passkey.rp_id,
      credential: { id, publicKey: coseOf(passkey), counter: 0 },
      requireUserVerification: true,
    });
    return verified;
  } catch {
    return false;
  }
}

test('an assertion is valid for its text only, with each key type', async () => {
  for (const algorithm of ALGORITHMS) {
    const { passkey, assertion } = testPasskey({ algorithm });
    const given = assertion(TEXT);
    assert.equal(assertionProblem(passkey, given, TEXT), undefined, algorithm);
    assert.equal(await libraryAccepts(passkey, given), true, algorithm);
    assert.match(assertionProblem(passkey, given, `${TEXT} `)!, /another challenge/);
    assert.equal(signCountOf(given.authenticator_data), 1);
  }
});

test('the error names the fault of an assertion, and an independent library refuses it too', async () => {
  const { passkey, assertion } = testPasskey();
  const faults: [RegExp, Oddity][] = [
    [/type webauthn\.get/, { type: 'webauthn.create' }],
    [/challenge/, { challenge: challengeOf('another text') }],
    [/another origin than http:\/\/localhost:8087/, { origin: 'http://localhost:3000' }],
    [/another RP ID than localhost/, { rpId: 'evil.example' }],
    [/UP/, { flags: 0x04 }],
    [/UV/, { flags: 0x01 }],
  ];
  for (const [problem, what] of faults) {
    const given = assertion(TEXT, what);
    assert.match(assertionProblem(passkey, given, TEXT)!, problem);
    assert.equal(await libraryAccepts(passkey, given), false, String(problem));
  }
  // Checks beyond those of the library.
  assert.match(
    assertionProblem(passkey, assertion(TEXT, { more: { crossOrigin: true } }), TEXT)!,
    /embedded in another origin/,
  );
});

test('0 of 1,000 changed assertions are valid, here or in an independent library', async (t) => {
  const dice = diceOf(t);
  const made = ALGORITHMS.map((algorithm) => testPasskey({ algorithm }));
  const given = made.map(({ assertion }) => assertion(TEXT));
  let accepted = 0;
  let acceptedByLibrary = 0;
  for (let tried = 0; tried < 1000; tried++) {
    const at = dice(made.length);
    const forged = changedAssertion(given[at]!, dice);
    if (assertionProblem(made[at]!.passkey, forged, TEXT) === undefined) accepted++;
    // The library accepts some alternative encodings of a signature's numbers; this code accepts only one.
    const isSameSignature = forged.signature === given[at]!.signature;
    if (tried < 300 && isSameSignature && (await libraryAccepts(made[at]!.passkey, forged))) acceptedByLibrary++;
  }
  t.diagnostic(`1000 tried, ${accepted} accepted; of the first 300, ${acceptedByLibrary} accepted by the library`);
  assert.deepEqual([accepted, acceptedByLibrary], [0, 0]);
});

test('a malformed key, signature or data is refused without an exception', (t) => {
  const dice = diceOf(t);
  const garbage = (most: number) =>
    Buffer.from(Array.from({ length: 1 + dice(most) }, () => dice(256))).toString('hex');
  const { passkey, assertion } = testPasskey();
  const given = assertion(TEXT);
  for (let tried = 0; tried < 300; tried++) {
    assert.ok(assertionProblem({ ...passkey, public_key: garbage(120) }, given, TEXT));
    assert.ok(assertionProblem({ ...passkey, public_key: passkey.public_key.slice(0, 54) + garbage(64) }, given, TEXT));
    assert.ok(assertionProblem(passkey, { ...given, signature: garbage(80) }, TEXT));
    assert.ok(assertionProblem(passkey, { ...given, authenticator_data: garbage(60) }, TEXT));
  }
});

test('the id of a passkey depends on its key, its name and its origin', () => {
  const { passkey } = testPasskey();
  const ids = [
    passkey,
    { ...passkey, origin: 'http://localhost:1' },
    { ...passkey, rp_id: 'other' },
    { ...passkey, credential_id: 'ab' },
    { ...passkey, public_key: 'ab' },
  ].map(passkeyId);
  assert.equal(new Set(ids).size, ids.length);
});

test('a new credential must match its name, origin, challenge and id', () => {
  const { passkey, registration } = testPasskey();
  const made = (faults: Oddity = {}) => registration('C', faults);
  const other = testPasskey({ credentialId: '00'.repeat(16) }).registration('C');
  assert.equal(registrationProblem(passkey, made(), 'C'), undefined);
  const faults: [RegExp, Oddity][] = [
    [/type webauthn\.create/, { type: 'webauthn.get' }],
    [/challenge/, { challenge: 'D' }],
    [/another origin/, { origin: 'https://evil.example' }],
    [/another RP ID/, { rpId: 'evil.example' }],
    [/UV/, { flags: 0x41 }],
    [/another credential/, { flags: 0x05 }],
    [/another credential/, { data: (head) => head }],
  ];
  for (const [problem, what] of faults) assert.match(registrationProblem(passkey, made(what), 'C')!, problem);
  assert.match(registrationProblem(passkey, other, 'C')!, /another credential/);
  for (const wrong of [
    { origin: 'http://console.example', rp_id: 'console.example' },
    { origin: 'https://console.example', rp_id: 'example' },
    { origin: 'https://console.example/', rp_id: 'console.example' },
    { origin: 'http://localhost:80', rp_id: 'localhost' },
    { origin: 'nothing' },
  ])
    assert.match(placeProblem({ ...passkey, ...wrong })!, /^(origin|rp_id) must be/);
  assert.equal(
    placeProblem({ ...passkey, origin: 'https://console.example:8443', rp_id: 'console.example' }),
    undefined,
  );
});
