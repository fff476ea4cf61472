/** The key that an executor signs receipts with: `executor.key` in its data folder. */
import { createHash } from 'node:crypto';
import { type AgentKey, loadOrCreateKey } from '../../kit/identity/keys.ts';

export type SigningKey = {
  /** SHA-256 of the public key's 32 bytes; part of every envelope. */
  readonly keyId: string;
  /** 64 hex digits. */
  readonly publicKeyHex: string;
  /** Signs a text's UTF-8 form; 128 hex digits. */
  sign(message: string): string;
};

/** @param publicKeyHex 64 hex digits */
export function keyIdOf(publicKeyHex: string): string {
  return createHash('sha256').update(Buffer.from(publicKeyHex, 'hex')).digest('hex');
}

export function signingKey(key: AgentKey): SigningKey {
  const { publicKeyHex } = key;
  return { keyId: keyIdOf(publicKeyHex), publicKeyHex, sign: (message) => key.sign(message) };
}

/**
 * Reads the key file, or creates it with mode 0600.
 *
 * @throws ReveilleError `forbidden` when others can read the file, `invalid_request` when it contains no seed,
 *   `unavailable` when it cannot be read or created
 */
export function loadSigningKey(path: string): SigningKey {
  return signingKey(loadOrCreateKey(path));
}
