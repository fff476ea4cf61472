/**
 * Passkeys at the console: whether pages of an address may ask for one, what a browser is asked for, and what it gave.
 * The challenge of an answer is the digest of that answer, so nothing has to be kept until it comes.
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
import type { Desk } from './desk.ts';

/** How long what is asked for here may be used: somebody has to find their phone. */
const ASKED_FOR_MS = 15 * 60_000;
/** Until when something that is asked for now may be used. */
export const askedUntil = (now: number): string => formatInstant(now + ASKED_FOR_MS);

/** Why pages of this address cannot ask for passkeys, as sentences; `undefined` where they can. */
export function whyNotAt({ localhost }: Pick<Desk, 'localhost'>, origin: string): string | undefined {
  const { hostname, protocol } = new URL(origin);
  if (isIP(hostname.replace(/^\[|\]$/g, '')) !== 0) {
    const number = `A passkey belongs to a name, and ${hostname} is none.`;
    if (localhost === undefined) return `${number} Open the console by its name.`;
    const named = localhost();
    return named === undefined
      ? `${number} The name localhost is not only ours: another program listens at [::1] of this port. End it, and start "reveille up" anew.`
      : `${number} Open the console by its name: with "reveille open", or at ${named}.`;
  }
  if (protocol === 'http:' && hostname !== 'localhost')
    return 'Browsers ask for passkeys over https alone, or on localhost: give the listener a certificate (ROUTER_PUBLIC_TLS_CERT).';
  return undefined;
}

/** The passkeys that this page can ask for; none where the executor cannot be asked. */
export async function passkeysAt(backend: Desk, origin: string): Promise<readonly OfferedPasskey[]> {
  const { intents } = backend;
  if ('missing' in intents || whyNotAt(backend, origin) !== undefined) return [];
  const { passkeys } = await intents.there.passkeys().catch(() => ({ passkeys: [] }));
  return passkeys.filter((one) => one.origin === origin);
}

const hexOf = (base64url: string) => Buffer.from(base64url, 'base64url').toString('hex');

type Said = Pick<GateAnswer, 'approved' | 'call_sha256' | 'displayed_sha256'>;
type About = { readonly intentId: string; readonly nodeId: string };

/** What the script asks the browser for, so that a passkey signs this answer. */
export function answerToSign(said: Said, about: About, passkeys: readonly OfferedPasskey[], now: number): object {
  const expires_at = askedUntil(now);
  const text = answerText({ ...said, expires_at, intent_id: about.intentId, node_id: about.nodeId });
  const ids = passkeys.map(({ credential_id }) => credential_id);
  return { get: { challenge: hexOf(challengeOf(text)), rp_id: passkeys[0]?.rp_id, ids }, fields: { expires_at } };
}

/** The answer as a passkey has signed it; `undefined` where the form brings none. */
export function passkeyAnswerIn(
  form: URLSearchParams,
  said: Said,
  passkeys: readonly OfferedPasskey[],
): GateAnswer | undefined {
  const credentialId = form.get('credential_id');
  if (credentialId === null) return undefined;
  const known = passkeys.find(({ credential_id }) => credential_id === credentialId);
  if (!known)
    throw new ReveilleError('forbidden', 'that passkey is none of yours for this address; it may have been revoked');
  const { approver } = known;
  const passkey = Object.fromEntries(
    ['authenticator_data', 'client_data', 'signature'].map((name) => [name, form.get(name) ?? '']),
  );
  return parseOrThrow(gateAnswerSchema, { ...said, approver, passkey, expires_at: form.get('expires_at') ?? '' });
}

/** Challenges of passkeys that are being made, by whose session; each counts once. */
const making = new WeakMap<object, { readonly challenge: string; readonly until: number }>();

/**
 * What the script asks the browser for, so that it makes a passkey.
 *
 * @param session what lives as long as the session
 * @param known those that need not be made again
 */
export function passkeyToMake(
  session: object,
  about: { origin: string; user: string; name: string; known: readonly OfferedPasskey[]; now: number },
): object {
  const { origin, user, name, known, now } = about;
  const challenge = randomSecret();
  making.set(session, { challenge, until: now + ASKED_FOR_MS });
  return {
    create: {
      ...{ challenge: hexOf(challenge), rp_id: new URL(origin).hostname, user, name },
      // Of each its own: one of the same would take the place of another in the authenticator.
      user_id: hexOf(randomSecret(16)),
      ids: known.map(({ credential_id }) => credential_id),
    },
  };
}

/**
 * The passkey that the browser has made.
 *
 * @throws ReveilleError `conflict` when it was asked for too long ago, or another time, `forbidden` for what is not
 *   what was asked for
 */
export function madePasskey(session: object, form: URLSearchParams, origin: string, now: number): Passkey {
  const asked = making.get(session);
  making.delete(session);
  if (!asked || asked.until <= now)
    throw new ReveilleError('conflict', 'nothing waits for a passkey any more: add it once more');
  const passkey = parseOrThrow(passkeySchema, {
    ...{ credential_id: form.get('credential_id') ?? '', public_key: form.get('public_key') ?? '' },
    ...{ origin, rp_id: new URL(origin).hostname },
  });
  const given = {
    authenticator_data: form.get('authenticator_data') ?? '',
    client_data: form.get('client_data') ?? '',
  };
  const problem = registrationProblem(passkey, given, asked.challenge);
  if (problem === undefined) return passkey;
  throw new ReveilleError('forbidden', `that is not the passkey that was asked for: ${problem}`);
}
