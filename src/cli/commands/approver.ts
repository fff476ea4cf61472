/** `reveille approver`: the key with which a person answers, and whose keys an executor takes answers of. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutorAdmin } from '../../executor/client.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import {
  APPROVER_NAME_MAX,
  type ApproverList,
  type ApproverRequest,
  type ApproverView,
  approverRequestSchema,
} from '../../wire/approver.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type PasskeyRequest, passkeyRequestSchema } from '../../wire/passkey.ts';
import { checkInput } from '../../wire/validate.ts';
import { executorAdmin } from '../access/executor.ts';
import {
  type KnownApprover,
  knownApprover,
  loadOrMakeApprover,
  openApprover,
  sealApprover,
  unsealApprover,
} from '../approver/approver-key.ts';
import { askPassphrase, passphraseFrom } from '../approver/passphrase.ts';
import { enrollmentRequest, revocationRequest, vouchedFor } from '../approver/statements.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exit-status.ts';
import { fileFlag } from '../flags/flags.ts';
import { userOf } from '../flags/machine-user.ts';
import { UsageError } from '../flags/usage-error.ts';
import { columns, fit } from '../screens/columns.ts';
import { lookOf } from '../screens/look.ts';
import type { Output } from '../screens/output.ts';
import { facts } from '../screens/render.ts';

export type ApproverFlags = { user?: string; name?: string; requestFile?: string };

/** Enough to know a user by; the whole of it is in the JSON. */
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
    kept === 'file'
      ? ['', 'Any program of yours can read it: put it under a passphrase with: reveille approver seal']
      : [];
  const look = lookOf(context);
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

/** Shows the public key; no other secret is read for that. */
export async function approverShow(context: CliContext): Promise<void> {
  const known = knownApprover(context.environment);
  if (!known)
    throw new ReveilleError(
      'not_found',
      "no approver's key was made here; make one and enrol it with: reveille approver enroll",
    );
  const revoked = await revocationOf(context, known);
  const warning =
    revoked &&
    context.out.paint('red', `REVOKED at ${revoked} for ${userOf(context, undefined)}: it ${revokedRemedy(known)}`);
  const lines = [...keyLines(context, known), ...(warning === undefined ? [] : ['', warning])];
  context.out.result({ ...keyFacts(known), ...(revoked && { revoked_at: revoked }) }, lines);
}

const revokedRemedy = ({ file }: KnownApprover) =>
  `answers nothing any more. For a new one, move ${oneLine(file)} away and run: reveille approver enroll`;

/**
 * When this user's executor was told that the key does not count any more; nothing where it is not known, or cannot be
 * asked.
 */
async function revocationOf(context: CliContext, { publicKey }: KnownApprover): Promise<string | undefined> {
  try {
    const { approvers } = await executorAdmin(context).approvers(userOf(context, undefined));
    return approvers.find(({ approver }) => approver === publicKey)?.revoked_at;
  } catch (error) {
    if (error instanceof ReveilleError) return undefined;
    throw error;
  }
}

const standsIn = ({ approvers }: ApproverList, key: string) =>
  approvers.find(({ approver, revoked_at, forged }) => approver === key && revoked_at === undefined && !forged);

const isOpen = ({ revoked_at, forged }: ApproverView) => revoked_at === undefined && !forged;

function enrolled({ out }: CliContext, view: ApproverView): void {
  out.result(view, [`Enrolled ${view.approver} (${oneLine(view.name)}) as an approver of ${view.user}`]);
}

/** Passes over that somebody's word is missing. */
function unlessUnvouched(error: unknown): undefined {
  if (error instanceof ReveilleError && error.code === 'forbidden' && error.message.startsWith('voucher')) return;
  throw error;
}

