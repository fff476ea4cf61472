/** The calendars of exclusion of this installation, for commands that compute schedules themselves. */
import type { Calendars } from '../../chronos/alarm/holidays.ts';
import { calendarsFolder, openCalendars } from '../../chronos/calendars.ts';
import { silentLogger } from '../../kit/log/log.ts';
import type { CliContext } from '../context.ts';

/** The folder of the calendars of chronosd on this computer. */
export const calendarsFolderOf = ({ settings: { CHRONOS_CALENDARS_DIR, CHRONOS_DATA_DIR } }: CliContext): string =>
  calendarsFolder({ CHRONOS_CALENDARS_DIR, CHRONOS_DATA_DIR });

/** The same calendars that chronosd has, for schedules that a command or the console computes. */
export const calendarsOf = (context: CliContext): Calendars =>
  openCalendars(calendarsFolderOf(context), { clock: context.clock, log: silentLogger });
