/**
 * Verifies signatures of authenticators offline, for one known credential: WebAuthn Level 3, §7.2. A passkey's id is
 * the digest of all its properties. The id therefore identifies its key, its name and the only origin whose pages may
 * use it. Pure.
 */
import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { isObject } from '../../wire/json.ts';
import type { Assertion, Passkey } from '../../wire/passkey.ts';
import { JsonSyntaxError, StrictReader } from '../json/strict-json.ts';

/** §6.1: digest of the name, one byte of flags, a counter of four bytes; the rest is ignored. */
const HEAD_BYTES = 37;
const [PRESENT, VERIFIED, ATTESTED] = [0x01, 0x04, 0x40];
/** §6.5.1: model of the authenticator, and the length of the credential's id. */
const ATTESTED_HEAD_BYTES = 18;
/** Prefixes of an uncompressed P-256 point, and of an Ed25519 point (RFC 5480, RFC 8410). */
const P256 = '3059301306072a8648ce3d020106082a8648ce3d03010703420004';
const ED25519 = '302a300506032b6570032100';
const RSA_BITS = { least: 2048, most: 4096 };
const WRONG_KEY = 'public_key must be P-256, Ed25519, or RSA of 2048 to 4096 bits';

/** The id of a passkey, used where other approvers have a public key: 64 hex digits. */
export function passkeyId({ credential_id, origin, public_key, rp_id }: Passkey): string {
  return hash('sha256', canonicalJson({ credential_id, origin, public_key, rp_id }));
}

/** The challenge for a signature over a text: its digest, in base64url without padding. */
export const challengeOf = (text: string): string => hash('sha256', text, 'base64url');

/** The public key with the digest algorithm of its signatures; `undefined` for other key types. */
function keyOf(publicKeyHex: string): { key: KeyObject; digest: 'sha256' | null } | undefined {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: Buffer.from(publicKeyHex, 'hex'), format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (publicKeyHex.startsWith(P256) && publicKeyHex.length === P256.length + 128) return { key, digest: 'sha256' };
  if (publicKeyHex.startsWith(ED25519) && publicKeyHex.length === ED25519.length + 64) return { key, digest: null };
  const isRsa = key.asymmetricKeyType === 'rsa' && bits >= RSA_BITS.least && bits <= RSA_BITS.most;
  return isRsa ? { key, digest: 'sha256' } : undefined;
}

/** The authenticator's signature counter; 0 if it does not count (§6.1.1). */
export const signCountOf = (authenticatorDataHex: string): number =>
  Buffer.from(authenticatorDataHex, 'hex').readUInt32BE(33);

/** Why client data does not belong to a page of the origin with this challenge. */
function clientProblem(text: string, type: string, challenge: string, origin: string): string | undefined {
  let data: unknown;
  try {
    data = new StrictReader(text, { depth: 256, exact: true, protoMember: true }).onlyDocument();
  } catch (thrown) {
    if (thrown instanceof JsonSyntaxError) return `client_data is not unambiguous JSON: ${thrown.message}`;
    throw thrown;
  }
  if (!isObject(data)) return 'client_data is not an object';
  const members = new Map(Object.entries(data));
  if (members.get('type') !== type) return `client_data is not of type ${type}`;
  if (members.get('challenge') !== challenge) return 'client_data has another challenge';
  if (members.get('origin') !== origin) return `client_data is from another origin than ${origin}`;
  if ((members.has('crossOrigin') && members.get('crossOrigin') !== false) || members.has('topOrigin'))
    return 'client_data is from a page embedded in another origin';
  return undefined;
}

/** Why authenticator data is not acceptable: another name, no user present, or no user verified. */
function authenticatorProblem(data: Buffer, rpId: string): string | undefined {
  if (data.length < HEAD_BYTES) return 'authenticator_data is too short';
  if (!data.subarray(0, 32).equals(hash('sha256', rpId, 'buffer')))
    return `authenticator_data is for another RP ID than ${rpId}`;
  const flags = data[32]!;
  if ((flags & PRESENT) === 0) return 'authenticator_data reports no user presence (UP)';
  return (flags & VERIFIED) === 0 ? 'authenticator_data reports no user verification (UV)' : undefined;
}

/**
 * Why an assertion is not valid for this passkey and text; `undefined` if it is. The caller checks that the counter has
 * increased.
 */
export function assertionProblem(passkey: Passkey, given: Assertion, text: string): string | undefined {
  const { authenticator_data, client_data, signature } = given;
  const data = Buffer.from(authenticator_data, 'hex');
  const wrong =
    clientProblem(client_data, 'webauthn.get', challengeOf(text), passkey.origin) ??
    authenticatorProblem(data, passkey.rp_id);
  if (wrong !== undefined) return wrong;
  const found = keyOf(passkey.public_key);
  if (!found) return WRONG_KEY;
  const signed = Buffer.concat([data, hash('sha256', client_data, 'buffer')]);
  return verify(found.digest, signed, found.key, Buffer.from(signature, 'hex'))
    ? undefined
    : 'the signature is not valid for this passkey';
}

/**
 * Why a new credential from a browser is not valid for this name, origin and challenge (§7.1 without attestation,
 * because an approver's key vouches for the passkey).
 */
export function registrationProblem(
  passkey: Passkey,
  given: Pick<Assertion, 'authenticator_data' | 'client_data'>,
  challenge: string,
): string | undefined {
  const data = Buffer.from(given.authenticator_data, 'hex');
  const wrong =
    clientProblem(given.client_data, 'webauthn.create', challenge, passkey.origin) ??
    authenticatorProblem(data, passkey.rp_id) ??
    originProblem(passkey);
  if (wrong !== undefined) return wrong;
  const id = Buffer.from(passkey.credential_id, 'hex');
  const at = HEAD_BYTES + ATTESTED_HEAD_BYTES;
  const matches =
    (data[32]! & ATTESTED) !== 0 &&
    data.length >= at + id.length &&
    data.readUInt16BE(at - 2) === id.length &&
    data.subarray(at, at + id.length).equals(id);
  return matches ? undefined : 'authenticator_data belongs to another credential';
}

/** Why a passkey with this key, name and origin cannot exist. */
export function originProblem({ origin, public_key, rp_id }: Passkey): string | undefined {
  const url = URL.parse(origin);
  if (url === null || url.origin !== origin) return `origin must be an origin without a path (got ${origin})`;
  const isSecure = url.protocol === 'https:' || (url.protocol === 'http:' && rp_id === 'localhost');
  if (!isSecure) return `origin must be https, or http on localhost (got ${origin})`;
  if (url.hostname !== rp_id) return `rp_id must be the host name of origin, ${url.hostname} (got ${rp_id})`;
  return keyOf(public_key) ? undefined : WRONG_KEY;
}
