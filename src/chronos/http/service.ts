/** Dependencies of chronosd's routes. */
import type { Clock } from '../../kit/clock/clock.ts';
import { bodyBytes } from '../../kit/http/body.ts';
import type { HttpContext } from '../../kit/http/handlers.ts';
import { PERSON_HEADER, PRINCIPAL_HEADER } from '../../wire/agent.ts';
import type { CheckRequest } from '../../wire/check-verdict.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Looker } from '../../wire/look.ts';
import type { DefinitionLimits } from '../alarm/definition.ts';
import type { Calendars } from '../alarm/holidays.ts';
import type { WordHours } from '../alarm/when.ts';
import { acceptedKey, type EnrollmentMode } from '../auth/enrollment.ts';
import { authorOf, credentialOf, namesOwnConversation, type Principal, readPrincipalToken } from '../auth/principal.ts';
import type { Bound } from '../store/limits.ts';
import type { AlarmStore } from '../store/store.ts';
import { type Admission, type Trust, trustOf } from './admission.ts';

export type ChronosService = {
  store: AlarmStore;
  clock: Clock;
  limits: DefinitionLimits & { maxActiveAlarms: number };
  /** The calendars for the `holidays` of series; by default, none. */
  calendars?: Calendars;
  /** The hours that times in words leave open; all owners are one user. */
  hours?: () => Promise<WordHours>;
  /** How long attempts are kept; 0 or absent: for ever. */
  ledgerDays?: number;
  /** The base of the addresses of webhooks from outside. */
  publicUrl?: string | undefined;
  /** Refuses a check that could never be made; without it, its first fire shows that. */
  tryCheck?: (request: CheckRequest) => Promise<void>;
  /** Limits on requests and storage of clients; without it there are none. */
  admission?: Admission;
  /** Called for every request that a limit refused. */
  onRefused?: (bound: Bound) => void;
  auth: {
    /** Bearer token of `/v1/*`; `undefined` only in development. */
    transportToken: string | undefined;
    /** Bearer token of `/v1/admin/*`; `undefined` only in development. */
    adminToken: string | undefined;
    /** Bearer token of `/internal/*`, shared with the router; `undefined` only in development. */
    wakeToken: string | undefined;
    /** Key of the principal tokens' HMAC. */
    principalSecret: string;
    principalTtlSeconds: number;
    enrollment: EnrollmentMode;
  };
  /** Looks at sources that cannot report by themselves; without it, they are refused. */
  looker?: Pick<Looker, 'look' | 'publicUrl'>;
  /** Notifies the dispatcher that something is due at this instant. */
  onDue: (dueAt: number) => void;
  /**
   * Makes the id of an alarm that is created at an instant; default: the ids of `alarm-id.ts`. A deterministic run
   * passes its own.
   */
  alarmIds?: (now: number) => string;
};

/**
 * The owner that a request acts for.
 *
 * @throws ReveilleError `unauthorized` when the principal token is missing, forged or expired, or its key was revoked
 *   since
 */
export async function callerOf(
  service: ChronosService,
  c: HttpContext,
): Promise<{ owner: string; publicKey: string; trust: Trust }> {
  const { store, clock, auth } = service;
  const now = clock.now();
  const principal = readPrincipalToken(c.req.header(PRINCIPAL_HEADER) ?? '', now, auth.principalSecret);
  const key = principal && (await acceptedKey(store, principal.owner, principal.publicKey, auth.enrollment));
  if (key) return { owner: key.owner, publicKey: key.publicKey, trust: trustOf(key, now) };
  throw new ReveilleError(
    'unauthorized',
    'X-Chronos-Agent must carry a principal token that is still valid; prove your identity again to get one',
  );
}

/** As {@link callerOf}, for requests without limits. */
export async function ownerOfRequest(service: ChronosService, c: HttpContext): Promise<string> {
  return (await callerOf(service, c)).owner;
}

/**
 * The person or program that makes a request, as stored, and the credential with which it is made; `undefined` and the
 * key for the agent itself.
 */
export type Author = {
  readonly author: string | undefined;
  readonly madeBy: string | null;
  /** The router answers for it that a named conversation is the program's own. */
  readonly ownsConversation: boolean;
};

/** @throws ReveilleError as `authorOf` */
export function authorOfRequest(
  { auth, clock }: Pick<ChronosService, 'auth' | 'clock'>,
  c: HttpContext,
  caller: Principal,
): Author {
  const proof = c.req.header(PERSON_HEADER);
  const signed = { method: c.req.method, path: c.req.path, body: bodyBytes(c) };
  const author = authorOf(proof, signed, caller, { token: auth.adminToken, now: clock.now() });
  const madeBy = credentialOf(author, proof, caller.publicKey);
  return { author, madeBy, ownsConversation: namesOwnConversation(proof) };
}
