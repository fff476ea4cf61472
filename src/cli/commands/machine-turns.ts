/** `reveille machine turns`: what became of the wakes of an agent without a daemon. */
import { oneLine, printable } from '../../kit/text/hidden-characters.ts';
import {
  MACHINE_TURN_STATUSES,
  MACHINE_TURNS_MAX,
  type MachineTurnList,
  type MachineTurnView,
} from '../../wire/machine-turn.ts';
import { routerClient } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag, wholeNumberFlag } from '../flags/flags.ts';
import { userOf } from '../flags/machine-user.ts';
import { columns } from '../screens/columns.ts';
import { localTime } from '../screens/local-time.ts';
import { lookOf } from '../screens/look.ts';
import { facts, type Look } from '../screens/render.ts';

export type TurnFlags = { conversation?: string; fire?: string; status?: string; limit?: string };

const outcomeOf = ({ reply, error, waits_for: waits }: MachineTurnView) => error ?? waits ?? reply ?? '';

function renderTurns({ turns, counts, next_cursor: more }: MachineTurnList, look: Look): string[] {
  if (turns.length === 0) return ['No turns'];
  const rows = turns.map((turn) => [
    localTime(Date.parse(turn.accepted_at), look),
    turn.status,
    turn.conversation_id,
    oneLine(outcomeOf(turn)),
  ]);
  const [heading, ...lines] = columns([['ACCEPTED', 'STATUS', 'CONVERSATION', 'WHAT CAME OF IT'], ...rows], look.width);
  const summary = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  const older = more === undefined ? '' : '; older ones are not shown';
  return [look.paint('dim', heading!), ...lines, look.paint('dim', `${summary.join(', ')} in all${older}`)];
}

/** One turn with all its words. */
function renderTurn(turn: MachineTurnView, look: Look): string[] {
  const at = (instant: string | undefined) =>
    instant === undefined ? undefined : localTime(Date.parse(instant), look);
  const lines = facts(
    [
      ['status', turn.status],
      ['fire', turn.fire_id],
      ['conversation', turn.conversation_id],
      [`session of ${turn.preset}`, turn.session],
      ['accepted', at(turn.accepted_at)],
      ['began', at(turn.started_at)],
      ['over', at(turn.finished_at)],
      ['tried', turn.attempts > 1 ? `${turn.attempts} times` : undefined],
      ['waits for', turn.waits_for === undefined ? undefined : oneLine(turn.waits_for)],
      ['next try', at(turn.next_attempt_at)],
      ['error', turn.error === undefined ? undefined : oneLine(turn.error)],
    ],
    look,
  );
  const reply = turn.reply === undefined ? [] : ['', ...printable(turn.reply).split('\n')];
  return [`Turn ${look.paint('bold', turn.id)}`, ...lines, ...reply];
}

export async function machineTurns(context: CliContext, flags: TurnFlags, given: string | undefined): Promise<void> {
  const { out } = context;
  const status = choiceFlag('--status', flags.status, MACHINE_TURN_STATUSES);
  const limit = wholeNumberFlag('--limit', flags.limit, 1, MACHINE_TURNS_MAX);
  const { conversation, fire } = flags;
  const found = await routerClient(context).turns(userOf(context, given), {
    ...(conversation === undefined ? {} : { conversation_id: conversation }),
    ...(fire === undefined ? {} : { fire_id: fire }),
    ...(status === undefined ? {} : { status }),
    ...(limit === undefined ? {} : { limit: String(limit) }),
  });
  if (out.json) {
    for (const text of found.texts) out.result(text, []);
    return;
  }
  const look = lookOf(context);
  const [only] = fire === undefined ? [] : found.turns;
  for (const line of only ? renderTurn(only, look) : renderTurns(found, look)) out.line(line);
}
