/** Short texts about an alarm: name, schedule, next fire, state and errors. */
import { html } from 'hono/html';
import { formatDuration } from '../kit/clock/duration.ts';
import type { NameOfAlarm } from '../kit/phrase/condition-text.ts';
import type { Conditions } from '../kit/phrase/conditions.ts';
import { repetitionOf, scheduleText, zoneOfSchedule } from '../kit/phrase/schedule-text.ts';
import { seriesText } from '../kit/phrase/series-text.ts';
import type { AlarmView } from '../wire/alarm.ts';
import { fieldOf, isOption, OWNER_FIELDS, type OwnerField } from '../wire/alarm-fields.ts';
import { plainError } from '../wire/fire.ts';
import { parseInstant } from '../wire/rfc3339.ts';
import type { Rhythm } from './backend.ts';
import { brief, type Html, NOTHING, shown } from './shown.ts';
import { absolute, type LocalContext, time } from './times.ts';

export const instantOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : parseInstant(text);

/** Its label, or the beginning of its message. */
export const nameOf = ({ label, wake_message: message }: Pick<AlarmView, 'label' | 'wake_message'>, most = 80): Html =>
  brief(label === '' ? message : label, most);

/** The rhythm of a series, for the schedule engine. */
export function rhythmOf(
  alarm: Pick<AlarmView, 'cron_expr' | 'rrule' | 'timezone' | 'starts_at' | 'holidays'>,
): Rhythm {
  const { cron_expr: cron, rrule, timezone: zone = 'UTC', starts_at, holidays } = alarm;
  return { cron, rrule, zone, start: instantOf(starts_at), holidays };
}

const quoted = (label: string | undefined) => (label ? `"${label}"` : 'another alarm');

/** The name of the alarm that another one follows, if it is known. */
export const nameAmong =
  (alarms: readonly Pick<AlarmView, 'id' | 'label'>[]): NameOfAlarm =>
  (id) =>
    quoted(alarms.find((alarm) => alarm.id === id)?.label);

/** What makes an alarm without a time fire: nothing for so long, or the events that have come. */
export const whyItFires = ({ waiting_events: events }: AlarmView): string =>
  events === undefined ? 'if nothing comes' : `with ${events} ${events === 1 ? 'event' : 'events'}`;

/**
 * `every weekday at 09:00 in Europe/Berlin`, `every 2 weeks on Monday at 10:00`, `once`, `waits for webhook`.
 *
 * @param nameOf names of the alarms that others follow
 */
export function scheduleHtml(
  alarm: Pick<AlarmView, 'kind' | 'cron_expr' | 'rrule' | 'timezone' | 'fire_at'> & Conditions,
  here: LocalContext,
  nameOf = nameAmong([]),
): Html {
  const text = scheduleText(alarm, { zone: here.zone, nameOf });
  if (alarm.kind === 'event') return brief(text);
  const at = instantOf(alarm.fire_at);
  if (alarm.kind === 'once') return at === undefined ? html`once` : html`once, ${absolute(at, here)}`;
  if (seriesText(repetitionOf(alarm)) !== undefined) return shown(text);
  const where = zoneOfSchedule(alarm, here.zone);
  return html`<code>${shown(text.slice(0, text.length - where.length))}</code>${shown(where)}`;
}

const STATES = {
  active: 'waiting',
  paused: 'paused',
  fired: 'fired',
  cancelled: 'cancelled',
  failed: 'failed',
} as const;

/** The state as a word and a mark; the word does not depend on the colour. */
export function stateMark({ status, in_flight, held_back }: AlarmView): Html {
  const [name, text] = in_flight
    ? (['ringing', 'firing'] as const)
    : held_back
      ? (['held', 'deferred'] as const)
      : ([status, STATES[status]] as const);
  return html`<span class="state ${name}">${text}</span>`;
}

/** The next fire, or the last one. */
export function fireTime(alarm: AlarmView, here: LocalContext): Html {
  const next = instantOf(alarm.next_fire_at);
  if (alarm.in_flight) return html`now`;
  if (alarm.kind === 'event' && alarm.status === 'active' && next === undefined)
    return html`<span class="dim">on an event</span>`;
  if (next !== undefined) return next <= here.now ? html`due` : time(next, here);
  const last = instantOf(alarm.last_fired_at);
  return last === undefined
    ? html`<span class="dim">–</span>`
    : html`<span class="dim">fired ${time(last, here)}</span>`;
}

/** The error and the next step; empty without an error. */
export function trouble(alarm: AlarmView, here: LocalContext): Html {
  const { failure_count: failures, last_error, status, max_failures, held_back } = alarm;
  const next = instantOf(alarm.next_fire_at);
  const deferredUntil = instantOf(held_back?.until);
  if (held_back)
    return html`Deferred: ${shown(held_back.reason.replace(/^(held back|deferred): /, ''))}. ${deferredUntil === undefined ? NOTHING : html`Fires ${time(deferredUntil, here)}.`}`;
  if (last_error === undefined || status === 'cancelled') return NOTHING;
  const why = shown(plainError(last_error));
  if (status === 'failed')
    return html`Failed after ${failures} attempts: ${why}. Retry delivers the same occurrence again.`;
  if (failures > 0 && next !== undefined)
    return html`Attempt ${failures} of ${max_failures} failed: ${why}. Next attempt ${time(next, here)}.`;
  return status === 'active' && next !== undefined
    ? html`The last fire failed: ${why}. Next fire ${time(next, here)}.`
    : html`Last error: ${why}.`;
}

export const hasTrouble = ({ last_error, held_back, status }: AlarmView): boolean =>
  status !== 'cancelled' && (last_error !== undefined || held_back !== undefined);

export const seconds = (length: number | undefined): string | undefined =>
  length === undefined ? undefined : formatDuration(Math.round(length * 1000));

/** The value of a field; `undefined` when it is absent. A list has its names separated by commas. */
export function valueText(alarm: AlarmView, name: OwnerField): string | undefined {
  const value: unknown = (alarm as Partial<Record<OwnerField, unknown>>)[name];
  const { type, absent } = fieldOf(name);
  if (value === undefined || value === absent) return undefined;
  if (Array.isArray(value)) return value.join(', ') || 'none';
  return type === 'seconds' ? seconds(value as number) : String(value);
}

/** The fires of a backfill that still wait. */
export function backfillText({ backfill_left: left }: AlarmView, here: LocalContext): Html | undefined {
  const [first, last] = [instantOf(left?.first), instantOf(left?.last)];
  if (first === undefined || last === undefined) return undefined;
  return html`fires for ${absolute(first, here)} to ${absolute(last, here)}, one after another`;
}

/** Rare fields that change what a fire does, besides its time. */
const RARE = OWNER_FIELDS.filter((name) => {
  const { type, row } = fieldOf(name);
  return isOption(name) && name !== 'when' && type !== 'object' && row !== undefined;
});

/** `except on days of de-berlin`, `overlap skip`, `model small`: what a fire does by the rare fields that are set. */
export function rareTexts(alarm: AlarmView): string[] {
  return RARE.flatMap((name) => {
    const value = valueText(alarm, name);
    const [title, text] = fieldOf(name).row!;
    return value === undefined ? [] : [`${title} ${text.replace('{}', () => value)}`];
  });
}
