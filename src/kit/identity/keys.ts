/** Ed25519 keys (RFC 8032) and their files: the seed as 64 hex characters, mode 0600 (docs/reference/api.md, "Identity of an agent"). */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign, verify } from 'node:crypto';
import { ReveilleError } from '../../wire/errors.ts';
import { readPrivateFile, writePrivateFile } from './private-file.ts';

/** DER prefixes: of a seed's 32 bytes in PKCS#8 (RFC 8410 §7), and of a public key in SPKI (§4). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

const SEED = /^[0-9a-f]{64}$/i;
const SIGNATURE = /^[0-9a-f]{128}$/i;

/** A private key. Neither `console.log` nor `JSON.stringify` shows the seed. */
export class AgentKey {
  /** 64 hex digits, lower case. */
  readonly publicKeyHex: string;
  readonly #seedHex: string;
  readonly #privateKey: KeyObject;

  /** @param seedHex 64 hex digits, checked by the caller */
  constructor(seedHex: string) {
    this.#seedHex = seedHex.toLowerCase();
    const der = Buffer.concat([PKCS8_PREFIX, Buffer.from(seedHex, 'hex')]);
    this.#privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    const spki = createPublicKey(this.#privateKey).export({ format: 'der', type: 'spki' });
    this.publicKeyHex = spki.subarray(SPKI_PREFIX.length).toString('hex');
  }

  /** The secret seed, 64 hex digits: only for the key file. */
  seedHex(): string {
    return this.#seedHex;
  }

  /** Signs a text's UTF-8 form; 128 hex digits. */
  sign(message: string): string {
    return sign(null, Buffer.from(message), this.#privateKey).toString('hex');
  }
}

export function generateKey(): AgentKey {
  return new AgentKey(randomBytes(32).toString('hex'));
}

/** @param publicKeyHex 64 hex digits. @returns `undefined` for bytes that are not a point of the curve */
export function importPublicKey(publicKeyHex: string): KeyObject | undefined {
  try {
    const der = Buffer.concat([SPKI_PREFIX, Buffer.from(publicKeyHex, 'hex')]);
    return createPublicKey({ key: der, format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}

/**
 * Whether `signatureHex` is the signature of `message` under a public key. Malformed input gives `false` and does not
 * throw.
 */
export function verifySignature(publicKeyHex: string, message: string, signatureHex: string): boolean {
  if (!SEED.test(publicKeyHex) || !SIGNATURE.test(signatureHex)) return false;
  const key = importPublicKey(publicKeyHex);
  return key !== undefined && verify(null, Buffer.from(message), key, Buffer.from(signatureHex, 'hex'));
}

/** Writes a key to a new file. @throws ReveilleError `conflict` if the file exists, `unavailable` if writing fails */
export function writeKeyFile(path: string, key: AgentKey): void {
  writePrivateFile(path, `${key.seedHex()}\n`);
}

function parseKey(path: string, text: string): AgentKey {
  const seedHex = text.replace(/\r?\n$/, '');
  if (SEED.test(seedHex)) return new AgentKey(seedHex);
  const message = `${path} must have exactly 64 hex characters (it has ${seedHex.length} characters); restore it from a backup, or move it away and create a new key with: reveille agent whoami`;
  throw new ReveilleError('invalid_request', message);
}

/** As {@link readKeyFile}, but `undefined` if there is no such file. */
export function loadKeyFile(path: string): AgentKey | undefined {
  const text = readPrivateFile(path);
  return text === undefined ? undefined : parseKey(path, text);
}

/**
 * Reads a key file.
 *
 * @throws ReveilleError `not_found` if there is none, `forbidden` if others can read it, `invalid_request` if its
 * contents are not a seed (the error does not contain them), `unavailable` if it cannot be read
 */
export function readKeyFile(path: string): AgentKey {
  const key = loadKeyFile(path);
  if (key) return key;
  throw new ReveilleError(
    'not_found',
    `there is no key at ${path}; create one with: reveille up, or: reveille agent whoami`,
  );
}

/**
 * The key of a file, which is created if it is missing. If several processes do this at once, one of them creates the
 * key and all get the same.
 *
 * @throws ReveilleError as {@link readKeyFile}, except `not_found`
 */
export function loadOrCreateKey(path: string): AgentKey {
  const existing = loadKeyFile(path);
  if (existing) return existing;
  const key = generateKey();
  try {
    writeKeyFile(path, key);
    return key;
  } catch (thrown) {
    if (thrown instanceof ReveilleError && thrown.code === 'conflict') return readKeyFile(path);
    throw thrown;
  }
}
