/** `reveille approver`: the key that signs answers, and the keys that an executor accepts. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutorAdmin } from '../../executor/client.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import {
  APPROVER_NAME_MAX,
  type ApproverRequest,
  type ApproverView,
  approverRequestSchema,
} from '../../wire/approver.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type PasskeyRequest, passkeyRequestSchema } from '../../wire/passkey.ts';
import { checkInput } from '../../wire/validate.ts';
import { userOf } from '../access/chronos.ts';
import { executorAdmin } from '../access/executor.ts';
import { ignored, orUndefined } from '../access/unreachable.ts';
import {
  type KnownApprover,
  knownApprover,
  loadOrMakeApprover,
  openApprover,
  sealApprover,
  unsealApprover,
} from '../approver/approver-key.ts';
import { askPassphrase, passphraseFrom } from '../approver/passphrase.ts';
import { enrollmentRequest, isActive, revocationRequest, vouchedFor } from '../approver/statements.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { fileFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { fit, table } from '../screens/columns.ts';
import type { Output } from '../screens/output.ts';
import { readerOf } from '../screens/reader.ts';
import { facts } from '../screens/render.ts';

export type ApproverFlags = { user?: string; name?: string; requestFile?: string };

/** Characters that identify a user; the JSON has all of them. */
const USER_CELLS = 16;
const KEY_BEGINNING = /^[0-9a-f]{8,64}$/;

function keyFacts({ publicKey, name, madeAt, kept, file }: KnownApprover) {
  return { approver: publicKey, name, made_at: madeAt, kept, sealed: kept === 'sealed file', file };
}

function keyLines(context: CliContext, known: KnownApprover): string[] {
  const { approver, name, made_at, kept, file } = keyFacts(known);
  const where =
    kept === 'file' || kept === 'sealed file' ? `${kept}, ${oneLine(file)}` : `${kept}; noted in ${oneLine(file)}`;
  const open =
    kept === 'file' ? ['', 'Any program of yours can read it. Seal it with a passphrase: reveille approver seal'] : [];
  const look = readerOf(context);
  return [
    ...facts(
      [
        ['approver', approver],
        ['name', oneLine(name)],
        ['kept in', where],
        ['made', made_at],
      ],
      look,
    ),
    ...open,
  ];
}

/** Shows the public key without reading the secret. */
export async function approverShow(context: CliContext): Promise<void> {
  const known = knownApprover(context.environment);
  if (!known)
    throw new ReveilleError(
      'not_found',
      "this computer has no approver's key; create and enroll one with: reveille approver enroll",
    );
  const revoked = await revocationOf(context, known);
  const warning =
    revoked &&
    context.out.paint('red', `REVOKED at ${revoked} for ${userOf(context, undefined)}: it ${revokedRemedy(known)}`);
  const lines = [...keyLines(context, known), ...(warning === undefined ? [] : ['', warning])];
  context.out.result({ ...keyFacts(known), ...(revoked && { revoked_at: revoked }) }, lines);
}

const revokedRemedy = ({ file }: KnownApprover) =>
  `cannot answer. For a new key, move ${oneLine(file)} away and run: reveille approver enroll`;

/** When this user's executor revoked the key; `undefined` when it is not revoked or the executor does not answer. */
async function revocationOf(context: CliContext, { publicKey }: KnownApprover): Promise<string | undefined> {
  const list = await orUndefined(() => executorAdmin(context).approvers(userOf(context, undefined)))?.catch(ignored);
  return list?.approvers.find(({ approver }) => approver === publicKey)?.revoked_at;
}

function enrolled({ out }: CliContext, view: ApproverView): void {
  out.result(view, [`Enrolled ${view.approver} (${oneLine(view.name)}) as an approver of ${view.user}`]);
}

/** Ignores the error that a voucher is missing. */
function unlessUnvouched(error: unknown): undefined {
  if (error instanceof ReveilleError && error.code === 'forbidden' && error.message.startsWith('voucher')) return;
  throw error;
}

