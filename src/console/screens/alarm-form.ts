/** Setting and editing an alarm. The time is typed as people type it; what was understood is said back. */
import { html, raw } from 'hono/html';
import type { AlarmCreateBody, AlarmPatchBody } from '../../chronos/client.ts';
import { parseDuration } from '../../kit/clock/duration.ts';
import { calendarTime } from '../../kit/clock/local-time.ts';
import { randomSecret } from '../../kit/identity/secrets.ts';
import { PhraseError } from '../../kit/phrase/reading.ts';
import type { AlarmView } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { RawJson } from '../../wire/json.ts';
import { scheduleWords, seconds } from '../alarm-text.ts';
import { csrfField, type Page } from '../page.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { echo, readTyped, refusal, ringsRead, scheduleOf } from '../typed-times.ts';
import { field, type Redirect, there, type RequestContext } from '../request-context.ts';

/** What stands in the form, as text. */
type Draft = Partial<
  Record<
    | 'words'
    | 'when'
    | 'zone'
    | 'label'
    | 'conversation'
    | 'payload'
    | 'until'
    | 'times'
    | 'lateness'
    | 'jitter'
    | 'failures'
    | 'urgent'
    | 'wakes',
    string
  >
>;

const NAMES = [
  'words',
  'when',
  'zone',
  'label',
  'conversation',
  'payload',
  'until',
  'times',
  'lateness',
  'jitter',
  'failures',
  'urgent',
  'wakes',
] as const;

function draftOf({ form }: RequestContext): Draft {
  const entries = NAMES.map((name) => [name, form.get(name)?.replace(/\r\n/g, '\n')] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && value !== ''));
}

/** An alarm as it would be typed; its time is left out, for what is not typed stays. */
function draftFrom(alarm: AlarmView): Draft {
  const { label, conversation_id, payload, max_fires, urgent, max_lateness_seconds, jitter_seconds } = alarm;
  return {
    words: alarm.wake_message,
    ...(label === '' ? {} : { label }),
    ...(conversation_id === undefined ? {} : { conversation: conversation_id }),
    ...(payload === undefined ? {} : { payload: payload.text }),
    ...(alarm.ends_at === undefined ? {} : { until: alarm.ends_at }),
    ...(max_fires === undefined ? {} : { times: String(max_fires) }),
    ...(max_lateness_seconds === undefined ? {} : { lateness: seconds(max_lateness_seconds)! }),
    ...(jitter_seconds === undefined ? {} : { jitter: seconds(jitter_seconds)! }),
    failures: String(alarm.max_failures),
    ...(urgent ? { urgent: 'on' } : {}),
    ...(alarm.wake_computer ? { wakes: 'on' } : {}),
  };
}

type Form = {
  readonly action: string;
  readonly title: string;
  readonly button: string;
  readonly draft: Draft;
  /** The alarm that is edited. */
  readonly edited?: AlarmView;
  /** What was understood of the time, or why nothing was. */
  readonly reading?: Html;
  readonly complaint?: string;
  /** Makes a form that is sent twice one alarm. */
  readonly key?: string;
};

const input = (name: keyof Draft, label: string, draft: Draft, hint: string, more: Html = NOTHING): Html =>
  html`<div class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${draft[name] ?? ''}" autocomplete="off" aria-describedby="${name}-hint"${more}><p class="hint" id="${name}-hint">${hint}</p></div>`;

