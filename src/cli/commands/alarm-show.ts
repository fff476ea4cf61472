/** `reveille alarm show`: one alarm and the ledger of its rings. */

import { LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { alarmClient } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { wholeNumberFlag } from '../flags/flags.ts';
import { renderCourses } from '../screens/fire-course.ts';
import { lookOf } from '../screens/look.ts';
import { renderAlarm, renderFires } from '../screens/render.ts';
import { findAlarmId } from './alarm-id.ts';

const FIRES_SHOWN = 20;

export async function alarmShow(context: CliContext, flags: { limit?: string }, given: string): Promise<void> {
  const limit = wholeNumberFlag('--limit', flags.limit, 1, LIST_LIMIT_MAX) ?? FIRES_SHOWN;
  const client = alarmClient(context);
  const id = await findAlarmId(client, given);
  const alarm = await client.getAlarm(id);
  const page = await client.listFires(id, { limit });
  const look = lookOf(context);
  const lines = [
    ...renderAlarm(alarm, look),
    ...renderFires(page.fires, page.next_cursor !== undefined, look),
    ...renderCourses(page.fires, look),
  ];
  context.out.result({ alarm, ...page }, lines);
}
