/**
 * Proves that a person makes a request, not an agent: a MAC with the operator's token (`CHRONOS_ADMIN_TOKEN`), which
 * agents and their programs do not have. The token is not sent. The MAC covers method, path and body, so it is invalid
 * for any other request, and it is valid for a few minutes.
 */
import { hash } from 'node:crypto';
import { sameSecret, seal } from './secrets.ts';

const VERSION = 'person1';
const MAX_AGE_MS = 5 * 60_000;
/** A label's maximum length, with four bytes per character. */
const NAME_MAX_BYTES = 400;

export type Signed = { method: string; path: string; body: string | Uint8Array };

const contentOf = (name: string, at: string, { method, path, body }: Signed) =>
  [VERSION, name, at, method, path, hash('sha256', body)].join('\n');

/**
 * The value of the header `x-chronos-person`.
 *
 * @param name the person's name, 1 to 100 characters
 * @param now epoch ms
 */
export function personProof(name: string, signed: Signed, { secret, now }: { secret: string; now: number }): string {
  const encoded = Buffer.from(name, 'utf8').toString('base64url');
  return [VERSION, encoded, now, seal(secret, contentOf(encoded, String(now), signed))].join('.');
}

/** The name of the person who made the request; `undefined` if the proof is invalid, of another request, or too old. */
export function readPersonProof(
  proof: string,
  signed: Signed,
  { secret, now }: { secret: string; now: number },
): string | undefined {
  const [version, name = '', at = '', mac = '', ...rest] = proof.split('.');
  if (version !== VERSION || rest.length > 0 || !/^\d{1,15}$/.test(at)) return undefined;
  if (!sameSecret(mac, seal(secret, contentOf(name, at, signed)))) return undefined;
  const decoded = Buffer.from(name, 'base64url');
  if (Math.abs(now - Number(at)) > MAX_AGE_MS || decoded.length === 0 || decoded.length > NAME_MAX_BYTES)
    return undefined;
  return decoded.toString('utf8');
}