function formPage({ session, here }: RequestContext, form: Form): Page {
  const { draft, edited, complaint } = form;
  const isOpen = NAMES.slice(4).some((name) => draft[name] !== undefined && !(name === 'failures' && edited));
  const now =
    edited === undefined
      ? NOTHING
      : html`<p class="hint">Now: ${scheduleWords(edited, here)}. Left empty, that stays.</p>`;
  const main = html`<h1>${form.title}</h1>
${complaint === undefined ? NOTHING : html`<p class="notice bad" role="alert">${shown(complaint)}</p>`}
<form method="post" action="${form.action}" class="stack" id="alarm-form" data-reads="alarms/reading">
${csrfField(session.csrf)}${form.key === undefined ? NOTHING : html`<input type="hidden" name="key" value="${form.key}">`}
<div class="field"><label for="words">What the agent should be told</label>
<textarea id="words" name="words" rows="4" required aria-describedby="words-hint">${raw('\n')}${draft.words ?? ''}</textarea><p class="hint" id="words-hint">It reads these words when the alarm rings, and nothing else.</p></div>
<div class="field"><label for="when">When</label><input id="when" name="when" value="${draft.when ?? ''}" autocomplete="off"${edited ? '' : raw(' required')} placeholder="tomorrow 9am" aria-describedby="when-hint reading"><p class="hint" id="when-hint">As you say it: <em>in 2 hours</em>, <em>tomorrow 9am</em>, <em>every weekday at 9:00</em>, or five cron fields.</p>${now}
<div id="reading" aria-live="polite">${form.reading ?? NOTHING}</div></div>
${input('label', 'Label', draft, 'A few words to find it by. It may be left empty.')}
<details${isOpen ? raw(' open') : ''}><summary>More</summary>
${input('zone', 'Zone', draft, `Where the time is read; ${here.zone} unless told.`, raw(` placeholder="${here.zone.replace(/[^A-Za-z0-9_+/-]/g, '')}"`) as Html)}
${input('conversation', 'Conversation', draft, 'The one in which it continues; a new one unless told.')}
${input('until', 'Until', draft, 'Of a series: its last ring is before, as in 2026-12-31 18:00.')}
${input('times', 'Times', draft, 'Of a series: how often it rings in all.')}
${input('lateness', 'At most late', draft, 'Later than this it does not ring at all, as in 15m.')}
${input('jitter', 'Spread over', draft, 'Rings somewhere within this, as in 5m.')}
${input('failures', 'Gives up after', draft, 'Failed attempts at one ring, 1 to 1000.')}
<div class="field"><label for="payload">Payload</label><textarea id="payload" name="payload" rows="3" class="code" aria-describedby="payload-hint">${raw('\n')}${draft.payload ?? ''}</textarea><p class="hint" id="payload-hint">JSON for the agent’s tools; its digits stay as they are.</p></div>
<div class="field check"><input type="checkbox" id="urgent" name="urgent"${draft.urgent ? raw(' checked') : ''}><label for="urgent">Urgent: quiet hours do not hold it back</label></div>
<div class="field check"><input type="checkbox" id="wakes" name="wakes"${draft.wakes ? raw(' checked') : ''}><label for="wakes">Wake the computer from its sleep for it, where that is arranged</label></div>
</details>
<div class="actions"><button name="do" value="set" class="primary">${form.button}</button><button name="do" value="read" formnovalidate>Read the time back</button><a class="button" href="${edited ? `alarms/${edited.id}` : 'alarms'}">Leave it</a></div>
</form>`;
  // An edited alarm may change elsewhere while nobody has touched its form.
  const looksAt = edited === undefined ? [] : ['alarms'];
  return { screen: 'alarms', title: form.title, main, looksAt, ...(complaint === undefined ? {} : { status: 400 }) };
}

const newForm = (draft: Draft, more: Partial<Form> = {}): Form => ({
  ...{ action: 'alarms/new', title: 'Set an alarm', button: 'Set it', draft, key: randomSecret(12) },
  ...more,
});

/** `alarms/new`, perhaps like another one. */
export async function newAlarmScreen(context: RequestContext): Promise<Page> {
  const like = context.query.get('like');
  if (like === null) return formPage(context, newForm({}));
  return formPage(context, newForm(draftFrom(await there(context.backend.alarms).getAlarm(like))));
}

/** The reading of what is typed, for the script. */
export async function readingScreen(context: RequestContext): Promise<Page> {
  const { query, backend, here } = context;
  const main = () => {
    const when = query.get('when')?.trim() ?? '';
    if (when === '') return NOTHING;
    try {
      return echo(readTyped(when, query.get('zone')?.trim() || undefined, here), backend.ringsOf, here);
    } catch (thrown) {
      return refusal(thrown);
    }
  };
  return { screen: 'alarms', title: 'A time', main: main() };
}

