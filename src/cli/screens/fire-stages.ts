/** The stages that the latest fires of an alarm reached. Pure. */

import { formatDuration, formatLateness } from '../../kit/clock/duration.ts';
import { wallTime } from '../../kit/clock/local-time.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { FireView } from '../../wire/alarm.ts';
import { replyLines, waitsWords } from './log-screen.ts';
import { facts, type Reader } from './render.ts';

/** Fires that are shown in full. */
const FIRES_SHOWN = 3;

const instant = (text: string) => Date.parse(text);

/** The attempts of each fire, latest fire and attempt first. */
function byFire(fires: readonly FireView[]): FireView[][] {
  const attempts = new Map<string, FireView[]>();
  for (const fire of fires) attempts.set(fire.fire_id, [...(attempts.get(fire.fire_id) ?? []), fire]);
  return [...attempts.values()];
}

/** The outcome of the turn as text, with its error if any. */
function endOf({ ok, error }: NonNullable<FireView['turn']>): string {
  if (ok === true) return 'done';
  const why = error === undefined ? '' : `: ${oneLine(error)}`;
  return ok === false ? `failed${why}` : `outcome unknown${why}`;
}

/** Text for a fire without an accepted attempt. */
function notAccepted(attempts: readonly FireView[]): string {
  if (attempts[0]!.outcome === 'missed') return 'no, it was missed';
  return attempts.some(({ outcome }) => outcome === 'unknown') ? 'not known' : 'not yet';
}

function stagesOf(attempts: readonly FireView[], look: Reader): string[] {
  const latest = attempts[0]!;
  const first = attempts.reduce((one, other) => (other.attempt < one.attempt ? other : one));
  const due = instant(latest.scheduled_for);
  const { turn } = latest;
  const at = (text: string | undefined) => {
    if (text === undefined) return undefined;
    const after = instant(text) - due;
    return after < 0 ? wallTime(instant(text), look) : `${wallTime(instant(text), look)}  +${formatDuration(after)}`;
  };
  const acceptedAt = attempts.find(({ accepted_at }) => accepted_at !== undefined)?.accepted_at;
  const finishedAt = at(turn?.finished_at);
  const waits = turn === undefined && acceptedAt !== undefined;
  const waitsAgain = turn?.waits !== undefined && turn.finished_at === undefined;
  return facts(
    [
      [
        'due',
        `${wallTime(due, look)}  ${first.attempt === 1 ? formatLateness(first.lateness_ms, first.late_because) : ''}`.trimEnd(),
      ],
      ['machine ready', at(attempts.find(({ machine_ready_at }) => machine_ready_at !== undefined)?.machine_ready_at)],
      [
        'accepted',
        acceptedAt === undefined ? (turn === undefined ? notAccepted(attempts) : undefined) : at(acceptedAt),
      ],
      ['turn started', at(turn?.started_at)],
      ['turn finished', turn && finishedAt !== undefined ? `${finishedAt}  ${endOf(turn)}` : undefined],
      ['turn', waits ? 'accepted; no turn report yet' : undefined],
      [
        'turn',
        waitsAgain ? waitsWords(turn!.waits!.retry_at, turn!.waits!.error, look).replace(/^turn /, '') : undefined,
      ],
    ],
    look,
  ).concat(turn?.reply === undefined ? [] : replyLines(turn.reply, look).map((line) => `  ${line}`));
}

/** One block per fire, latest first: its due time, and the time of each stage. */
export function renderFireStages(fires: readonly FireView[], look: Reader): string[] {
  const shown = byFire(fires).slice(0, FIRES_SHOWN);
  if (shown.length === 0) return [];
  const title = shown.length === 1 ? 'How far it got' : `How far the latest ${shown.length} got`;
  return [
    '',
    look.paint('dim', title),
    ...shown.flatMap((attempts, n) => [...(n > 0 ? [''] : []), ...stagesOf(attempts, look)]),
  ];
}
