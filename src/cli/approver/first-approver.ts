/** Preparations of `reveille up` before an agent is woken: an approver, and a submitter's token for Neo. */

import type { ExecutorAdmin } from '../../executor/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { type Home, readSubmitter, writeSubmitter } from '../home/home.ts';
import { loadOrMakeApprover, openApprover } from './approver-key.ts';
import { enrollmentRequest, isActive } from './statements.ts';

type Given = { readonly environment: Settings; readonly user: string; readonly now: number };

/** A sealed key cannot be enrolled without the user. */
const isSealed = () =>
  Promise.reject(new ReveilleError('forbidden', 'the key is sealed; enroll it with: reveille approver enroll'));

/**
 * Creates and enrolls the user's key if the user never had an approver. No question is asked.
 *
 * @returns why nothing can be approved from here, as a sentence; `undefined` when approval is possible
 */
export async function ensureApprover(
  admin: ExecutorAdmin,
  { environment, user, now }: Given,
): Promise<string | undefined> {
  try {
    const { executor, approvers, resets } = await admin.approvers(user);
    const reset = resets.at(-1)?.at ?? '';
    const standing = approvers.filter(isActive);
    const { publicKey, name, file } = await loadOrMakeApprover(environment, now);
    if (standing.some(({ approver }) => approver === publicKey)) return undefined;
    if (standing.length > 0)
      return `the key in ${file} is not among the approvers of ${user}; to approve from here: reveille approver enroll`;
    // After a reset the user decides which key is enrolled next.
    if (reset !== '')
      return `the approvers of ${user} were reset at ${reset}; enroll your key with: reveille approver enroll`;
    const key = await openApprover(environment, isSealed);
    await admin.enroll(enrollmentRequest(key, { name, user, executor }, now));
    return undefined;
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return `intents cannot be approved: ${why}`;
  }
}

/** The token with which Neo submits intents. It is created once, and again when the executor no longer accepts it. */
export async function ensureSubmitter(admin: ExecutorAdmin, home: Home, user: string): Promise<string> {
  const own = readSubmitter(home);
  const standing = await admin.submitters(user);
  if (own && standing.some(({ id, revoked_at }) => id === own.id && revoked_at === undefined)) return own.token;
  const { id, token } = await admin.addSubmitter(user, 'neo');
  writeSubmitter(home, { id, token });
  return token;
}
