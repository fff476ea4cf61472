/** `reveille alarm list`, `show`, `cancel`, `pause`, `resume`, `trigger` and `redrive`, and the names of alarms. */
import { alarmIdOf, type ChronosClient, eachAlarm, PRESENT, type TriggeredAlarm } from '../../chronos/client.ts';
import { type AlarmView, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { ALARM_KINDS, ALARM_STATUSES, type AlarmStatus } from '../../wire/alarm-fields.ts';
import { alarmClient, personOf } from '../access/chronos.ts';
import { publicUrl } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag, wholeNumberFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { renderFireStages } from '../screens/log-screen.ts';
import { readerOf } from '../screens/reader.ts';
import {
  alarmName,
  type Beside,
  instantText,
  type Reader,
  renderAlarm,
  renderAlarms,
  renderFires,
} from '../screens/render.ts';

/**
 * @param given an id, its first six or more characters in any case, or an exact label
 * @throws UsageError for an empty name
 * @throws ReveilleError `not_found` or `conflict` when no alarm, or more than one, matches
 */
export async function findAlarmId(client: ChronosClient, given: string): Promise<string> {
  if (given === '') throw new UsageError("an alarm's id, its beginning, or its label is missing");
  return alarmIdOf(client, given, { remedy: 'list yours with "reveille alarm list --all"' });
}

export type ListFlags = { status?: string; kind?: string; limit?: string; all?: boolean };

const LIMIT_MAX = 1_000_000;
/** The next fire, or infinity. */
const ahead = ({ next_fire_at: next }: AlarmView) => (next === undefined ? Number.POSITIVE_INFINITY : Date.parse(next));
const latest = ({ last_fired_at: last, created_at: created }: AlarmView) => Date.parse(last ?? created);

/** By status; active ones by their next fire, all others newest first. */
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
  const client = alarmClient(context, personOf(context));
  const filter = kind === undefined ? {} : { kind };
  const statuses = status === undefined ? (flags.all ? [undefined] : PRESENT) : [status];

  const found: AlarmView[] = [];
  for (const one of statuses)
    found.push(...(await Array.fromAsync(eachAlarm(client, one === undefined ? filter : { ...filter, status: one }))));
  const shown = found.sort(byTime).slice(0, limit);
  if (out.json) for (const alarm of shown) out.result(alarm, []);
  else {
    const left = found.length - shown.length;
    const history = flags.all || status !== undefined ? 'shown' : 'hidden';
    const look = readerOf(context);
    // Only a terminal has a width to which messages are shortened.
    const width = out.live ? look.width : Number.POSITIVE_INFINITY;
    for (const line of renderAlarms(shown, { left, history }, { ...look, width })) out.line(line);
  }
}

/** The label of the alarm that an alarm follows, and the public listener. */
export async function besideOf(
  context: CliContext,
  client: ChronosClient,
  { after, event }: Pick<AlarmView, 'after' | 'event'>,
): Promise<Beside> {
  const base = publicUrl(context);
  const id = after?.alarm ?? (event?.source === 'alarm' ? event.alarm : undefined);
  // It may have been deleted.
  const followed = id === undefined ? undefined : await client.getAlarm(id).catch(() => undefined);
  return { base, nameOf: (other) => alarmName(other === id ? followed?.label : undefined, other) };
}

const FIRES_SHOWN = 20;

export async function alarmShow(context: CliContext, flags: { limit?: string }, given: string): Promise<void> {
  const limit = wholeNumberFlag('--limit', flags.limit, 1, LIST_LIMIT_MAX) ?? FIRES_SHOWN;
  const client = alarmClient(context, personOf(context));
  const id = await findAlarmId(client, given);
  const alarm = await client.getAlarm(id);
  const page = await client.listFires(id, { limit });
  const look = readerOf(context);
  const lines = [
    ...renderAlarm(alarm, look, await besideOf(context, client, alarm)),
    ...renderFires(page.fires, page.next_cursor !== undefined, look),
    ...renderFireStages(alarm, page.fires, look),
  ];
  context.out.result({ alarm, ...page }, lines);
}

export type AlarmAction = 'cancel' | 'pause' | 'resume' | 'trigger' | 'redrive';

function sayCancelled(alarm: AlarmView): string[] {
  if (alarm.status !== 'cancelled') return [`${alarm.id} is already ${alarm.status}; nothing was cancelled`];
  const lines = [`Cancelled ${alarm.id}`];
  if (alarm.in_flight) lines.push('  it is firing now: this delivery finishes, and none follows');
  return lines;
}

function sayFires(done: string, alarm: AlarmView, look: Reader): string[] {
  const next =
    alarm.next_fire_at === undefined ? `it is ${alarm.status}` : `fires ${instantText(alarm.next_fire_at, look)}`;
  return [`${done} ${alarm.id}`, `  ${next}`];
}

function say(action: AlarmAction, alarm: AlarmView, look: Reader): string[] {
  switch (action) {
    case 'cancel':
      return sayCancelled(alarm);
    case 'pause':
      return [`Paused ${alarm.id}`, `  continue with: reveille alarm resume ${alarm.id}`];
    case 'resume':
      return sayFires('Resumed', alarm, look);
    case 'redrive':
      if (alarm.status === 'active') return sayFires('Redriven', alarm, look);
      return [`Redriven ${alarm.id}`, '  fires now, as a fire of its own: its last turn failed'];
    case 'trigger':
      return [`Triggered ${alarm.id}`, `  fires now, as ${(alarm as TriggeredAlarm).fire_id}; its schedule continues`];
  }
}

export async function alarmAct(context: CliContext, action: AlarmAction, given: string): Promise<void> {
  const client = alarmClient(context, personOf(context));
  const id = await findAlarmId(client, given);
  const calls: Record<AlarmAction, (id: string) => Promise<AlarmView>> = {
    cancel: client.cancelAlarm,
    pause: client.pauseAlarm,
    resume: client.resumeAlarm,
    trigger: client.triggerAlarm,
    redrive: client.redriveAlarm,
  };
  const alarm = await calls[action](id);
  context.out.result(alarm, say(action, alarm, readerOf(context)));
}
