/** The stages that the latest fires of an alarm reached. Pure. */

import { formatDuration, formatLateness } from '../../kit/clock/duration.ts';
import { wallTime } from '../../kit/clock/local-time.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { FireView } from '../../wire/alarm.ts';
import { type AlarmNow, type Fire, firesOf } from '../../wire/fire.ts';
import { replyLines, waitsWords } from './log-screen.ts';
import { facts, type Reader } from './render.ts';

const FIRES_SHOWN = 3;

/** The outcome of the turn as text, with its error if any. */
function endOf({ state, error }: Fire): string {
  if (state === 'turn_done') return 'done';
  const why = error === undefined ? '' : `: ${oneLine(error)}`;
  return state === 'turn_failed' ? `failed${why}` : `outcome unknown${why}`;
}

/** Text for a fire without an accepted attempt; `undefined` if its turn is known. */
function notAccepted({ state, next }: Fire): string | undefined {
  if (state === 'missed') return 'no, it was missed';
  if (state === 'delivery_unknown') return 'not known';
  if (state !== 'not_delivered') return undefined;
  return next.step === 'redrive' ? 'no, it was abandoned' : 'not yet';
}

/** The turn of a fire, unless it runs or has ended. */
function waitsFor({ state, next, error }: Fire, look: Reader): string | undefined {
  if (state === 'accepted') return 'accepted; no turn report yet';
  if (state !== 'turn_waits' || next.step !== 'retry') return undefined;
  return waitsWords(next.at ?? look.now, error, look).replace(/^turn /, '');
}

function stagesOf(fire: Fire, look: Reader): string[] {
  const { dueAt, lateness, turn } = fire;
  const at = (instant: number | undefined) => {
    if (instant === undefined) return undefined;
    const after = instant - dueAt;
    return after < 0 ? wallTime(instant, look) : `${wallTime(instant, look)}  +${formatDuration(after)}`;
  };
  const late = lateness === undefined ? '' : formatLateness(lateness.ms, lateness.because);
  const finished = at(fire.turnFinishedAt);
  return facts(
    [
      ['due', `${wallTime(dueAt, look)}  ${late}`.trimEnd()],
      ['machine ready', at(fire.machineReadyAt)],
      ['accepted', at(fire.acceptedAt) ?? notAccepted(fire)],
      ['turn started', at(fire.turnStartedAt)],
      ['turn finished', finished === undefined ? undefined : `${finished}  ${endOf(fire)}`],
      ['turn', waitsFor(fire, look)],
    ],
    look,
  ).concat(turn?.reply === undefined ? [] : replyLines(turn.reply, look).map((line) => `  ${line}`));
}

/**
 * One block per fire, latest first: its due time, and the time of each stage.
 *
 * @param attempts entries of the ledger, latest first
 */
export function renderFireStages(alarm: AlarmNow, attempts: readonly FireView[], look: Reader): string[] {
  const shown = firesOf(attempts, alarm).slice(0, FIRES_SHOWN);
  if (shown.length === 0) return [];
  const title = shown.length === 1 ? 'How far it got' : `How far the latest ${shown.length} got`;
  return [
    '',
    look.paint('dim', title),
    ...shown.flatMap((fire, n) => [...(n > 0 ? [''] : []), ...stagesOf(fire, look)]),
  ];
}
