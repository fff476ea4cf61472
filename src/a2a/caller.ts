/** Verified callers: agents with a valid credential. */
import { createHash } from 'node:crypto';
import { oneLine } from '../kit/text/hidden-characters.ts';
import type { RemoteCaller } from '../wire/remote-caller.ts';
import type { AlarmSetter } from './alarm-skill.ts';

/** The right to send messages to the user's agent, and the right to set alarms. */
export const A2A_SCOPES = { ask: 'agent:ask', setAlarm: 'alarms:write' } as const;

/** As `RemoteCaller`; a personal token of the user has all scopes. */
export type A2aCaller = Pick<RemoteCaller, 'userId' | 'subject' | 'issuer' | 'clientId' | 'clientName'> & {
  readonly scopes: ReadonlySet<string>;
};

/** A verified request. */
export type Authorized = {
  readonly caller: A2aCaller;
  /** Whether the credential is still valid: streams outlive its verification. */
  readonly isValid: () => boolean | Promise<boolean>;
  /**
   * The alarms of the user; new ones have the caller as their author.
   *
   * @throws ReveilleError `forbidden` with the reason if the credential has no right to alarms
   */
  readonly alarms: () => AlarmSetter | Promise<AlarmSetter>;
};

/**
 * Verifies a bearer token; `undefined` for any that is not valid.
 *
 * @throws ReveilleError `rate_limited` after many wrong tokens
 */
export type Authenticate = (
  token: string,
  remoteAddress: string,
) => Authorized | undefined | Promise<Authorized | undefined>;

const digest = (facts: readonly string[]) =>
  createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 32);

/** Identifies a client of a user. Tasks belong to it; another client of the same user does not see them. */
export function callerKey({ userId, issuer, subject, clientId }: A2aCaller): string {
  return digest(['caller', userId, issuer, subject, clientId]);
}

/** The issuer of personal tokens in caller keys, because personal tokens have no OAuth issuer. */
export const PERSONAL_ISSUER = 'urn:reveille:personal-token';

/** The conversation for a context of a caller: contexts of different callers are different conversations. */
export function conversationOf(caller: string, contextId: string): string {
  return `a2a-${digest(['conversation', caller, contextId])}`;
}

/** The context of a message that names none: the same for a repetition. */
export const contextFor = (caller: string, messageId: string): string => digest(['context', caller, messageId]);

const NAME_CHARACTERS = 200;

/** The name of a caller for the user and the model, on one line. */
export function nameOf({ clientName, clientId }: A2aCaller): string {
  const id = oneLine(clientId);
  const name = clientName === undefined ? id : `${oneLine(clientName)} (client ${id})`;
  return name.slice(0, NAME_CHARACTERS).toWellFormed();
}
