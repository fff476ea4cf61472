/** Tokens and shared secrets. */
import { createHmac, createSecretKey, hash, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';

/** A secret nobody can guess, in base64url. */
export function randomSecret(bytes = 32): string {
  return randomBytes(bytes).toString('base64url');
}

/** A secret for signing webhooks, in the form that Standard Webhooks gives to receivers. */
export function signingSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/**
 * SHA-256 of a random token in hex: what a store keeps instead of the token. Not for passwords, which can be guessed.
 */
export function tokenDigest(token: string): string {
  return hash('sha256', token);
}

/**
 * The last secret that was sealed with, ready for use: a daemon has one all its life, and making it ready takes longer
 * than sealing.
 */
let prepared: { secret: string; key: KeyObject } | undefined;

/**
 * HMAC-SHA256 of a text under a secret, in base64url: the seal on a token that the holder can read and must not change.
 */
export function seal(secret: string, text: string): string {
  if (prepared?.secret !== secret) prepared = { secret, key: createSecretKey(secret, 'utf8') };
  return createHmac('sha256', prepared.key).update(text).digest('base64url');
}

/** Whether two secrets are equal, in a time that does not depend on where they differ or how long they are. */
export function sameSecret(one: string, other: string): boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  return timingSafeEqual(digest(one), digest(other));
}
