/** Checks who can approve: the key of this computer, and the executor's roster of this user. */
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { ApproverList } from '../../wire/approver.ts';
import { ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { labelOf } from '../access/chronos.ts';
import { executorAdmin } from '../access/executor.ts';
import { orUndefined } from '../access/unreachable.ts';
import { type KnownApprover, knownApprover } from '../approver/approver-key.ts';
import { isActive } from '../approver/statements.ts';
import type { CliContext } from '../context.ts';
import { brokenBy, type Check } from './check.ts';

const ENROLL = 'enroll it with: reveille approver enroll';
const SEAL = 'seal it with a passphrase: reveille approver seal';

/** Whether other programs can answer with the key of this computer. */
export function checkApproverKey({ environment }: Pick<CliContext, 'environment'>): Check | undefined {
  const name = "approver's key";
  const known = knownApprover(environment);
  if (known === undefined) return undefined;
  const { kept, file } = known;
  if (kept === 'sealed file') return { name, status: 'ok', detail: `sealed with a passphrase, in ${file}` };
  const who =
    kept === 'file'
      ? `stored in ${file}: every program that can read your files can approve with it`
      : `in the ${kept}: while that is unlocked, most programs of yours can approve with it`;
  return { name, status: 'note', detail: `not sealed, ${who}`, remedy: SEAL };
}

/** Whether a user has approvers, and whether this computer has one of their keys. */
function checkStanding({ approvers }: ApproverList, user: string, known: KnownApprover | undefined): Check {
  const name = 'approvers';
  const standing = approvers.filter(isActive);
  const own = approvers.find(({ approver }) => approver === known?.publicKey);
  if (standing.length === 0) {
    const detail = `${user} has no approver: questions of the executor wait until they expire`;
    const remedy = own ? anew(known!) : 'enroll a key with: reveille approver enroll';
    return { name, status: 'warning', detail, remedy };
  }
  const keys = standing.filter(({ passkey }) => passkey === undefined).length;
  const passkeys = standing.length - keys;
  const also = passkeys === 0 ? '' : passkeys === 1 ? ' and 1 passkey' : ` and ${passkeys} passkeys`;
  const count = `${keys === 1 ? '1 active key' : `${keys} active keys`}${also}`;
  if (known === undefined) {
    const detail = `${count} for ${user}; this computer has none of the keys, so nothing is approved from here`;
    return { name, status: 'note', detail, remedy: 'create and request one with: reveille approver enroll' };
  }
  if (own && isActive(own)) return { name, status: 'ok', detail: `${count} for ${user}, this computer's key included` };
  const key = `the key of this computer (${known.publicKey.slice(0, 16)}…)`;
  if (own?.revoked_at !== undefined) {
    const detail = `${key} was revoked at ${own.revoked_at}: its answers are rejected`;
    return { name, status: 'warning', detail, remedy: anew(known) };
  }
  const detail = `${key} is not among the approvers of ${user}: its answers are rejected`;
  return { name, status: 'warning', detail, remedy: ENROLL };
}

/** A revoked key stays revoked. */
const anew = ({ file }: KnownApprover) => `move ${file} away, then enroll a new key with: reveille approver enroll`;

/** After a reset the first key is accepted without a voucher. This user knows it when it is the key of this computer. */
function checkReset(
  { approvers, resets }: ApproverList,
  user: string,
  known: KnownApprover | undefined,
): Check | undefined {
  const at = resets.at(-1)?.at;
  if (at === undefined) return undefined;
  const own = approvers.find((view) => view.approver === known?.publicKey && isActive(view));
  const isOwn = own?.enrolled_by === 'operator' && own.enrolled_at >= at;
  const since = isOwn ? 'the key of this computer was the first after it' : 'keys enrolled since may approve';
  return {
    name: 'approvers reset',
    status: isOwn ? 'note' : 'warning',
    detail: `the approvers of ${user} were reset by the operator at ${at}; ${since}`,
    remedy: 'if you did not expect that, approvals since then are invalid; see: reveille approver list',
  };
}

function checkForged({ approvers }: ApproverList, user: string): Check | undefined {
  const forged = approvers.filter((view) => view.forged);
  if (forged.length === 0) return undefined;
  const which = forged.map(({ approver, name }) => `${approver.slice(0, 16)}… (${oneLine(name)})`).join(', ');
  return {
    name: 'forged approvers',
    status: 'broken',
    detail: `the roster of ${user} was changed outside the executor: ${which}; these rows are invalid`,
    remedy: "a program can write to the executor's data folder: find it, then see: reveille approver list",
  };
}

/** The roster of this computer's user, as its operator sees it. */
export async function checkApprovers(context: CliContext): Promise<(Check | undefined)[]> {
  const name = 'approvers';
  const label = orUndefined(() => labelOf(context));
  if (label === undefined) return [];
  const user = ownerOf(label);
  try {
    const list = await executorAdmin(context).approvers(user);
    const known = orUndefined(() => knownApprover(context.environment));
    return [checkStanding(list, user, known), checkReset(list, user, known), checkForged(list, user)];
  } catch (error) {
    // A client on another computer need not be the operator.
    if (error instanceof ReveilleError && error.code === 'forbidden')
      return [{ name, status: 'note', detail: `not asked: ${error.message}` }];
    return [brokenBy(name, error)];
  }
}
