/**
 * Passkeys at the console: whether an address supports them, the requests to the browser, and its answers. The challenge
 * of an approval is the digest of the answer, so the console stores no challenge for it.
 */
import { isIP } from 'node:net';
import { challengeOf, registrationProblem } from '../kit/identity/passkey.ts';
import { randomSecret } from '../kit/identity/secrets.ts';
import { answerText } from '../wire/approver.ts';
import { ReveilleError } from '../wire/errors.ts';
import { type GateAnswer, gateAnswerSchema } from '../wire/executor.ts';
import { type OfferedPasskey, type Passkey, passkeySchema } from '../wire/passkey.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import { parseOrThrow } from '../wire/validate.ts';
import type { ConsoleBackend } from './backend.ts';

/** Lifetime of a request: the user may have to find a phone. */
const REQUEST_MS = 15 * 60_000;
/** When a request that is made now expires. */
export const requestExpiry = (now: number): string => formatInstant(now + REQUEST_MS);

/** Why pages of this address cannot use passkeys; `undefined` if they can. */
export function whyNotAt({ localhost }: Pick<ConsoleBackend, 'localhost'>, origin: string): string | undefined {
  const { hostname, protocol } = new URL(origin);
  if (isIP(hostname.replace(/^\[|\]$/g, '')) !== 0) {
    const number = `A passkey needs a host name, and ${hostname} is an address.`;
    if (localhost === undefined) return `${number} Open the console by its name.`;
    const named = localhost();
    return named === undefined
      ? `${number} Another program listens on this port at [::1], which is localhost as well. Stop it and restart "reveille up".`
      : `${number} Open the console with "reveille open", or at ${named}.`;
  }
  if (protocol === 'http:' && hostname !== 'localhost')
    return 'Browsers permit passkeys only over https or on localhost: set ROUTER_PUBLIC_TLS_CERT to give the listener a certificate.';
  return undefined;
}

/** The passkeys that this page can use; empty if the executor does not answer. */
export async function passkeysAt(backend: ConsoleBackend, origin: string): Promise<readonly OfferedPasskey[]> {
  const { intents } = backend;
  if ('missing' in intents || whyNotAt(backend, origin) !== undefined) return [];
  const { passkeys } = await intents.there.passkeys().catch(() => ({ passkeys: [] }));
  return passkeys.filter((one) => one.origin === origin);
}

const hexOf = (base64url: string) => Buffer.from(base64url, 'base64url').toString('hex');

type Answer = Pick<GateAnswer, 'approved' | 'call_sha256' | 'displayed_sha256'>;
type About = { readonly intentId: string; readonly nodeId: string };

/** The request to the browser for a passkey that signs this answer. */
export function answerToSign(answer: Answer, about: About, passkeys: readonly OfferedPasskey[], now: number): object {
  const expires_at = requestExpiry(now);
  const text = answerText({ ...answer, expires_at, intent_id: about.intentId, node_id: about.nodeId });
  const ids = passkeys.map(({ credential_id }) => credential_id);
  return { get: { challenge: hexOf(challengeOf(text)), rp_id: passkeys[0]?.rp_id, ids }, fields: { expires_at } };
}

/** The answer with the signature of a passkey; `undefined` if the form has none. */
export function passkeyAnswerIn(
  form: URLSearchParams,
  answer: Answer,
  passkeys: readonly OfferedPasskey[],
): GateAnswer | undefined {
  const credentialId = form.get('credential_id');
  if (credentialId === null) return undefined;
  const known = passkeys.find(({ credential_id }) => credential_id === credentialId);
  if (!known)
    throw new ReveilleError('forbidden', 'this passkey is not enrolled for this address: it may have been revoked');
  const { approver } = known;
  const passkey = Object.fromEntries(
    ['authenticator_data', 'client_data', 'signature'].map((name) => [name, form.get(name) ?? '']),
  );
  return parseOrThrow(gateAnswerSchema, { ...answer, approver, passkey, expires_at: form.get('expires_at') ?? '' });
}

/** Open challenges of new passkeys by session; each is used once. */
const challenges = new WeakMap<object, { readonly challenge: string; readonly until: number }>();

/**
 * The request to the browser for a new passkey.
 *
 * @param session an object that lives as long as the session
 * @param about.known existing passkeys, which the browser must not replace
 */
export function passkeyToMake(
  session: object,
  about: { origin: string; user: string; name: string; known: readonly OfferedPasskey[]; now: number },
): object {
  const { origin, user, name, known, now } = about;
  const challenge = randomSecret();
  challenges.set(session, { challenge, until: now + REQUEST_MS });
  return {
    create: {
      ...{ challenge: hexOf(challenge), rp_id: new URL(origin).hostname, user, name },
      // A new id each time: an authenticator replaces a passkey with the same id.
      user_id: hexOf(randomSecret(16)),
      ids: known.map(({ credential_id }) => credential_id),
    },
  };
}

/**
 * The passkey that the browser has created.
 *
 * @throws ReveilleError `conflict` for an expired or unknown request, `forbidden` for a passkey that does not match it
 */
export function madePasskey(session: object, form: URLSearchParams, origin: string, now: number): Passkey {
  const request = challenges.get(session);
  challenges.delete(session);
  if (!request || request.until <= now)
    throw new ReveilleError('conflict', 'the request for this passkey has expired: add it again');
  const passkey = parseOrThrow(passkeySchema, {
    ...{ credential_id: form.get('credential_id') ?? '', public_key: form.get('public_key') ?? '' },
    ...{ origin, rp_id: new URL(origin).hostname },
  });
  const given = {
    authenticator_data: form.get('authenticator_data') ?? '',
    client_data: form.get('client_data') ?? '',
  };
  const problem = registrationProblem(passkey, given, request.challenge);
  if (problem === undefined) return passkey;
  throw new ReveilleError('forbidden', `the passkey does not match the request: ${problem}`);
}
