/** `reveille submitter`: tokens of programs that hand tasks over for one user, and can do nothing else. */

import { oneLine } from '../../text-kit/hidden-characters.ts';
import { SUBMITTER_NAME_MAX } from '../../wire/submitter.ts';
import { columns } from '../columns.ts';
import type { CliContext } from '../context.ts';
import { executorAdmin } from '../executor-admin.ts';
import { userOf } from '../machine-user.ts';
import { UsageError } from '../usage-error.ts';

export async function submitterAdd(context: CliContext, flags: { user?: string }, name: string): Promise<void> {
  if (name === '' || name.length > SUBMITTER_NAME_MAX)
    throw new UsageError(`the name must have 1 to ${SUBMITTER_NAME_MAX} characters`);
  const made = await executorAdmin(context).addSubmitter(userOf(context, flags.user), name);
  context.out.result(made, [
    `Added ${oneLine(made.name)} (${made.id}): it may hand tasks over for ${made.user}, and not answer`,
    `  token  ${made.token}`,
    '  shown this once; give it to an agent as NEO_EXECUTOR_TOKEN',
  ]);
}

export async function submitterList(context: CliContext, flags: { user?: string }): Promise<void> {
  const { out } = context;
  const user = flags.user === undefined ? undefined : userOf(context, flags.user);
  const found = await executorAdmin(context).submitters(user);
  if (out.json) {
    for (const view of found) out.result(view, []);
    return;
  }
  if (found.length === 0) return out.line('No submitters.');
  const rows = found.map(({ id, name, user: of, created_at, revoked_at }) => [
    ...[id, of, created_at, revoked_at === undefined ? 'stands' : `revoked ${revoked_at}`, oneLine(name)],
  ]);
  const [heading, ...lines] = columns([['ID', 'USER', 'SINCE', 'STATE', 'NAME'], ...rows], out.columns);
  for (const line of [out.paint('dim', heading!), ...lines]) out.line(line);
}

export async function submitterRevoke(context: CliContext, id: string): Promise<void> {
  const view = await executorAdmin(context).revokeSubmitter(id);
  context.out.result(view, [`Revoked ${oneLine(view.name)} (${view.id}): its token opens nothing any more`]);
}
