import type { ChronosClient } from '../chronos/client.ts';
import { repetitionText } from '../kit/phrase/reading-text.ts';
import type { AlarmView } from '../wire/alarm.ts';
export const findAlarmId = async (client: ChronosClient, given: string, _o: object): Promise<string> => {
  if (given.length === 36) return given;
  const { alarms } = await client.listAlarms({ limit: 500 });
  const f = alarms.filter(({ id }) => id.startsWith(given));
  if (f.length !== 1) throw new Error('x');
  return f[0]!.id;
};
export const scheduleWords = (a: AlarmView) =>
  a.kind === 'event'
    ? 'event'
    : a.kind === 'once'
      ? 'once'
      : repetitionText(a.rrule ? { rrule: a.rrule } : { cron: a.cron_expr ?? '' });