/**
 * Makes this person's key where there is none, and enrols it; where another key stands already, that one has to add its
 * word.
 */
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
  const there = standsIn(list, known.publicKey);
  if (there) return out.result(there, [`${known.publicKey} is an approver of ${user} already`]);
  if (list.approvers.some(({ approver, revoked_at }) => approver === known.publicKey && revoked_at !== undefined))
    throw new ReveilleError(
      'conflict',
      `the key ${known.publicKey} was revoked for ${user}: it ${revokedRemedy(known)}`,
    );
  const key = await openApprover(environment, askPassphrase(context));
  const request = enrollmentRequest(key, { name: name ?? known.name, user, executor: list.executor }, clock.now());
  if (!list.approvers.some(isOpen)) {
    // With its own word: a key that stands for another user here may have to vouch for itself.
    const made = await admin.enroll(vouchedFor(request, key)).catch(unlessUnvouched);
    if (made) return enrolled(context, made);
  }
  // The request is the result: it goes to whoever stands.
  out.remark(
    `An approver who stands here already has to add their word within 15 minutes. Hand this over and run there:`,
  );
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
      `--request-file ${file} must hold what "reveille approver enroll" printed on the other machine, or what the console gave you`,
      cause,
    );
  }
  const request = (value as { request?: object } | null)?.request;
  const isPasskey = typeof request === 'object' && request !== null && 'passkey' in request;
  const checked = isPasskey ? checkInput(passkeyRequestSchema, request) : checkInput(approverRequestSchema, request);
  if ('problems' in checked) throw new UsageError(`--request-file ${file}: ${checked.problems[0]!.sentence}`);
  return checked.value;
}

/** Adds this person's word to another key's request. */
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

const FORGED = 'its row was changed behind the executor’s back';

/** One word for the column of the list. */
const state = ({ revoked_at, forged }: ApproverView) =>
  forged ? 'DOES NOT COUNT' : revoked_at === undefined ? 'stands' : 'revoked';

/** What there is to say of a key beside its row. */
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
    out.line('Nobody is enrolled: nobody can approve anything. See: reveille approver enroll');
  else {
    const rows = list.approvers.map((view) => [
      `${view.approver.slice(0, 16)}${view.approver === own ? ' (yours)' : ''}`,
      ...[fit(view.user, USER_CELLS), state(view), oneLine(view.name)],
    ]);
    const [heading, ...lines] = columns([['APPROVER', 'USER', 'STATE', 'NAME'], ...rows], out.columns);
    out.line(out.paint('dim', heading!));
    for (const [at, line] of lines.entries())
      for (const told of [line, ...stateLines(list.approvers[at]!, out)]) out.line(told);
  }
  out.line(`The executor signs receipts with ${list.executor}`);
  for (const { user, at } of list.resets)
    out.line(
      out.paint(
        'red',
        `The approvers of ${user} were RESET by the operator at ${at}. If that was not you, nothing approved since counts.`,
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
  // One file cannot hold two passphrases; a key that is sealed already is opened first.
  if (known?.kept === 'sealed file')
    throw new ReveilleError(
      'conflict',
      'the key is sealed already; take that off first with: reveille approver unseal',
    );
  const sealed = await sealApprover(environment, { old: askPassphrase(context), fresh });
  out.result(keyFacts(sealed), [`Sealed. Without the passphrase the key in ${oneLine(sealed.file)} answers nothing.`]);
}

export async function approverUnseal(context: CliContext): Promise<void> {
  const open = await unsealApprover(context.environment, askPassphrase(context));
  context.out.result(keyFacts(open), keyLines(context, open));
}

/** For a key that is lost: with the executor stopped, on its own folder. It stays on record, and every list says so. */
export async function approverReset(context: CliContext, flags: { user?: string }): Promise<void> {
  if (flags.user === undefined) throw new UsageError('--user is required: whose approvers are to be reset');
  const { clock, out, settings } = context;
  const user = userOf(context, flags.user);
  // The journal's database costs more to load than the other commands here.
  const [{ parseExecutorConfig }, { openJournal }, { loadSigningKey }, { silentLogger }] = await Promise.all([
    import('../../executor/config.ts'),
    import('../../executor/journal/journal.ts'),
    import('../../executor/receipt/signing-key.ts'),
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
      out.paint('red', `Reset the approvers of ${user}: ${revoked} revoked. This stays on record.`),
      '  start the executor and enrol a key with: reveille approver enroll',
    ]);
  } finally {
    await journal.close();
  }
}
