/** `reveille alarm cancel`, `pause`, `resume`, `trigger` and `redrive`: one call, and what the alarm is afterwards. */
import type { TriggeredAlarm } from '../../chronos/client.ts';
import type { AlarmView } from '../../wire/alarm.ts';
import { alarmClient } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { lookOf } from '../screens/look.ts';
import { type Look, ringsAt } from '../screens/render.ts';
import { findAlarmId } from './alarm-id.ts';

export type AlarmAction = 'cancel' | 'pause' | 'resume' | 'trigger' | 'redrive';

function sayCancelled(alarm: AlarmView): string[] {
  if (alarm.status !== 'cancelled') return [`${alarm.id} is ${alarm.status} already; there was nothing left to cancel`];
  const lines = [`Cancelled ${alarm.id}`];
  if (alarm.in_flight) lines.push('  it was ringing: that delivery runs to its end, none follows');
  return lines;
}

function sayRings(done: string, alarm: AlarmView, look: Look): string[] {
  const next =
    alarm.next_fire_at === undefined ? `it is ${alarm.status}` : `rings ${ringsAt(alarm.next_fire_at, look)}`;
  return [`${done} ${alarm.id}`, `  ${next}`];
}

function say(action: AlarmAction, alarm: AlarmView, look: Look): string[] {
  switch (action) {
    case 'cancel':
      return sayCancelled(alarm);
    case 'pause':
      return [`Paused ${alarm.id}`, `  it rings again after: reveille alarm resume ${alarm.id}`];
    case 'resume':
      return sayRings('Resumed', alarm, look);
    case 'redrive':
      return sayRings('Redriven', alarm, look);
    case 'trigger':
      return [`Triggered ${alarm.id}`, `  rings now, as ${(alarm as TriggeredAlarm).fire_id}; its schedule goes on`];
  }
}

export async function alarmAct(context: CliContext, action: AlarmAction, given: string): Promise<void> {
  const client = alarmClient(context);
  const id = await findAlarmId(client, given);
  const calls: Record<AlarmAction, (id: string) => Promise<AlarmView>> = {
    cancel: client.cancelAlarm,
    pause: client.pauseAlarm,
    resume: client.resumeAlarm,
    trigger: client.triggerAlarm,
    redrive: client.redriveAlarm,
  };
  const alarm = await calls[action](id);
  context.out.result(alarm, say(action, alarm, lookOf(context)));
}
