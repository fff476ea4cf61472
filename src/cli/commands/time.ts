/** `reveille time`: a day or a week of the person, as chronometric has recorded it. Writes nothing into the record. */

import type { Occasion } from '../../chronometric/tools/occasion.ts';
import { dayRuleOf, viewDay, viewWeek } from '../../chronometric/view/day-view.ts';
import { instantOf } from '../../chronometric/view/logical-days.ts';
import { printable } from '../../kit/text/hidden-characters.ts';
import type { DayView } from '../../wire/chronometric-view.ts';
import { showValue } from '../../wire/validate.ts';
import { type ChronometricAccess, chronometricAccess } from '../access/chronometric.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { wrap } from '../screens/columns.ts';
import type { Look } from '../screens/render.ts';
import { renderDay } from '../screens/time-screen.ts';
import { dateWords } from '../screens/time-words.ts';
import { renderWeek } from '../screens/week-screen.ts';

export type TimeFlags = { week?: boolean; date?: string };

const FIRST_STEPS = [
  'Chronometric keeps time while an agent CLI runs it. Add it to yours once, such as:',
  '',
  '  claude mcp add --scope user chronometric -- reveille chronometric',
  '  codex mcp add chronometric -- reveille chronometric',
  '',
  'Then say what you are about to do; the agent marks the start and the end of it. More: docs/chronometric.md',
];

/** What is looked at where nothing was ever recorded: nothing, without making a file for it. */
const NO_RECORD = { sessionsBetween: () => [], spansBetween: () => [] };

function instantAt(date: string | undefined, occasion: Occasion): number {
  if (date === undefined) return occasion.now;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date))
    throw new UsageError(`--date must be a date such as 2026-06-15 (got ${showValue(date)})`);
  const instant = instantOf(dayRuleOf(occasion), date);
  if (instant === undefined) throw new UsageError(`--date ${date} is no day in ${occasion.timezone}`);
  return instant;
}

const isEmpty = ({ sessions, stretches, forgotten_session: forgotten }: DayView) =>
  sessions.length === 0 && stretches.length === 0 && forgotten === undefined;

function nothing(when: string, hasState: boolean, look: Look): string[] {
  const steps = FIRST_STEPS.flatMap((line) => (line.startsWith(' ') ? [line] : wrap(line, look.width)));
  return [...wrap(`Nothing is recorded for ${when}.`, look.width), ...(hasState ? [] : ['', ...steps])];
}

function show({ occasion, hasState, state }: ChronometricAccess, { out }: CliContext, { week, date }: TimeFlags): void {
  const look: Look = { now: occasion.now, zone: occasion.timezone, width: out.columns, paint: out.paint };
  const at = instantAt(date, occasion);
  const record = hasState ? state : NO_RECORD;
  if (week) {
    const view = viewWeek(record, occasion, at);
    const last = view.days.at(-1)!;
    const empty = view.days.every(isEmpty);
    out.result(
      view,
      empty ? nothing(`the seven days to ${dateWords(last.date)}`, hasState, look) : renderWeek(view, look),
    );
  } else {
    const view = viewDay(record, occasion, at);
    out.result(
      view,
      isEmpty(view)
        ? nothing(date === undefined ? 'today yet' : dateWords(view.date), hasState, look)
        : renderDay(view, look),
    );
  }
  if (occasion.unreadable !== undefined && !out.json)
    out.remark(`Shown without your profile: ${printable(occasion.unreadable)}`);
}

export async function time(context: CliContext, flags: TimeFlags): Promise<void> {
  const access = await chronometricAccess(context);
  try {
    show(access, context, flags);
  } finally {
    access.state.close();
  }
}