/** Creates the user's key if missing, and enrolls it. With another active key, that key must vouch for it. */
export async function approverEnroll(context: CliContext, flags: ApproverFlags): Promise<void> {
  if (flags.requestFile !== undefined) return vouch(context, flags.requestFile);
  const { environment, out, clock } = context;
  const name = flags.name;
  if (name !== undefined && (name === '' || name.length > APPROVER_NAME_MAX))
    throw new UsageError(`--name must have 1 to ${APPROVER_NAME_MAX} characters`);
  const user = userOf(context, flags.user);
  const admin = executorAdmin(context);
  const known = await loadOrMakeApprover(environment, clock.now());
  const list = await admin.approvers(user);
  const there = list.approvers.find((view) => view.approver === known.publicKey && isActive(view));
  if (there) return out.result(there, [`${known.publicKey} is already an approver of ${user}`]);
  if (list.approvers.some(({ approver, revoked_at }) => approver === known.publicKey && revoked_at !== undefined))
    throw new ReveilleError(
      'conflict',
      `the key ${known.publicKey} was revoked for ${user}: it ${revokedRemedy(known)}`,
    );
  const key = await openApprover(environment, askPassphrase(context));
  const request = enrollmentRequest(key, { name: name ?? known.name, user, executor: list.executor }, clock.now());
  if (!list.approvers.some(isActive)) {
    // Signed by itself: a key that is active for another user here may have to vouch for itself.
    const made = await admin.enroll(vouchedFor(request, key)).catch(unlessUnvouched);
    if (made) return enrolled(context, made);
  }
  // The request is the result: it goes to an active approver.
  out.remark(`An active approver must sign this request within 15 minutes. Send it to them; they run:`);
  out.remark('  reveille approver enroll --request-file <file>');
  out.result({ request }, JSON.stringify({ request }));
  context.process.exitCode = EXIT.failed;
}

function requestIn(file: string): ApproverRequest | PasskeyRequest {
  const text = fileFlag('--request-file', file);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(
      `--request-file ${file} must contain the output of "reveille approver enroll" on the other computer, or of the console`,
      cause,
    );
  }
  const request = (value as { request?: object } | null)?.request;
  const isPasskey = typeof request === 'object' && request !== null && 'passkey' in request;
  const checked = isPasskey ? checkInput(passkeyRequestSchema, request) : checkInput(approverRequestSchema, request);
  if ('problems' in checked) throw new UsageError(`--request-file ${file}: ${checked.problems[0]!.sentence}`);
  return checked.value;
}

/** Signs the enrollment request of another key. */
async function vouch(context: CliContext, file: string): Promise<void> {
  const { environment, out } = context;
  const request = requestIn(file);
  const admin = executorAdmin(context);
  const { executor } = await admin.approvers(request.user);
  if (request.executor !== executor)
    throw new ReveilleError(
      'conflict',
      `the request is for another executor (${request.executor}) than the one at ${admin.url}`,
    );
  const who = 'passkey' in request ? `A passkey for ${oneLine(request.passkey.origin)}` : request.approver;
  out.line(`${who} (${oneLine(request.name)}) asks to approve for ${request.user}.`);
  const key = await openApprover(environment, askPassphrase(context));
  enrolled(context, await admin.enroll(vouchedFor(request, key)));
}

const FORGED = 'its row was changed outside the executor';

/** The status column of the list. */
const state = ({ revoked_at, forged }: ApproverView) =>
  forged ? 'INVALID' : revoked_at === undefined ? 'active' : 'revoked';

/** A remark about a key. */
function stateLines(view: ApproverView, out: Output): string[] {
  const { revoked_at, revoked_by, forged, enrolled_at, enrolled_by, passkey } = view;
  const where = passkey === undefined ? '' : `a passkey for ${oneLine(passkey.origin)}, `;
  const enrolledLine = out.paint('dim', `    ${where}enrolled ${enrolled_at} by ${enrolled_by.slice(0, 16)}`);
  if (forged) return [enrolledLine, out.paint('red', `    ${FORGED}`)];
  if (revoked_at === undefined) return [enrolledLine];
  return [enrolledLine, out.paint('yellow', `    revoked ${revoked_at} by ${revoked_by?.slice(0, 16)}`)];
}

