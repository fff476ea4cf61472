/** The executor's rosters as an operator sees them: who may answer for whom, and who may hand tasks over (contracts §9a). */
import type { z } from 'zod';
import type { AgentKey } from '../../kit/identity/keys.ts';
import {
  type ApproverList,
  type ApproverRequest,
  type ApproverView,
  approverListSchema,
  approverViewSchema,
  type EnrollmentStatement,
  enrollmentText,
  type RevocationRequest,
  type RevocationStatement,
  revocationText,
} from '../../wire/approver.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import {
  type SubmitterView,
  submitterListSchema,
  submitterMadeSchema,
  submitterViewSchema,
} from '../../wire/submitter.ts';
import type { CliContext } from '../context.ts';
import { type ExecutorPlace, executorExchange, findExecutor } from './executor.ts';
import { type Attend, attend } from './unreachable.ts';

/** How long what is signed here may be used; long enough for clocks that differ, too short to be kept. */
const SIGNED_FOR_MS = 15 * 60 * 1000;

/** Until when something that is signed now may be used. */
export const signedUntil = (now: number): string => formatInstant(now + SIGNED_FOR_MS);

function createExecutorAdmin(place: ExecutorPlace, within: Attend) {
  const { call, read } = executorExchange(place, { tokenName: 'EXECUTOR_ADMIN_TOKEN', within });
  const query = (user: string | undefined) => (user === undefined ? '' : `?user=${encodeURIComponent(user)}`);
  const told = async <T extends z.ZodType>(as: T, ...request: Parameters<typeof call>): Promise<z.output<T>> =>
    read(as, await call(...request)).value;
  return {
    url: place.url,
    approvers: (user?: string): Promise<ApproverList> => told(approverListSchema, 'GET', `/approvers${query(user)}`),
    enroll: (request: ApproverRequest): Promise<ApproverView> =>
      told(approverViewSchema, 'POST', '/approvers', request),
    revoke: (request: RevocationRequest): Promise<ApproverView> =>
      told(approverViewSchema, 'DELETE', '/approvers', request),
    submitters: async (user?: string): Promise<readonly SubmitterView[]> =>
      (await told(submitterListSchema, 'GET', `/submitters${query(user)}`)).submitters,
    addSubmitter: (user: string, name: string): Promise<z.output<typeof submitterMadeSchema>> =>
      told(submitterMadeSchema, 'POST', '/submitters', { user, name }),
    revokeSubmitter: (id: string): Promise<SubmitterView> => told(submitterViewSchema, 'DELETE', '/submitters', { id }),
  };
}
export type ExecutorAdmin = ReturnType<typeof createExecutorAdmin>;

/** As an operator whose place is known. */
export const executorAdminAt = ({ home, clock }: CliContext, url: string, adminToken: string): ExecutorAdmin =>
  createExecutorAdmin({ url, token: adminToken }, attend({ url, home, clock }));

/** The operator's side of the executor that this machine's commands talk to. @throws ReveilleError `forbidden` without its token */
export function executorAdmin(context: CliContext): ExecutorAdmin {
  const { url, isHere } = findExecutor(context);
  // What was made for this machine's executor goes to no other.
  const { settings, environment, home, clock } = context;
  const token = isHere ? settings.EXECUTOR_ADMIN_TOKEN : environment.EXECUTOR_ADMIN_TOKEN;
  if (token) return createExecutorAdmin({ url, token }, attend({ url, home, clock }));
  throw new ReveilleError('forbidden', `EXECUTOR_ADMIN_TOKEN is not set; set it to that of the executor at ${url}`);
}

type Ours = Omit<EnrollmentStatement, 'expires_at'>;

/** A request of a key to become an approver, with its own signature; one that stands has to add another unless it is the first. */
export function enrollmentRequest(key: AgentKey, about: Omit<Ours, 'approver'>, now: number): ApproverRequest {
  const statement = { ...about, approver: key.publicKeyHex, expires_at: signedUntil(now) };
  return { ...statement, signature: key.sign(enrollmentText(statement)) };
}

/** The same with the word of an approver who stands. */
export function vouchedFor(request: ApproverRequest, key: AgentKey): ApproverRequest {
  const signature = key.sign(enrollmentText(request));
  return { ...request, voucher: { approver: key.publicKeyHex, signature } };
}

/** What ends a key, on the word of one that stands. */
export function revocationRequest(
  key: AgentKey,
  about: Omit<RevocationStatement, 'expires_at'>,
  now: number,
): RevocationRequest {
  const statement = { ...about, expires_at: signedUntil(now) };
  const signature = key.sign(revocationText(statement));
  return { ...statement, voucher: { approver: key.publicKeyHex, signature } };
}