function duration(name: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text.trim().replace(/\s+/g, ''));
  if (ms !== undefined && ms / 1000 >= least) return ms / 1000;
  throw new ReveilleError('invalid_request', `${name} must be a length of time such as 15m or 2h (got "${text}")`);
}

function wholeNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text.trim())) return Number(text);
  throw new ReveilleError('invalid_request', `${name} must be a whole number from 1 on (got "${text}")`);
}

function payloadOf(text: string | undefined): RawJson | undefined {
  if (text === undefined) return undefined;
  try {
    JSON.parse(text);
    return new RawJson(text.trim());
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReveilleError('invalid_request', `payload must be JSON: ${why}`, { cause });
  }
}

/** What is typed in, but for the time. @throws ReveilleError `invalid_request` naming the field */
function membersOf(draft: Draft, { here }: RequestContext) {
  const until = draft.until === undefined ? undefined : readTyped(draft.until, draft.zone, here);
  if (until !== undefined && until.kind !== 'instant')
    throw new ReveilleError('invalid_request', 'until must name an instant, such as 2026-12-31 18:00');
  const ends = until && scheduleOf(until);
  return {
    wake_message: draft.words ?? '',
    label: draft.label,
    conversation_id: draft.conversation?.trim(),
    payload: payloadOf(draft.payload),
    ends_at: ends && 'fire_at' in ends ? ends.fire_at : undefined,
    max_fires: wholeNumber('times', draft.times),
    max_lateness_seconds: duration('at most late', draft.lateness, 0),
    jitter_seconds: duration('spread over', draft.jitter, 0),
    max_failures: wholeNumber('gives up after', draft.failures),
    urgent: draft.urgent === undefined ? undefined : true,
    wake_computer: draft.wakes === undefined ? undefined : true,
  };
}

function complaintOf(thrown: unknown): string | undefined {
  if (thrown instanceof PhraseError) return thrown.problem;
  const isTheirs =
    thrown instanceof ReveilleError && ['invalid_request', 'conflict', 'rate_limited'].includes(thrown.code);
  return isTheirs ? thrown.message : undefined;
}

/** The form again, with what was typed, what was understood, and what is wrong. */
function again(context: RequestContext, form: Form, thrown?: unknown): Page {
  const { when, zone } = form.draft;
  const { backend, here } = context;
  let reading = NOTHING;
  try {
    if (when !== undefined) reading = echo(readTyped(when, zone, here), backend.ringsOf, here);
  } catch (unread) {
    reading = refusal(unread);
  }
  const complaint = thrown === undefined ? undefined : complaintOf(thrown);
  if (thrown !== undefined && complaint === undefined) throw thrown;
  return formPage(context, { ...form, reading, ...(complaint === undefined ? {} : { complaint }) });
}

/** `alarms/new`, sent. */
export async function setAlarm(context: RequestContext): Promise<Page | Redirect> {
  const draft = draftOf(context);
  const key = field(context, 'key') ?? randomSecret(12);
  const form = newForm(draft, { key });
  if (context.form.get('do') === 'read') return again(context, form);
  try {
    if (draft.words === undefined) throw new ReveilleError('invalid_request', 'say what the agent should be told');
    if (draft.when === undefined) throw new ReveilleError('invalid_request', 'say when it should ring');
    const reading = readTyped(draft.when, draft.zone, context.here);
    const kind = reading.kind === 'series' ? 'cron' : 'once';
    const alarm: AlarmCreateBody = {
      ...{ kind, ...scheduleOf(reading), ...membersOf(draft, context) },
      idempotency_key: `console-${key}`.slice(0, 100),
    };
    const alarms = there(context.backend.alarms);
    const { id } = await alarms.createAlarm(alarm);
    const zone = reading.kind === 'delay' ? context.here.zone : reading.zone;
    const rings = ringsRead(reading, context.backend.ringsOf, context.here);
    const said = rings.map((at) => calendarTime(at, { now: context.here.now, zone })).join(', then ');
    context.session.messages.success(`Set. It rings ${said}, ${zone}.`, async () => {
      await alarms.cancelAlarm(id);
      return 'The new alarm was cancelled.';
    });
    return { to: `alarms/${id}` };
  } catch (thrown) {
    return again(context, form, thrown);
  }
}