export async function approverList(context: CliContext, flags: { user?: string }): Promise<void> {
  const { out, environment } = context;
  const list = await executorAdmin(context).approvers(
    flags.user === undefined ? undefined : userOf(context, flags.user),
  );
  if (out.json) {
    for (const view of list.approvers) out.result(view, []);
    for (const reset of list.resets) out.result({ reset }, []);
    return;
  }
  const own = knownApprover(environment)?.publicKey;
  if (list.approvers.length === 0)
    out.line('No approver is enrolled: nothing can be approved. See: reveille approver enroll');
  else {
    const rows = list.approvers.map((view) => [
      `${view.approver.slice(0, 16)}${view.approver === own ? ' (yours)' : ''}`,
      ...[fit(view.user, USER_CELLS), state(view), oneLine(view.name)],
    ]);
    const [heading, ...lines] = table(['APPROVER', 'USER', 'STATE', 'NAME'], rows, readerOf(context));
    out.line(heading);
    for (const [at, line] of lines.entries())
      for (const shownLine of [line, ...stateLines(list.approvers[at]!, out)]) out.line(shownLine);
  }
  out.line(`The executor signs receipts with ${list.executor}`);
  for (const { user, at } of list.resets)
    out.line(
      out.paint(
        'red',
        `The operator RESET the approvers of ${user} at ${at}. If you did not expect that, approvals since then are invalid.`,
      ),
    );
}

async function keyMeant(
  admin: ExecutorAdmin,
  user: string,
  beginning: string,
): Promise<{ approver: string; executor: string }> {
  if (!KEY_BEGINNING.test(beginning))
    throw new UsageError(
      'the key must be 64 lower-case hex digits, or at least the first 8 of them; see: reveille approver list',
    );
  const { approvers, executor } = await admin.approvers(user);
  const [only, ...others] = approvers.filter(({ approver }) => approver.startsWith(beginning));
  if (only === undefined)
    throw new ReveilleError('not_found', `${user} has no approver whose key begins with ${beginning}`);
  if (others.length > 0)
    throw new ReveilleError('conflict', `several keys of ${user} begin with ${beginning}; give more of it`);
  return { approver: only.approver, executor };
}

export async function approverRevoke(context: CliContext, flags: { user?: string }, beginning: string): Promise<void> {
  const { out, environment, clock } = context;
  const user = userOf(context, flags.user);
  const admin = executorAdmin(context);
  const meant = await keyMeant(admin, user, beginning);
  const key = await openApprover(environment, askPassphrase(context));
  const view = await admin.revoke(revocationRequest(key, { ...meant, user }, clock.now()));
  out.result(view, [`Revoked ${view.approver} (${oneLine(view.name)}): it cannot approve for ${user} any more`]);
}

export async function approverSeal(context: CliContext): Promise<void> {
  const { environment, out } = context;
  const known = knownApprover(environment);
  const fresh = passphraseFrom(context, 'New passphrase', true);
  // A file has one passphrase; a sealed key is opened first.
  if (known?.kept === 'sealed file')
    throw new ReveilleError('conflict', 'the key is already sealed; unseal it first with: reveille approver unseal');
  const sealed = await sealApprover(environment, { old: askPassphrase(context), fresh });
  out.result(keyFacts(sealed), [`Sealed. The key in ${oneLine(sealed.file)} needs its passphrase for every answer.`]);
}

export async function approverUnseal(context: CliContext): Promise<void> {
  const open = await unsealApprover(context.environment, askPassphrase(context));
  context.out.result(keyFacts(open), keyLines(context, open));
}

/** For a lost key: runs on the executor's own folder while it is stopped. The reset stays on record. */
export async function approverReset(context: CliContext, flags: { user?: string }): Promise<void> {
  if (flags.user === undefined) throw new UsageError('--user is missing: the user whose approvers are reset');
  const { clock, out, settings } = context;
  const user = userOf(context, flags.user);
  // The journal's database takes longer to load than the other commands here.
  const [{ parseExecutorConfig }, { openJournal }, { loadSigningKey }, { silentLogger }] = await Promise.all([
    import('../../executor/config.ts'),
    import('../../executor/journal/journal.ts'),
    import('../../executor/receipt/chain.ts'),
    import('../../kit/log/log.ts'),
  ]);
  const { dataDir, bounds } = parseExecutorConfig({ ...settings, EXECUTOR_DEV: '1' });
  if (!existsSync(join(dataDir, 'journal.db')))
    throw new ReveilleError(
      'not_found',
      `there is no executor's journal in ${dataDir}; set EXECUTOR_DATA_DIR to its folder`,
    );
  const key = loadSigningKey(join(dataDir, 'executor.key'));
  const journal = openJournal({ dataDir, key, clock, log: silentLogger, bounds });
  try {
    const revoked = journal.roster.reset(user);
    out.result({ user, revoked }, [
      out.paint('red', `Reset the approvers of ${user}: ${revoked} revoked. The reset stays on record.`),
      '  start the executor and enroll a key with: reveille approver enroll',
    ]);
  } finally {
    await journal.close();
  }
}
