/** The calendars of exclusion of this installation, for commands that compute schedules themselves. */
import { installHolidays } from '../../chronos/alarm/holidays.ts';
import { calendarsFolder, openCalendars } from '../../chronos/calendars.ts';
import { silentLogger } from '../../kit/log/log.ts';
import type { CliContext } from '../context.ts';

/** The folder of the calendars of chronosd on this computer. */
export const calendarsFolderOf = ({ settings: { CHRONOS_CALENDARS_DIR, CHRONOS_DATA_DIR } }: CliContext): string =>
  calendarsFolder({ CHRONOS_CALENDARS_DIR, CHRONOS_DATA_DIR });

/** Lets the schedules that this process computes leave out holidays, as those of chronosd do. */
export function useCalendars(context: CliContext): void {
  installHolidays(openCalendars(calendarsFolderOf(context), { clock: context.clock, log: silentLogger }));
}
