/** `reveille alarm list`: what is ahead first, by time; what is over only when it is asked for. */
import type { AlarmQuery, ChronosClient } from '../../chronos/client.ts';
import {
  ALARM_KINDS,
  ALARM_STATUSES,
  type AlarmStatus,
  type AlarmView,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
} from '../../wire/alarm.ts';
import { alarmClient } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag, wholeNumberFlag } from '../flags/flags.ts';
import { lookOf } from '../screens/look.ts';
import { renderAlarms } from '../screens/render.ts';

export type ListFlags = { status?: string; kind?: string; limit?: string; all?: boolean };

const LIMIT_MAX = 1_000_000;
/** What is not over: it rings, waits to be resumed, or waits for somebody to look at it. */
export const PRESENT: readonly AlarmStatus[] = ['active', 'paused', 'failed'];

/** All alarms that a query finds, page by page. */
export async function everyAlarm(client: ChronosClient, query: AlarmQuery = {}): Promise<AlarmView[]> {
  const alarms: AlarmView[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listAlarms({
      ...query,
      limit: LIST_LIMIT_MAX,
      ...(cursor === undefined ? {} : { cursor }),
    });
    alarms.push(...page.alarms);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return alarms;
}

/** When an alarm rings next, or infinitely far away. */
const ahead = ({ next_fire_at: next }: AlarmView) => (next === undefined ? Number.POSITIVE_INFINITY : Date.parse(next));
/** When something last happened to it. */
const latest = ({ last_fired_at: last, created_at: created }: AlarmView) => Date.parse(last ?? created);

/** By status; what is ahead by when it rings, everything else newest first. */
function byTime(one: AlarmView, other: AlarmView): number {
  const rank = ALARM_ORDER.indexOf(one.status) - ALARM_ORDER.indexOf(other.status);
  if (rank !== 0) return rank;
  if (one.status === 'active' && ahead(one) !== ahead(other)) return ahead(one) - ahead(other);
  return latest(other) - latest(one) || (one.id < other.id ? 1 : -1);
}
const ALARM_ORDER: readonly AlarmStatus[] = [...PRESENT, 'fired', 'cancelled'];

export async function alarmList(context: CliContext, flags: ListFlags): Promise<void> {
  const { out } = context;
  const status = choiceFlag('--status', flags.status, ALARM_STATUSES);
  const kind = choiceFlag('--kind', flags.kind, ALARM_KINDS);
  const limit = wholeNumberFlag('--limit', flags.limit, 1, LIMIT_MAX) ?? (flags.all ? LIMIT_MAX : LIST_LIMIT_DEFAULT);
  const client = alarmClient(context);
  const filter = kind === undefined ? {} : { kind };
  const statuses = status === undefined ? (flags.all ? [undefined] : PRESENT) : [status];

  const found: AlarmView[] = [];
  for (const one of statuses)
    found.push(...(await everyAlarm(client, one === undefined ? filter : { ...filter, status: one })));
  const shown = found.sort(byTime).slice(0, limit);
  if (out.json) for (const alarm of shown) out.result(alarm, []);
  else {
    const left = found.length - shown.length;
    const history = flags.all || status !== undefined ? 'shown' : 'hidden';
    for (const line of renderAlarms(shown, { left, history }, lookOf(context))) out.line(line);
  }
}