const editForm = (alarm: AlarmView, draft: Draft): Form => ({
  ...{ action: `alarms/${alarm.id}/edit`, title: 'Edit an alarm', button: 'Change it', draft, edited: alarm },
});

/** `alarms/{id}/edit`. */
export async function editScreen(context: RequestContext): Promise<Page> {
  const alarm = await there(context.backend.alarms).getAlarm(context.params.id!);
  return formPage(context, editForm(alarm, draftFrom(alarm)));
}

/** The members that the form changes, and what they were; what was taken out of the form is taken away. */
function changesOf(alarm: AlarmView, draft: Draft, context: RequestContext): { changes: AlarmPatchBody; back: AlarmPatchBody } {
  const was = draftFrom(alarm);
  const members: Record<string, unknown> = membersOf(draft, context);
  const before: Record<string, unknown> = membersOf(was, context);
  const differ = (name: keyof Draft) => (draft[name] ?? '') !== (was[name] ?? '').replace(/\r\n/g, '\n');
  const named: Partial<Record<keyof Draft, string>> = {
    ...{ words: 'wake_message', label: 'label', conversation: 'conversation_id', payload: 'payload', until: 'ends_at' },
    ...{ times: 'max_fires', lateness: 'max_lateness_seconds', jitter: 'jitter_seconds', failures: 'max_failures' },
    ...{ urgent: 'urgent', wakes: 'wake_computer' },
  };
  const changed = NAMES.flatMap((name) => (named[name] !== undefined && differ(name) ? [named[name]] : []));
  const none = (name: string) => (name === 'payload' ? new RawJson('null') : null);
  const pick = (from: Record<string, unknown>) =>
    Object.fromEntries(changed.map((name) => [name, from[name] ?? none(name)]));
  const reading = draft.when === undefined ? undefined : readTyped(draft.when, draft.zone, context.here);
  if (reading && (reading.kind === 'series') !== (alarm.kind === 'cron'))
    throw new ReveilleError(
      'invalid_request',
      alarm.kind === 'cron'
        ? 'this alarm repeats: say how often, or set a new one'
        : 'this alarm rings once: say when, or set a new one',
    );
  const old =
    alarm.kind === 'cron'
      ? { cron_expr: alarm.cron_expr, timezone: alarm.timezone }
      : { fire_at: alarm.next_fire_at ?? alarm.fire_at };
  return {
    changes: { ...pick(members), ...(reading ? scheduleOf(reading) : {}) },
    back: { ...pick(before), ...(reading ? old : {}) } as AlarmPatchBody,
  };
}

/** `alarms/{id}/edit`, sent. */
export async function editAlarm(context: RequestContext): Promise<Page | Redirect> {
  const alarms = there(context.backend.alarms);
  const { id = '' } = context.params;
  const alarm = await alarms.getAlarm(id);
  const draft = draftOf(context);
  const form = editForm(alarm, draft);
  if (context.form.get('do') === 'read') return again(context, form);
  try {
    const { changes, back } = changesOf(alarm, draft, context);
    if (Object.keys(changes).length === 0) {
      context.session.messages.success('Nothing was changed.');
      return { to: `alarms/${id}` };
    }
    await alarms.patchAlarm(id, changes);
    context.session.messages.success(`Changed: ${Object.keys(changes).join(', ')}.`, async () => {
      await alarms.patchAlarm(id, back);
      return 'It is as it was before.';
    });
    return { to: `alarms/${id}` };
  } catch (thrown) {
    return again(context, form, thrown);
  }
}
