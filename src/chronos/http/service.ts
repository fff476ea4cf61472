/** What chronosd's routes work with. */
import type { Clock } from '../../clock/clock.ts';
import type { HttpContext } from '../../http-kit/environment.ts';
import { PRINCIPAL_HEADER } from '../../wire/agent.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { DefinitionLimits } from '../alarm/definition.ts';
import { type EnrollmentMode, isAccepted } from '../auth/enrollment.ts';
import { readPrincipalToken } from '../auth/principal.ts';
import type { AlarmStore } from '../store/store.ts';

export type ChronosService = {
  store: AlarmStore;
  clock: Clock;
  limits: DefinitionLimits & { maxActiveAlarms: number };
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
  /** Makes the id of an alarm that is created at an instant; ids of `alarm-id.ts` unless given, as where a run must repeat itself. */
  alarmIds?: (now: number) => string;
};

/**
 * Whom a request acts for.
 *
 * @throws ReveilleError `unauthorized` when the principal token is missing, forged, expired, or its key was revoked since
 */
export async function ownerOfRequest(service: ChronosService, c: HttpContext): Promise<string> {
  const { store, clock, auth } = service;
  const principal = readPrincipalToken(c.req.header(PRINCIPAL_HEADER) ?? '', clock.now(), auth.principalSecret);
  if (principal && (await isAccepted(store, principal.owner, principal.publicKey, auth.enrollment)))
    return principal.owner;
  throw new ReveilleError(
    'unauthorized',
    'X-Chronos-Agent must carry a principal token that is still valid; prove your identity anew to get one',
  );
}
