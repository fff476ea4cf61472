/**
 * What `reveille up` sees to before an agent is woken: that somebody can approve, and that Neo can hand tasks over and
 * do no more.
 */

import type { ExecutorAdmin } from '../../executor/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { type Home, readSubmitter, writeSubmitter } from '../home/home.ts';
import { loadOrMakeApprover, openApprover } from './approver-key.ts';
import { enrollmentRequest } from './statements.ts';

type Given = { readonly environment: Settings; readonly user: string; readonly now: number };

/** A key that is sealed cannot be enrolled by itself: nobody may be there to open it. */
const isSealed = () =>
  Promise.reject(new ReveilleError('forbidden', 'the key is sealed; enrol it with: reveille approver enroll'));

/**
 * Makes the key of the person whose computer this is and enrols it, where their user has had no approver yet. Asks
 * nobody anything.
 *
 * @returns why nobody can approve from here, as a sentence; `undefined` when somebody can
 */
export async function ensureApprover(
  admin: ExecutorAdmin,
  { environment, user, now }: Given,
): Promise<string | undefined> {
  try {
    const { executor, approvers, resets } = await admin.approvers(user);
    const reset = resets.at(-1)?.at ?? '';
    const standing = approvers.filter(({ revoked_at, forged }) => revoked_at === undefined && !forged);
    const { publicKey, name, file } = await loadOrMakeApprover(environment, now);
    if (standing.some(({ approver }) => approver === publicKey)) return undefined;
    if (standing.length > 0)
      return `the key in ${file} is not among the approvers of ${user}; to approve from here: reveille approver enroll`;
    // After a reset it is the person's turn: the next key is one that they name.
    if (reset !== '')
      return `the approvers of ${user} were reset at ${reset}; enrol your key with: reveille approver enroll`;
    const key = await openApprover(environment, isSealed);
    await admin.enroll(enrollmentRequest(key, { name, user, executor }, now));
    return undefined;
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return `nobody can approve what the executor asks about: ${why}`;
  }
}

/**
 * The token with which this installation's Neo hands tasks over; made once, and anew when the executor does not know it
 * any more.
 */
export async function ensureSubmitter(admin: ExecutorAdmin, home: Home, user: string): Promise<string> {
  const own = readSubmitter(home);
  const standing = await admin.submitters(user);
  if (own && standing.some(({ id, revoked_at }) => id === own.id && revoked_at === undefined)) return own.token;
  const { id, token } = await admin.addSubmitter(user, 'neo');
  writeSubmitter(home, { id, token });
  return token;
}
