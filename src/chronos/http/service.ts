/** What chronosd's routes work with. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { HttpContext } from '../../kit/http/environment.ts';
import { PRINCIPAL_HEADER } from '../../wire/agent.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { DefinitionLimits } from '../alarm/definition.ts';
import { acceptedKey, type EnrollmentMode } from '../auth/enrollment.ts';
import { readPrincipalToken } from '../auth/principal.ts';
import type { Bound } from '../store/limits.ts';
import type { AlarmStore } from '../store/store.ts';
import { type Floods, type Standing, standingOf } from './floods.ts';

export type ChronosService = {
  store: AlarmStore;
  clock: Clock;
  limits: DefinitionLimits & { maxActiveAlarms: number };
  /** Bounds on what clients ask for and store; left out, there are none. */
  floods?: Floods;
  /** Told of every request that one of them stopped. */
  onRefused?: (bound: Bound) => void;
  auth: {
    /** Bearer token of `/v1/*`; `undefined` only in development. */
    transportToken: string | undefined;
    /** Bearer token of `/v1/admin/*`; `undefined` only in development. */
    adminToken: string | undefined;
    /** Key of the principal tokens' HMAC. */
    principalSecret: string;
    principalTtlSeconds: number;
    enrollment: EnrollmentMode;
  };
  /** Tells the dispatcher that something is due at this instant. */
  onDue: (dueAt: number) => void;
  /**
   * Makes the id of an alarm that is created at an instant; ids of `alarm-id.ts` unless given, as where a run must
   * repeat itself.
   */
  alarmIds?: (now: number) => string;
};

/**
 * Whom a request acts for.
 *
 * @throws ReveilleError `unauthorized` when the principal token is missing, forged, expired, or its key was revoked
 *   since
 */
export async function callerOf(
  service: ChronosService,
  c: HttpContext,
): Promise<{ owner: string; publicKey: string; standing: Standing }> {
  const { store, clock, auth } = service;
  const now = clock.now();
  const principal = readPrincipalToken(c.req.header(PRINCIPAL_HEADER) ?? '', now, auth.principalSecret);
  const key = principal && (await acceptedKey(store, principal.owner, principal.publicKey, auth.enrollment));
  if (key) return { owner: key.owner, publicKey: key.publicKey, standing: standingOf(key, now) };
  throw new ReveilleError(
    'unauthorized',
    'X-Chronos-Agent must carry a principal token that is still valid; prove your identity anew to get one',
  );
}

/** As {@link callerOf}, for what is not bounded. */
export async function ownerOfRequest(service: ChronosService, c: HttpContext): Promise<string> {
  return (await callerOf(service, c)).owner;
}
