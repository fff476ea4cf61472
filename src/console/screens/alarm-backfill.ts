/** Backfills a series: a time of the past is typed, its fires are counted, and the count is confirmed. */
import { html } from 'hono/html';
import { readDateOrInstant } from '../../kit/phrase/date-or-instant.ts';
import { type AlarmBackfilled, type AlarmView, BACKFILL_UNCONFIRMED } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { nameOf, scheduleHtml } from '../alarm-text.ts';
import { csrfField, type Page, pageHead } from '../page.ts';
import { field, type Redirect, type RequestContext, there } from '../request-context.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { time, zoneText } from '../times.ts';

type Count = AlarmBackfilled['backfill'];
/** The time to backfill, as instants. */
type Part = { readonly from: string; readonly to: string };

type Shown = {
  /** The fires in the time, when it was counted. */
  readonly counted?: Part & { readonly count: Count };
  readonly complaint?: string;
};

const fires = (count: number) => (count === 1 ? '1 fire' : `${count} fires`);

/** The count, and the button that confirms it. */
function confirmation(
  { session, here }: RequestContext,
  id: string,
  { from, to, count }: Part & { count: Count },
): Html {
  const { added, known, first, last } = count;
  const others = known === 0 ? NOTHING : html` ${known} of that time have fired or wait already.`;
  if (first === undefined || last === undefined)
    return html`<section class="question" id="counted" role="status"><h2>Nothing to backfill</h2><p>No fire of that time is missing.${others}</p></section>`;
  const box =
    added > BACKFILL_UNCONFIRMED
      ? html`<div class="field check"><input type="checkbox" id="over" name="over" required><label for="over">Fire more than ${BACKFILL_UNCONFIRMED} times</label></div>`
      : NOTHING;
  return html`<section class="question" id="counted" role="status"><h2>${fires(added)}</h2>
<p>From ${time(first, here)} to ${time(last, here)}, the oldest first.${others} Each wakes the agent. It cannot be undone; pausing the alarm pauses the rest.</p>
<form method="post" action="alarms/${id}/backfill" class="stack">${csrfField(session.csrf)}<input type="hidden" name="from" value="${from}"><input type="hidden" name="to" value="${to}"><input type="hidden" name="sure" value="yes">${box}
<div class="actions"><button class="primary">Backfill ${fires(added)}</button><a class="button" href="alarms/${id}">Cancel</a></div></form></section>`;
}

function backfillPage(context: RequestContext, alarm: AlarmView, { counted, complaint }: Shown = {}): Page {
  const { session, here, form } = context;
  const input = (name: 'from' | 'to', label: string, hint: string): Html =>
    html`<div class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${form.get(name) ?? ''}" autocomplete="off" aria-describedby="${name}-hint"><p class="hint" id="${name}-hint">${hint}</p></div>`;
  const main = html`${pageHead('Backfill', html`<span dir="auto">${nameOf(alarm)}</span>, ${scheduleHtml(alarm, here)}`)}
${complaint === undefined ? NOTHING : html`<p class="notice bad" role="alert">${shown(complaint)}</p>`}
<p>Fires the alarm for each of its instants in a part of the past that was not delivered.</p>
<form method="post" action="alarms/${alarm.id}/backfill" class="stack" id="backfill-form">${csrfField(session.csrf)}
<div class="pair">${input('from', 'From', `Such as 2026-11-20 or 2026-11-20 09:00, in ${zoneText(here)}.`)}${input('to', 'Before', 'Default: now.')}</div>
<div class="actions"><button class="${counted ? '' : 'primary'}">Count fires</button><a class="button" href="alarms/${alarm.id}">Back</a></div>
</form>
${counted ? confirmation(context, alarm.id, counted) : NOTHING}`;
  return { screen: 'alarms', title: 'Backfill', main, ...(complaint === undefined ? {} : { status: 400 }) };
}

/** @throws ReveilleError `invalid_request` naming the field */
function instantIn(title: string, text: string | undefined, zone: string): string {
  const at = text === undefined ? undefined : readDateOrInstant(text, zone);
  if (at !== undefined) return formatInstant(at);
  throw new ReveilleError(
    'invalid_request',
    `${title} must be a date or a time, such as 2026-11-20 09:00 (got "${text ?? ''}")`,
  );
}

function partOf(context: RequestContext): Part {
  const { now, zone } = context.here;
  const to = field(context, 'to');
  return {
    from: instantIn('From', field(context, 'from'), zone),
    to: to === undefined ? formatInstant(now) : instantIn('Before', to, zone),
  };
}

/** `alarms/{id}/backfill`. */
export async function backfillScreen(context: RequestContext): Promise<Page> {
  return backfillPage(context, await there(context.backend.alarms).getAlarm(context.params.id!));
}

const THEIRS: readonly string[] = ['invalid_request', 'conflict', 'rate_limited'];

/** `POST alarms/{id}/backfill`: counts the fires of a time, or fires them when the count is confirmed. */
export async function backfillAlarm(context: RequestContext): Promise<Page | Redirect> {
  const { form, session, backend } = context;
  const alarms = there(backend.alarms);
  const alarm = await alarms.getAlarm(context.params.id!);
  try {
    const part = partOf(context);
    if (form.get('sure') !== 'yes') {
      const { backfill: count } = await alarms.backfillAlarm(alarm.id, { ...part, dry_run: true });
      return backfillPage(context, alarm, { counted: { ...part, count } });
    }
    const confirmed = form.has('over') ? { confirm_over: true } : {};
    const { backfill } = await alarms.backfillAlarm(alarm.id, { ...part, ...confirmed });
    session.messages.success(`Backfilling: ${fires(backfill.added)}, the oldest first.`);
    return { to: `alarms/${alarm.id}` };
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError) || !THEIRS.includes(thrown.code)) throw thrown;
    return backfillPage(context, alarm, { complaint: thrown.message });
  }
}
