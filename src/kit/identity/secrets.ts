/** Tokens and shared secrets. */
import { createHmac, createSecretKey, hash, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';

/** A random secret, in base64url. */
export function randomSecret(bytes = 32): string {
  return randomBytes(bytes).toString('base64url');
}

/** A secret for signing webhooks, in the format of Standard Webhooks. */
export function signingSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/**
 * SHA-256 of a random token in hex, which stores keep instead of the token. Not for passwords, which can be guessed.
 */
export function tokenDigest(token: string): string {
  return hash('sha256', token);
}

/**
 * The last used secret as a key object: a daemon uses one secret, and creating the object takes longer than the HMAC.
 */
let prepared: { secret: string; key: KeyObject } | undefined;

/** HMAC-SHA256 of a text under a secret, in base64url, to protect a readable token from changes. */
export function seal(secret: string, text: string): string {
  if (prepared?.secret !== secret) prepared = { secret, key: createSecretKey(secret, 'utf8') };
  return createHmac('sha256', prepared.key).update(text).digest('base64url');
}

/** Whether two secrets are equal, in constant time for any content and length. */
export function sameSecret(one: string, other: string): boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  return timingSafeEqual(digest(one), digest(other));
}
