/** `reveille user`: users of the router's public listener, and their tokens. */
import { localTime, shortTime } from '../../kit/clock/local-time.ts';
import { alarmKeyOf, personKeyMark, rightsOf, taskTokenOf } from '../../kit/identity/person-rights.ts';
import { tokenDigest } from '../../kit/identity/secrets.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ownerOf } from '../../wire/did.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import {
  endedSentences,
  PERSON_NAME_MAX,
  type PersonRights,
  type PersonTokenCreate,
  type PersonTokenMade,
  type PersonTokenView,
} from '../../wire/person.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { SUBMITTER_NAME_MAX } from '../../wire/submitter.ts';
import { adminClient, userOf } from '../access/chronos.ts';
import { executorAdmin } from '../access/executor.ts';
import { routerClient } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { durationFlag, instantFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { fit, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

export type CredentialFlags = { name?: string; expiresIn?: string; expiresAt?: string };

/** Characters that identify a user; the JSON has all of them. */
const USER_CELLS = 16;

function credentialOf({ clock }: CliContext, { name, expiresIn, expiresAt }: CredentialFlags): PersonTokenCreate {
  if (name !== undefined && (name === '' || name.length > PERSON_NAME_MAX))
    throw new UsageError(`--name must have 1 to ${PERSON_NAME_MAX} characters`);
  if (expiresIn !== undefined && expiresAt !== undefined)
    throw new UsageError('--expires-in and --expires-at exclude each other; give one of them');
  const seconds = durationFlag('--expires-in', expiresIn, 60);
  const at =
    seconds === undefined ? instantFlag('--expires-at', expiresAt) : formatInstant(clock.now() + seconds * 1000);
  return { ...(name === undefined ? {} : { name }), ...(at === undefined ? {} : { expires_at: at }) };
}

/**
 * Registers the keys that are derived from the token at chronosd and the executor, where this command has the operator's
 * right, and reports them to the router.
 *
 * @returns missing parts of the console, as sentences
 */
async function arrange(context: CliContext, { user_id, id, name, token }: PersonTokenMade): Promise<string[]> {
  const { CHRONOS_ADMIN_TOKEN: secret, EXECUTOR_ADMIN_TOKEN } = context.settings;
  const rights = rightsOf(token);
  const lacks: string[] = [];
  const given: PersonRights = {};
  const attempt = async (what: string, variable: string, isSet: boolean, work: () => Promise<void>) => {
    const why = isSet
      ? await work().then(
          () => undefined,
          (thrown: unknown) => toReveilleError(thrown).message,
        )
      : `${variable} is not set here`;
    if (why !== undefined)
      lacks.push(`The console will not show their ${what}: ${why}. Create another token afterwards.`);
  };
  await attempt('alarms', 'CHRONOS_ADMIN_TOKEN', secret !== undefined, async () => {
    const public_key = alarmKeyOf(rights).publicKeyHex;
    await adminClient(context).enrollAgent({ label: user_id, public_key });
    given.alarm_key = public_key;
    given.alarm_mark = personKeyMark(user_id, { owner: ownerOf(user_id), publicKey: public_key }, secret!);
  });
  await attempt('tasks', 'EXECUTOR_ADMIN_TOKEN', EXECUTOR_ADMIN_TOKEN !== undefined, async () => {
    const submitter = `${user_id}, at the console (${name})`.slice(0, SUBMITTER_NAME_MAX);
    const digest = tokenDigest(taskTokenOf(rights));
    given.submitter = (await executorAdmin(context).enrolSubmitter(user_id, submitter, digest)).id;
  });
  if (Object.keys(given).length > 0) await routerClient(context).grantUser(user_id, id, given);
  return lacks;
}

async function show(context: CliContext, made: PersonTokenMade): Promise<void> {
  const { out } = context;
  const lacks = made.has_console ? await arrange(context, made) : [];
  const until =
    made.expires_at === undefined
      ? 'does not expire'
      : `until ${localTime(Date.parse(made.expires_at), readerOf(context))}`;
  out.result(made, [
    `${oneLine(made.user_id)} can sign in at the router's public listener with this token (${oneLine(made.name)}, ${until}); it is not shown again:`,
    `  ${out.paint('bold', made.token)}`,
    '  It gives access to this user only: REVEILLE_URL=<address> REVEILLE_TOKEN=<token> reveille chat',
    ...(made.has_console ? ['  and the console: REVEILLE_TOKEN=<token> reveille open --url <address>'] : []),
    ...lacks,
  ]);
}

export async function userAdd(context: CliContext, flags: CredentialFlags, userId: string): Promise<void> {
  await show(context, await routerClient(context).addUser(userOf(context, userId), credentialOf(context, flags)));
}

export async function userToken(context: CliContext, flags: CredentialFlags, userId?: string): Promise<void> {
  await show(context, await routerClient(context).addUserToken(userOf(context, userId), credentialOf(context, flags)));
}

export async function userRevoke(context: CliContext, { token }: { token?: string }, given?: string): Promise<void> {
  const userId = userOf(context, given);
  const router = routerClient(context);
  const { revoked, ended } = await router.revokeUser(
    userId,
    token === undefined ? undefined : await idMeant(context, userId, token),
  );
  const left = (await Promise.all(revoked.map((one) => withdraw(context, one)))).flat();
  const names = revoked.map(({ name, id }) => `${oneLine(name)} (${id})`).join(', ');
  const words = revoked.length === 0 ? `${userId} has no valid token` : `Revoked ${names}: open streams end now`;
  const lines = [...endedSentences(ended).map((sentence) => `  ${sentence}`), ...left];
  context.out.result({ user_id: userId, revoked, ...(ended && { ended }) }, [words, ...lines]);
}

/** Revokes the token's rights at chronosd and the executor. @returns remaining steps, as sentences */
async function withdraw(context: CliContext, { user_id, alarm_key, submitter }: PersonTokenView): Promise<string[]> {
  const attempt = async (work: () => Promise<unknown>, what: string, command: string): Promise<string[]> => {
    try {
      await work();
      return [];
    } catch (thrown) {
      const { code, message } = toReveilleError(thrown);
      return code === 'not_found' ? [] : [`${what} is still valid (${message}); revoke it with: ${command}`];
    }
  };
  const alarms =
    alarm_key === undefined
      ? []
      : await attempt(
          () => adminClient(context).revokeAgent({ label: user_id, public_key: alarm_key }),
          'Its key at chronosd',
          `reveille agent revoke --label ${user_id} --public-key ${alarm_key}`,
        );
  const tasks =
    submitter === undefined
      ? []
      : await attempt(
          () => executorAdmin(context).revokeSubmitter(submitter),
          'Its token at the executor',
          `reveille submitter revoke ${submitter}`,
        );
  return [...alarms, ...tasks];
}

/** By the whole id, or its beginning. */
async function idMeant(context: CliContext, userId: string, given: string): Promise<string> {
  const all = await routerClient(context).users(userId);
  const found = all.filter(({ id }) => given.length >= 4 && id.startsWith(given.toLowerCase()));
  if (found.length === 1) return found[0]!.id;
  const message =
    found.length === 0
      ? `${userId} has no token with this id (got ${given}); see: reveille user list ${userId}`
      : `${given} matches several tokens: ${found.map(({ id }) => id).join(', ')}`;
  throw new ReveilleError(found.length === 0 ? 'not_found' : 'conflict', message);
}

export async function userList(context: CliContext, given?: string): Promise<void> {
  const found = await routerClient(context).users(given === undefined ? undefined : userOf(context, given));
  context.out.list(found, () => renderUsers(found, readerOf(context)));
}

function renderUsers(found: readonly PersonTokenView[], look: Reader): string[] {
  if (found.length === 0) return ['No users. Add one with: reveille user add <user_id>'];
  const when = (instant: string | undefined, none: string) =>
    instant === undefined ? none : shortTime(Date.parse(instant), look);
  const stateOf = ({ state, revoked_at, expires_at }: PersonTokenView) =>
    state === 'active' ? when(expires_at, 'stands') : `${state} ${when(revoked_at ?? expires_at, '')}`;
  const byUser = found.toSorted((one, other) =>
    `${one.user_id} ${one.created_at}`.localeCompare(`${other.user_id} ${other.created_at}`),
  );
  const rows = byUser.map((view) => [
    ...[fit(view.user_id, USER_CELLS), view.id, when(view.created_at, ''), when(view.last_used_at, 'never')],
    ...[view.state === 'active' && view.expires_at !== undefined ? `until ${stateOf(view)}` : stateOf(view)],
    oneLine(view.name),
  ]);
  return table(['USER', 'ID', 'SINCE', 'USED', 'STATE', 'NAME'], rows, look);
}
