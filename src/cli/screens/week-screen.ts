/** Seven days of chronometric on a terminal: how long each was active, and what was meant against what came of it. Pure. */
import type { DayView, WeekView } from '../../wire/chronometric-view.ts';
import { fit, pad, textWidth, wrap } from './columns.ts';
import type { Look } from './render.ts';
import { totalWords, zoneWords } from './time-screen.ts';
import { dateWords, harmless, inMinutes, lengthOfTime, shortDate } from './time-words.ts';

const GAP = '  ';
const INDENT = '    ';
const BAR_WIDTH = 24;
const LONGEST_LENGTH = '23 h 59 min'.length;

const activeOf = ({ totals }: DayView) => lengthOfTime(totals.active_duration);

function sessionLine({ intent, summary, ending }: DayView['sessions'][number], look: Look): string {
  const open = ending === 'open' ? ' (open)' : '';
  const came = summary === null ? open : ` → ${harmless(summary)}`;
  const room = look.width - INDENT.length;
  // What came of it is not to be crowded out by what was meant.
  const meant = fit(harmless(intent), Math.max(room - textWidth(came), Math.ceil(room / 2)));
  return fit(`${INDENT}${meant}${came}`, look.width);
}

function dayLines(day: DayView, longest: number, look: Look): string[] {
  const active = activeOf(day);
  const head = shortDate(day.day_of_week, day.date);
  if (active === 0 && day.sessions.length === 0) return [look.paint('dim', `${head}${GAP}-`)];
  const room = Math.min(BAR_WIDTH, look.width - textWidth(head) - LONGEST_LENGTH - 2 * GAP.length);
  const cells = room < 4 || active === 0 ? 0 : Math.max(1, Math.round((active / longest) * room));
  const bar = cells === 0 ? '' : `${GAP}${look.paint('green', '█'.repeat(cells))}`;
  return [
    `${head}${GAP}${pad(inMinutes(active), bar === '' ? 0 : LONGEST_LENGTH)}${bar}`,
    ...day.sessions.map((session) => look.paint('dim', sessionLine(session, look))),
  ];
}

/** What `reveille time --week` shows. */
export function renderWeek(week: WeekView, look: Look): string[] {
  const last = week.days.at(-1)!;
  const longest = Math.max(1, ...week.days.map(activeOf));
  return [
    ...wrap(`The seven days to ${dateWords(last.date)}`, look.width).map((line) => look.paint('bold', line)),
    look.paint('dim', zoneWords(week.timezone, last.from)),
    '',
    ...week.days.flatMap((day) => dayLines(day, longest, look)),
    '',
    ...wrap(totalWords(week.totals), look.width).map((line) => look.paint('dim', line)),
  ];
}
