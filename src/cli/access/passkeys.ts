/**
 * The passkeys of this installation's user. The operator's token opens the roster; the approver's key of this computer
 * vouches for additions and revocations.
 */
import type { PasskeyPort } from '../../console/backend.ts';
import { openApproverWith } from '../approver/approver-key.ts';
import { revocationRequest, signedUntil, vouchedFor } from '../approver/statements.ts';
import type { CliContext } from '../context.ts';
import { executorAdmin } from './executor.ts';

/** @throws ReveilleError when the executor's roster is not accessible from here */
export function passkeyPort(context: CliContext, user: string): PasskeyPort {
  const admin = executorAdmin(context);
  const { environment, clock } = context;
  const open = (passphrase: string | undefined) => openApproverWith(environment, passphrase, () => clock.now());
  return {
    async opens(passphrase) {
      await open(passphrase);
    },

    async list() {
      const { approvers } = await admin.approvers(user);
      return approvers.filter(({ passkey }) => passkey !== undefined);
    },

    async enroll({ passkey, name }, passphrase) {
      const { executor } = await admin.approvers(user);
      const key = await open(passphrase);
      const about = { passkey, name, user, executor, expires_at: signedUntil(clock.now()) };
      return admin.enroll(vouchedFor(about, key));
    },

    async revoke(approver, passphrase) {
      const { executor } = await admin.approvers(user);
      const key = await open(passphrase);
      return admin.revoke(revocationRequest(key, { approver, user, executor }, clock.now()));
    },
  };
}
