/** `reveille submitter`: tokens of programs that may only submit intents for one user. */
import type { ExecutorAdmin } from '../../executor/client.ts';
import { shortTime } from '../../kit/clock/local-time.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { SUBMITTER_NAME_MAX, type SubmitterView } from '../../wire/submitter.ts';
import { userOf } from '../access/chronos.ts';
import { executorAdmin } from '../access/executor.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { fit, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

const WHOLE_ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;
const SHORT_ID = 8;
/** Characters that identify a user; the JSON has all of them. */
const USER_CELLS = 16;

export async function submitterAdd(context: CliContext, flags: { user?: string }, name: string): Promise<void> {
  if (name === '' || name.length > SUBMITTER_NAME_MAX)
    throw new UsageError(`the name must have 1 to ${SUBMITTER_NAME_MAX} characters`);
  const made = await executorAdmin(context).addSubmitter(userOf(context, flags.user), name);
  context.out.result(made, [
    `Added ${oneLine(made.name)} (${made.id}): it may submit intents for ${made.user}, and cannot approve`,
    `  token  ${made.token}`,
    '  shown this once; give it to an agent as NEO_EXECUTOR_TOKEN',
  ]);
}

export async function submitterList(context: CliContext, flags: { user?: string }): Promise<void> {
  const user = flags.user === undefined ? undefined : userOf(context, flags.user);
  const found = await executorAdmin(context).submitters(user);
  context.out.list(found, () => renderSubmitters(found, readerOf(context)));
}

function renderSubmitters(found: readonly SubmitterView[], look: Reader): string[] {
  if (found.length === 0) return ['No submitters.'];
  const rows = found.map(({ id, name, user: of, created_at, revoked_at }) => [
    ...[id.slice(0, SHORT_ID), shortTime(Date.parse(created_at), look)],
    ...[revoked_at === undefined ? 'stands' : `revoked ${shortTime(Date.parse(revoked_at), look)}`],
    ...[fit(of, USER_CELLS), oneLine(name)],
  ]);
  return table(['ID', 'SINCE', 'STATE', 'USER', 'NAME'], rows, look);
}

/** By the whole id, its beginning, or the name of the only active one. */
async function idMeant(admin: ExecutorAdmin, given: string): Promise<string> {
  if (WHOLE_ID.test(given)) return given;
  const all = await admin.submitters();
  const named = all.filter(({ name, revoked_at }) => name === given && revoked_at === undefined);
  const begins = all.filter(({ id }) => given.length >= 4 && id.startsWith(given.toLowerCase()));
  const found = named.length > 0 ? named : begins;
  const [only, ...others] = found;
  if (only === undefined)
    throw new ReveilleError(
      'not_found',
      `no submitter has this name or id (got ${given}); see: reveille submitter list`,
    );
  if (others.length === 0) return only.id;
  const ids = found.map(({ id }) => id).join(', ');
  throw new ReveilleError('conflict', `${given} matches several submitters; give the id of one: ${ids}`);
}

export async function submitterRevoke(context: CliContext, given: string): Promise<void> {
  const admin = executorAdmin(context);
  const view = await admin.revokeSubmitter(await idMeant(admin, given));
  context.out.result(view, [`Revoked ${oneLine(view.name)} (${view.id}): its token is no longer valid`]);
}
