/** `reveille calendar`: the calendars whose days a series can exclude. */
import { addCalendar, type CalendarSummary, listCalendars, removeCalendar } from '../../chronos/calendars.ts';
import { eachAlarm } from '../../chronos/client.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { calendarsFolderOf } from '../access/calendars.ts';
import { alarmClient } from '../access/chronos.ts';
import { ignored } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { fileFlag } from '../flags/flags.ts';
import { counted, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';

const rangeOf = ({ days, from, to }: CalendarSummary) =>
  days === 0 ? 'no days' : `${counted(days, 'day')}, ${from} to ${to}`;

const SHOWN_PROBLEMS = 10;

/** The events that cannot be used. */
function leftOutLines({ left_out = 0, problems = [] }: CalendarSummary): string[] {
  if (left_out === 0) return [];
  const shown = problems.slice(0, SHOWN_PROBLEMS).map((problem) => `    ${oneLine(problem)}`);
  const more = left_out > shown.length ? [`    and ${left_out - shown.length} more`] : [];
  return [`  left out ${counted(left_out, 'event')}; alarms fire on their days:`, ...shown, ...more];
}

export async function calendarAdd(context: CliContext, name: string, file: string): Promise<void> {
  const text = fileFlag('the file', file);
  let summary: CalendarSummary;
  try {
    summary = addCalendar(calendarsFolderOf(context), name, text);
  } catch (error) {
    if (!(error instanceof ReveilleError) || !error.message.startsWith('line ')) throw error;
    throw new ReveilleError('invalid_request', `${oneLine(file)}, ${error.message}`, { cause: error });
  }
  context.out.result(summary, [
    `Added calendar ${name}: ${rangeOf(summary)}`,
    ...leftOutLines(summary),
    `  use it with: reveille alarm set … --holidays ${name}`,
  ]);
}

export async function calendarList(context: CliContext): Promise<void> {
  const calendars = listCalendars(calendarsFolderOf(context));
  context.out.list(calendars, () => {
    if (calendars.length === 0) return ['No calendars; add one with: reveille calendar add <name> <file>'];
    const rows = calendars.map(({ name, days, from = '', to = '', error, left_out }) => [
      name,
      error === undefined ? String(days) : 'unusable',
      from,
      error !== undefined ? oneLine(error) : left_out ? `${to} (${counted(left_out, 'event')} left out)` : to,
    ]);
    return table(['CALENDAR', 'DAYS', 'FIRST', 'LAST'], rows, readerOf(context));
  });
}

/** The alarms of this user that exclude its days; `undefined` when chronosd does not answer. */
async function usersOf(context: CliContext, name: string): Promise<number | undefined> {
  try {
    const client = alarmClient(context);
    let count = 0;
    for (const status of ['active', 'paused'] as const)
      for await (const { holidays } of eachAlarm(client, { status })) if (holidays === name) count++;
    return count;
  } catch (error) {
    return ignored(error);
  }
}

export async function calendarRemove(context: CliContext, name: string): Promise<void> {
  if (!removeCalendar(calendarsFolderOf(context), name))
    throw new ReveilleError(
      'not_found',
      `no calendar has the name ${oneLine(name)}; list them with "reveille calendar list"`,
    );
  const alarms = await usersOf(context, name);
  const fires = alarms ? [`  alarms of yours that now fire on its days too: ${alarms}`] : [];
  context.out.result({ name, removed: true, ...(alarms !== undefined && { alarms }) }, [
    `Removed calendar ${name}`,
    ...fires,
  ]);
}
