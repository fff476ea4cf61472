/**
 * Checking what an authenticator has signed, on nobody's word and without asking anybody: WebAuthn Level 3, §7.2, for
 * one credential that is known. A passkey's id is the digest of all that is known of it, so whoever names the id has
 * named its key, its name and the one address whose pages may use it. Pure.
 */
import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { Assertion, Passkey } from '../../wire/passkey.ts';
import { JsonSyntaxError, StrictReader } from '../json/strict-json.ts';

/** §6.1: the digest of the name, a byte of flags, a counter of four; what follows is for others. */
const HEAD_BYTES = 37;
const [PRESENT, VERIFIED, ATTESTED] = [0x01, 0x04, 0x40];
/** §6.5.1: what made the credential, and the length of its id. */
const ATTESTED_HEAD_BYTES = 18;
/** Before a point of P-256 that is written whole, and before one of Ed25519 (RFC 5480, RFC 8410). */
const P256 = '3059301306072a8648ce3d020106082a8648ce3d03010703420004';
const ED25519 = '302a300506032b6570032100';
const RSA_BITS = { least: 2048, most: 4096 };

/** What stands for a passkey where an approver's key stands for a person: 64 hex digits. */
export function passkeyId({ credential_id, origin, public_key, rp_id }: Passkey): string {
  return hash('sha256', canonicalJson({ credential_id, origin, public_key, rp_id }));
}

/** The challenge that asks for a signature over a text: its digest, in base64url without padding. */
export const challengeOf = (text: string): string => hash('sha256', text, 'base64url');

/** The public key, with the digest that its signatures are over; `undefined` for one that is none of the three. */
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

/** How often the authenticator says that it has signed; 0 where it does not count (§6.1.1). */
export const signCountOf = (authenticatorDataHex: string): number =>
  Buffer.from(authenticatorDataHex, 'hex').readUInt32BE(33);

/** Why client data is not what a page of the address got for this challenge. */
function clientProblem(text: string, type: string, challenge: string, origin: string): string | undefined {
  let data: unknown;
  try {
    data = new StrictReader(text, { depth: 256, exact: true, protoMember: true }).onlyDocument();
  } catch (thrown) {
    if (thrown instanceof JsonSyntaxError)
      return `client_data is no JSON that everybody reads alike: ${thrown.message}`;
    throw thrown;
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return 'client_data is no object';
  const said = new Map(Object.entries(data));
  if (said.get('type') !== type) return `client_data is not of type ${type}`;
  if (said.get('challenge') !== challenge) return 'client_data is not about this: its challenge is another one';
  if (said.get('origin') !== origin) return `client_data is of a page of another address than ${origin}`;
  if ((said.has('crossOrigin') && said.get('crossOrigin') !== false) || said.has('topOrigin'))
    return 'client_data is of a page inside a page of somebody else';
  return undefined;
}

/** Why what the authenticator says of itself does not do: another name, nobody there, or nobody who was asked who they are. */
function authenticatorProblem(data: Buffer, rpId: string): string | undefined {
  if (data.length < HEAD_BYTES) return 'authenticator_data is too short';
  if (!data.subarray(0, 32).equals(hash('sha256', rpId, 'buffer')))
    return `authenticator_data is for another name than ${rpId}`;
  const flags = data[32]!;
  if ((flags & PRESENT) === 0) return 'authenticator_data says that nobody was there (UP)';
  return (flags & VERIFIED) === 0 ? 'authenticator_data says that nobody was verified (UV)' : undefined;
}

/**
 * Why an assertion is not one of this passkey over this text; `undefined` when it is. Whether the counter went on is the
 * matter of whoever keeps it.
 */
export function assertionProblem(passkey: Passkey, given: Assertion, text: string): string | undefined {
  const { authenticator_data, client_data, signature } = given;
  const data = Buffer.from(authenticator_data, 'hex');
  const wrong =
    clientProblem(client_data, 'webauthn.get', challengeOf(text), passkey.origin) ??
    authenticatorProblem(data, passkey.rp_id);
  if (wrong !== undefined) return wrong;
  const found = keyOf(passkey.public_key);
  if (!found) return 'public_key is none of P-256, Ed25519, or RSA of 2048 to 4096 bits';
  const signed = Buffer.concat([data, hash('sha256', client_data, 'buffer')]);
  return verify(found.digest, signed, found.key, Buffer.from(signature, 'hex'))
    ? undefined
    : 'its signature is not one of that passkey';
}

/**
 * Why a credential that a browser has made is not one for this name, address and challenge (§7.1, without attestation:
 * what vouches for a passkey is an approver's key).
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
    placeProblem(passkey);
  if (wrong !== undefined) return wrong;
  const id = Buffer.from(passkey.credential_id, 'hex');
  const at = HEAD_BYTES + ATTESTED_HEAD_BYTES;
  const isOf =
    (data[32]! & ATTESTED) !== 0 &&
    data.length >= at + id.length &&
    data.readUInt16BE(at - 2) === id.length &&
    data.subarray(at, at + id.length).equals(id);
  return isOf ? undefined : 'authenticator_data is of another credential';
}

/** Why nobody can have a passkey of this key, name and address. */
export function placeProblem({ origin, public_key, rp_id }: Passkey): string | undefined {
  const url = URL.parse(origin);
  if (url === null || url.origin !== origin) return `origin must be an address without a path (got ${origin})`;
  const isSecure = url.protocol === 'https:' || (url.protocol === 'http:' && rp_id === 'localhost');
  if (!isSecure) return `origin must be https, or http on localhost (got ${origin})`;
  if (url.hostname !== rp_id) return `rp_id must be the name in origin, ${url.hostname} (got ${rp_id})`;
  return keyOf(public_key) ? undefined : 'public_key must be P-256, Ed25519, or RSA of 2048 to 4096 bits';
}
