/**
 * Quiet hours: whether it is quiet at an instant, and until when. Pure; instants are epoch milliseconds. A wall time is
 * written as the milliseconds that the same reading would be in UTC.
 *
 * It is quiet whenever the wall clock of the zone shows a time within the hours. So a clock that is put forward over
 * their end ends them, and one that is put back into them begins them anew.
 */
import { WEEKDAYS } from '../../wire/budget.ts';
import { nextChange, offsetAt } from './zone.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** From `from` on and before `to`, both as `22:00`; past midnight where `from` is the later one. They differ. */
type QuietHours = {
  readonly from: string;
  readonly to: string;
  readonly timezone: string;
  /** On which days quiet hours begin; every day without it. */
  readonly days?: readonly (typeof WEEKDAYS)[number][] | undefined;
};

function timeOfDay(text: string): number {
  const [hours, minutes] = text.split(':').map(Number) as [number, number];
  return (hours * 60 + minutes) * MINUTE_MS;
}

/** The wall time at which the quiet hours that `wall` lies in end; `undefined` when it lies in none. */
function quietUntilWall({ from, to, days }: QuietHours, wall: number): number | undefined {
  const begin = timeOfDay(from);
  const end = timeOfDay(to);
  const midnight = Math.floor(wall / DAY_MS) * DAY_MS;
  const time = wall - midnight;
  const overnight = begin > end;
  /** Days from the present one to the one on which they began. */
  let began: number;
  if (overnight ? time >= begin : time >= begin && time < end) began = 0;
  else if (overnight && time < end) began = -1;
  else return undefined;
  // 1 January 1970 was a Thursday.
  const weekday = WEEKDAYS[(midnight / DAY_MS + began + 3) % 7]!;
  if (days && !days.includes(weekday)) return undefined;
  return midnight + end + (overnight && began === 0 ? DAY_MS : 0);
}

/** The first instant after `at` at which it is no longer quiet; `undefined` when it is not quiet at `at`. */
export function quietUntil(quiet: QuietHours, at: number): number | undefined {
  const { timezone } = quiet;
  let until: number | undefined;
  for (let instant = at; ; ) {
    const offset = offsetAt(timezone, instant);
    const endWall = quietUntilWall(quiet, instant + offset);
    if (endWall === undefined) return until;
    const end = endWall - offset;
    if (offsetAt(timezone, end) === offset) return end;
    // The clock is changed before they end: they go on only if it is quiet by the new reading.
    instant = nextChange(timezone, instant, end);
    until = instant;
  }
}
