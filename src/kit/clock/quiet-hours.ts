/**
 * Quiet hours: whether an instant is quiet, and until when. Pure; instants are epoch milliseconds. A wall time is
 * represented by the milliseconds that its reading would be in UTC.
 *
 * It is quiet while the zone's wall clock is within the hours. A clock that is set forward past their end ends them. A
 * clock that is set back into them begins them again.
 */
import { WEEKDAYS } from '../../wire/budget.ts';
import { nextChange, offsetAt } from './zone.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Half-open interval from `from` to `to`, such as `22:00`; it spans midnight if `from` is later. The two differ. */
type QuietHours = {
  readonly from: string;
  readonly to: string;
  readonly timezone: string;
  /** Days on which quiet hours begin. Default: every day. */
  readonly days?: readonly (typeof WEEKDAYS)[number][] | undefined;
};

function timeOfDay(text: string): number {
  const [hours, minutes] = text.split(':').map(Number) as [number, number];
  return (hours * 60 + minutes) * MINUTE_MS;
}

/** The wall time at which the quiet hours that contain `wall` end; `undefined` if none contain it. */
function quietUntilWall({ from, to, days }: QuietHours, wall: number): number | undefined {
  const begin = timeOfDay(from);
  const end = timeOfDay(to);
  const midnight = Math.floor(wall / DAY_MS) * DAY_MS;
  const time = wall - midnight;
  const overnight = begin > end;
  /** Days from the current day to the one on which they began. */
  let began: number;
  if (overnight ? time >= begin : time >= begin && time < end) began = 0;
  else if (overnight && time < end) began = -1;
  else return undefined;
  // 1 January 1970 was a Thursday.
  const weekday = WEEKDAYS[(midnight / DAY_MS + began + 3) % 7]!;
  if (days && !days.includes(weekday)) return undefined;
  return midnight + end + (overnight && began === 0 ? DAY_MS : 0);
}

/** The first instant after `at` that is not quiet; `undefined` if `at` is not quiet. */
export function quietUntil(quiet: QuietHours, at: number): number | undefined {
  const { timezone } = quiet;
  let until: number | undefined;
  for (let instant = at; ; ) {
    const offset = offsetAt(timezone, instant);
    const endWall = quietUntilWall(quiet, instant + offset);
    if (endWall === undefined) return until;
    const end = endWall - offset;
    if (offsetAt(timezone, end) === offset) return end;
    // The clock changes before they end: they continue only if the new reading is quiet.
    instant = nextChange(timezone, instant, end);
    until = instant;
  }
}
