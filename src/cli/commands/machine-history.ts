/** `reveille machine history`: what was done to a machine, and by whom. */
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { MACHINE_CHANGES_MAX, type MachineChangeList } from '../../wire/machine-change.ts';
import { routerClient } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { wholeNumberFlag } from '../flags/flags.ts';
import { userOf } from '../flags/machine-user.ts';
import { columns } from '../screens/columns.ts';
import { localTime } from '../screens/local-time.ts';
import { lookOf } from '../screens/look.ts';
import type { Look } from '../screens/render.ts';

export type HistoryFlags = { limit?: string };

const BY = { admin: 'an operator', router: 'the router' } as const;

function renderChanges({ changes, next_cursor: more }: MachineChangeList, look: Look): string[] {
  if (changes.length === 0) return ['No changes on record'];
  const rows = changes.map(({ at, actor, action, fields, state, reason }) => [
    localTime(Date.parse(at), look),
    BY[actor],
    oneLine(action),
    state,
    oneLine(reason === undefined ? fields.join(', ') : `${fields.join(', ')} (${reason})`),
  ]);
  const [heading, ...lines] = columns([['WHEN', 'WHO', 'DID', 'STATE AFTER', 'WHAT CHANGED'], ...rows], look.width);
  const foot = more === undefined ? [] : [look.paint('dim', 'older ones are not shown; --limit shows more')];
  return [look.paint('dim', heading!), ...lines, ...foot];
}

export async function machineHistory(
  context: CliContext,
  flags: HistoryFlags,
  given: string | undefined,
): Promise<void> {
  const { out } = context;
  const limit = wholeNumberFlag('--limit', flags.limit, 1, MACHINE_CHANGES_MAX);
  const found = await routerClient(context).changes(userOf(context, given), limit);
  if (out.json) {
    for (const change of found.changes) out.result(change, []);
    return;
  }
  for (const line of renderChanges(found, lookOf(context))) out.line(line);
}
