/** Principal tokens: chronosd issues them to itself as short-lived proof that a caller has proved its key. */
import { z } from 'zod';
import {
  isKeyMark,
  type KeyHolder,
  provesConversation,
  readAuthorProof,
  readPersonKeyMark,
  type Signed,
} from '../../kit/identity/person-rights.ts';
import { sameSecret, seal, tokenDigest } from '../../kit/identity/secrets.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { madeByClient, madeByKey, readSetBy, setBySchema, storedSetBy } from '../../wire/set-by.ts';

/**
 * The person or program that makes a request, as stored with an alarm.
 *
 * @param proof the header, for this request or for the key that signs it; `undefined`: the agent itself
 * @param holder the key
 * @param operator the operator's token and the time; without a token no proof of a person is possible
 * @throws ReveilleError `forbidden` when the proof is invalid: the text must not reach the agent as its own
 */
export function authorOf(
  proof: string | undefined,
  signed: Signed,
  holder: KeyHolder,
  { token, now }: { token: string | undefined; now: number },
): string | undefined {
  if (proof === undefined) return undefined;
  const author =
    token === undefined
      ? undefined
      : (readAuthorProof(proof, signed, { secret: token, now }) ?? {
          kind: 'person',
          name: readPersonKeyMark(proof, holder, token),
        });
  const setBy = setBySchema.safeParse(author);
  if (setBy.success) return storedSetBy(setBy.data);
  throw new ReveilleError(
    'forbidden',
    'X-Chronos-Person must prove, with CHRONOS_ADMIN_TOKEN and within five minutes, that a person makes this request; omit it to set an alarm as the agent',
  );
}

/**
 * The credential of a request, as stored with what it makes.
 *
 * @param author as {@link authorOf} returned it for `proof`
 * @returns `null` for the operator's token, which proves a person under any key
 */
export function credentialOf(author: string | undefined, proof: string | undefined, publicKey: string): string | null {
  const by = author === undefined ? undefined : readSetBy(author);
  if (by?.kind === 'client') return madeByClient(by.client_id);
  return by === undefined || isKeyMark(proof ?? '') ? madeByKey(publicKey) : null;
}

/** Whether a proof that {@link authorOf} has accepted says that a named conversation is the program's own. */
export const namesOwnConversation = (proof: string | undefined): boolean =>
  proof !== undefined && provesConversation(proof);

/** The owner that a request acts for, and its key. */
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

type Verified = { secret: string; principal: Principal; expiresAt: number };

/** Verified tokens by their digests. Clients send the same token until it expires. */
const verified = new Map<string, Verified>();
const MOST_VERIFIED = 10_000;

/** The principal of a valid token that has not expired; otherwise `undefined`. */
export function readPrincipalToken(token: string, now: number, secret: string): Principal | undefined {
  const digest = tokenDigest(token);
  const known = verified.get(digest);
  const found = known?.secret === secret ? known : verify(token, secret);
  if (!found) return undefined;
  if (found !== known) {
    if (verified.size >= MOST_VERIFIED) verified.clear();
    verified.set(digest, found);
  }
  return found.expiresAt > now ? found.principal : undefined;
}

function verify(token: string, secret: string): Verified | undefined {
  const [version, content, signature, ...rest] = token.split('.');
  if (version !== VERSION || !content || !signature || rest.length > 0) return undefined;
  if (!sameSecret(signature, seal(secret, `${VERSION}.${content}`))) return undefined;
  // The signature is valid, so this service wrote the claims. The schema rejects tokens of another version.
  const claims = claimsSchema.safeParse(JSON.parse(Buffer.from(content, 'base64url').toString('utf8')));
  if (!claims.success) return undefined;
  const { owner, key: publicKey, exp: expiresAt } = claims.data;
  return { secret, principal: { owner, publicKey }, expiresAt };
}
