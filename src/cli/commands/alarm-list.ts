/** `reveille alarm list`. */
import { ALARM_KINDS, ALARM_STATUSES, type AlarmView, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { alarmClient } from '../chronos-access.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag, wholeNumberFlag } from '../flags.ts';
import { lookOf } from '../look.ts';
import { renderAlarms } from '../render.ts';

export type ListFlags = { status?: string; kind?: string; limit?: string; all?: boolean };

export async function alarmList(context: CliContext, flags: ListFlags): Promise<void> {
  const { out } = context;
  const status = choiceFlag('--status', flags.status, ALARM_STATUSES);
  const kind = choiceFlag('--kind', flags.kind, ALARM_KINDS);
  const limit = wholeNumberFlag('--limit', flags.limit, 1, LIST_LIMIT_MAX);
  const client = alarmClient(context);
  const query = {
    limit: limit ?? (flags.all ? LIST_LIMIT_MAX : LIST_LIMIT_DEFAULT),
    ...(status ? { status } : {}),
    ...(kind ? { kind } : {}),
  };

  const alarms: AlarmView[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listAlarms(cursor === undefined ? query : { ...query, cursor });
    cursor = page.next_cursor;
    if (out.json) for (const alarm of page.alarms) out.result(alarm, []);
    else alarms.push(...page.alarms);
  } while (flags.all && cursor !== undefined);

  for (const line of out.json ? [] : renderAlarms(alarms, cursor !== undefined, lookOf(context))) out.line(line);
}
