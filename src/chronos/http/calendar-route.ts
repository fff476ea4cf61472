/** `GET /v1/calendars/{name}`: the days of an installed calendar, for programs that compute schedules themselves. */
import { dayAt } from '../../kit/clock/wall-clock.ts';
import { zoneOf } from '../../kit/clock/zone.ts';
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import { CALENDAR_DAYS_MAX, calendarQuerySchema } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseOrThrow, showValue } from '../../wire/validate.ts';
import { dateOfDay } from '../alarm/holidays.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { type ChronosService, ownerOfRequest } from './service.ts';

export function calendarRoute(app: HttpApp, service: ChronosService): void {
  serve(app, CHRONOS_ROUTES.getCalendar, async (c) => {
    await ownerOfRequest(service, c);
    const { timezone = 'UTC' } = parseOrThrow(calendarQuerySchema, c.req.query());
    zoneOf(timezone);
    const name = c.req.param('name') ?? '';
    const days = service.calendars?.daysOf(name, timezone);
    if (days === undefined)
      throw new ReveilleError('not_found', `no usable calendar is installed as ${showValue(name)}`);
    const yesterday = dayAt(timezone, service.clock.now()) - 1;
    const coming = days.filter((day) => day >= yesterday).slice(0, CALENDAR_DAYS_MAX);
    return sendOk(c, { name, timezone, days: coming.map(dateOfDay) });
  });
}
