/** Principal tokens: short-lived proof, made by chronosd for itself, that a caller has shown a key. */
import { z } from 'zod';
import { sameSecret, seal } from '../../kit/identity/secrets.ts';

/** Whom a request acts for, and by which key. */
export type Principal = { owner: string; publicKey: string };

const VERSION = 'p1';
const claimsSchema = z.object({ owner: z.string(), key: z.string(), exp: z.number() });

/**
 * Makes a token: `p1.<claims>.<HMAC-SHA256>`, both parts base64url.
 *
 * @param expiresAt epoch ms
 */
export function mintPrincipalToken(principal: Principal, expiresAt: number, secret: string): string {
  const claims = { owner: principal.owner, key: principal.publicKey, exp: expiresAt };
  const content = Buffer.from(JSON.stringify(claims)).toString('base64url');
  return `${VERSION}.${content}.${seal(secret, `${VERSION}.${content}`)}`;
}

/** The principal of a token that is ours and has not expired; `undefined` for anything else. */
export function readPrincipalToken(token: string, now: number, secret: string): Principal | undefined {
  const [version, content, signature, ...rest] = token.split('.');
  if (version !== VERSION || !content || !signature || rest.length > 0) return undefined;
  if (!sameSecret(signature, seal(secret, `${VERSION}.${content}`))) return undefined;
  // The signature is ours, so the claims are what we wrote; the schema guards against tokens of another version of us.
  const claims = claimsSchema.safeParse(JSON.parse(Buffer.from(content, 'base64url').toString('utf8')));
  if (!claims.success || claims.data.exp <= now) return undefined;
  return { owner: claims.data.owner, publicKey: claims.data.key };
}
