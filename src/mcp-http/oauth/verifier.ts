/**
 * Verifies access tokens (RFC 9068, and the tokens of any OpenID Connect issuer): issuer, audience (RFC 8707), time and
 * signature. The result names the user and does not contain the token.
 */
import { decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose';
import type { Clock } from '../../kit/clock/clock.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { thrownText } from '../../wire/errors.ts';
import {
  type GrantedToken,
  REMOTE_SCOPES,
  type RemoteCaller,
  type RemoteResource,
  type RemoteScope,
  resourcePath,
  type TrustedIssuer,
} from '../../wire/remote-caller.ts';
import { setBySchema } from '../../wire/set-by.ts';
import type { IssuerKeys } from './issuer-keys.ts';

/** Asymmetric signatures only: with HMAC, an attacker could sign with the issuer's public key as the secret. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
/** Accepted clock skew. */
const TOLERANCE_SECONDS = 30;
const TOKEN_MAX_CHARACTERS = 12 * 1024;

/** Why a token is refused: for the metrics and the operator's log, never for the client. */
export const REFUSALS = [
  ...(['no_token', 'malformed', 'foreign_issuer', 'wrong_audience', 'expired', 'bad_signature', 'bad_claims'] as const),
  ...(['no_user', 'revoked', 'issuer_unavailable'] as const),
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** `about`: for the operator's log. */
export type Verdict =
  | { readonly caller: RemoteCaller; readonly grant: GrantedToken }
  | { readonly refused: Refusal; readonly about?: string };

export type VerifierOptions = {
  issuers: readonly TrustedIssuer[];
  keys: Pick<IssuerKeys, 'of'>;
  /** The public address of the listener, without a trailing slash. */
  publicUrl: () => string;
  clock: Clock;
};

export type TokenVerifier = {
  /** Never rejects. @param token `undefined` if the request has none */
  verify(token: string | undefined, resource: RemoteResource): Promise<Verdict>;
  /** Whether the token of a caller was revoked; for answers that stay open. */
  isRevoked(caller: RemoteCaller): Promise<boolean>;
};

function refusalOf(thrown: unknown): Refusal {
  if (thrown instanceof errors.JWTExpired) return 'expired';
  if (thrown instanceof errors.JWTClaimValidationFailed)
    return thrown.claim === 'aud' ? 'wrong_audience' : 'bad_claims';
  if (thrown instanceof errors.JWSSignatureVerificationFailed) return 'bad_signature';
  if (thrown instanceof errors.JWKSNoMatchingKey || thrown instanceof errors.JWKSMultipleMatchingKeys)
    return 'bad_signature';
  const isOfIssuer = thrown instanceof errors.JWKSTimeout || thrown instanceof errors.JWKSInvalid;
  if (isOfIssuer || !(thrown instanceof errors.JOSEError)) return 'issuer_unavailable';
  return 'malformed';
}

/** A claim of an unverified token, for the log. */
const shown = (claim: unknown) => (JSON.stringify(claim) ?? 'absent').slice(0, 300);

const textOf = (claim: unknown): string | undefined => (typeof claim === 'string' && claim !== '' ? claim : undefined);

/** Issuers name the claim `scope` or `scp`, and write a text or a list. */
function scopesOf({ scope, scp }: JWTPayload): ReadonlySet<RemoteScope> {
  const words = [scope, scp].flat().flatMap((text) => (typeof text === 'string' ? text.split(' ') : []));
  return new Set(REMOTE_SCOPES.filter((known) => words.includes(known)));
}

const grantedOf = (claims: JWTPayload, subject: string, clientId: string): GrantedToken => ({
  ...{ subject, clientId, claims },
  tokenId: claims.jti,
  issuedAt: claims.iat === undefined ? undefined : claims.iat * 1000,
});

export function createVerifier({ issuers, keys, publicUrl, clock }: VerifierOptions): TokenVerifier {
  const known = new Map(issuers.map((issuer) => [issuer.issuer, issuer]));
  const granted = new WeakMap<RemoteCaller, { issuer: TrustedIssuer; token: GrantedToken }>();

  const callerOf = async (issuer: TrustedIssuer, claims: JWTPayload): Promise<Verdict> => {
    const subject = textOf(claims[issuer.subjectClaim]);
    const clientId = textOf(claims.client_id) ?? textOf(claims.azp) ?? textOf(claims.cid);
    if (subject === undefined || clientId === undefined)
      return { refused: 'bad_claims', about: `the token needs the claims ${issuer.subjectClaim} and client_id` };
    const clientName = issuer.clientNameOf?.(clientId) ?? textOf(claims.client_name)?.slice(0, 100);
    const by = setBySchema.safeParse({ kind: 'client', client_id: clientId, name: clientName });
    if (!by.success) return { refused: 'bad_claims', about: 'client_id or client_name is not well-formed' };
    const label = labelSchema.safeParse(issuer.userOf(subject));
    if (!label.success)
      return {
        refused: 'no_user',
        about: `the subject ${JSON.stringify(subject)} has no user here; add it to "users" of the issuer`,
      };
    const token = grantedOf(claims, subject, clientId);
    if (await issuer.isRevoked?.(token)) return { refused: 'revoked' };
    const caller: RemoteCaller = {
      userId: ownerOf(label.data),
      ...{ subject, issuer: issuer.issuer, clientId, clientName },
      scopes: scopesOf(claims),
      expiresAt: claims.exp! * 1000,
    };
    granted.set(caller, { issuer, token });
    return { caller, grant: token };
  };

  return {
    async verify(token, resource) {
      if (token === undefined) return { refused: 'no_token' };
      if (token.length > TOKEN_MAX_CHARACTERS) return { refused: 'malformed' };
      let claimed = '';
      try {
        const { iss, aud } = decodeJwt(token);
        const issuer = iss === undefined ? undefined : known.get(iss);
        if (!issuer) return { refused: 'foreign_issuer', about: `the issuer is ${shown(iss)}` };
        claimed = shown(aud);
        const { payload } = await jwtVerify(token, await keys.of(issuer), {
          algorithms: ALGORITHMS,
          issuer: issuer.issuer,
          audience: [`${publicUrl()}${resourcePath(resource)}`, ...(issuer.audiencesOf?.(resource) ?? [])],
          requiredClaims: ['exp'],
          clockTolerance: TOLERANCE_SECONDS,
          currentDate: new Date(clock.now()),
        });
        return await callerOf(issuer, payload);
      } catch (thrown) {
        const refused = refusalOf(thrown);
        return { refused, about: refused === 'wrong_audience' ? `the audience is ${claimed}` : thrownText(thrown) };
      }
    },
    async isRevoked(caller) {
      const found = granted.get(caller);
      return found === undefined || (await found.issuer.isRevoked?.(found.token)) === true;
    },
  };
}
