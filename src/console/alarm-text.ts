/** An alarm in a few words: what it is called, when it rings, how it stands. */
import { html } from 'hono/html';
import { formatDuration } from '../kit/clock/duration.ts';
import { keepsWallTime, seriesWords } from '../kit/phrase/series-words.ts';
import { plainWakeError } from '../kit/text/wake-error.ts';
import type { AlarmView } from '../wire/alarm.ts';
import { parseInstant } from '../wire/rfc3339.ts';
import { brief, type Html, NOTHING, shown } from './shown.ts';
import { absolute, type Here, time } from './times.ts';

export const instantOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : parseInstant(text);

/** Its label, or the beginning of its words. */
export const nameOf = ({ label, wake_message: words }: Pick<AlarmView, 'label' | 'wake_message'>, most = 80): Html =>
  brief(label === '' ? words : label, most);

/** `every weekday at 09:00 in Europe/Berlin`, `once`. */
export function scheduleWords(alarm: Pick<AlarmView, 'kind' | 'cron_expr' | 'timezone' | 'fire_at'>, here: Here): Html {
  const { kind, cron_expr: cron = '', timezone = 'UTC', fire_at } = alarm;
  const at = instantOf(fire_at);
  if (kind === 'once') return at === undefined ? html`once` : html`once, ${absolute(at, here)}`;
  const words = seriesWords(cron);
  const where = timezone === here.zone || !keepsWallTime(cron) ? NOTHING : html` in ${shown(timezone)}`;
  return words === undefined ? html`<code>${shown(cron)}</code>${where}` : html`${words}${where}`;
}

const STATES = {
  active: 'waits',
  paused: 'paused',
  fired: 'has rung',
  cancelled: 'cancelled',
  failed: 'failed',
} as const;

/** A word and a mark; the word says it without the colour. */
export function stateMark({ status, in_flight, held_back }: AlarmView): Html {
  const [name, words] = in_flight
    ? (['ringing', 'rings now'] as const)
    : held_back
      ? (['held', 'held back'] as const)
      : ([status, STATES[status]] as const);
  return html`<span class="state ${name}">${words}</span>`;
}

/** When it rings next, or rang last. */
export function ringTime(alarm: AlarmView, here: Here): Html {
  const next = instantOf(alarm.next_fire_at);
  if (alarm.in_flight) return html`now`;
  if (next !== undefined) return next <= here.now ? html`due` : time(next, here);
  const last = instantOf(alarm.last_fired_at);
  return last === undefined
    ? html`<span class="dim">–</span>`
    : html`<span class="dim">rang ${time(last, here)}</span>`;
}

/** What goes wrong, and what happens next; nothing where nothing does. */
export function trouble(alarm: AlarmView, here: Here): Html {
  const { failure_count: failures, last_error, status, max_failures, held_back } = alarm;
  const next = instantOf(alarm.next_fire_at);
  const held = instantOf(held_back?.until);
  if (held_back)
    return html`Held back: ${shown(held_back.reason.replace(/^held back: /, ''))}. ${held === undefined ? NOTHING : html`Rings ${time(held, here)}.`}`;
  if (last_error === undefined || status === 'cancelled') return NOTHING;
  const why = shown(plainWakeError(last_error));
  if (status === 'failed')
    return html`Given up after ${failures} attempts: ${why}. Nothing happens by itself any more; redrive tries the same ring again.`;
  if (failures > 0 && next !== undefined)
    return html`Attempt ${failures} of ${max_failures} failed: ${why}. Tries again ${time(next, here)}.`;
  return status === 'active' && next !== undefined
    ? html`The last ring failed: ${why}. The next one is ${time(next, here)}.`
    : html`The last error was: ${why}.`;
}

export const hasTrouble = ({ last_error, held_back, status }: AlarmView): boolean =>
  status !== 'cancelled' && (last_error !== undefined || held_back !== undefined);

export const seconds = (length: number | undefined): string | undefined =>
  length === undefined ? undefined : formatDuration(Math.round(length * 1000));
