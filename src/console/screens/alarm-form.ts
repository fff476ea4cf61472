/** Creates and edits an alarm. Times are typed in plain language; the page shows how they were read. */
import { html, raw } from 'hono/html';
import { refusedTools } from '../../agents/neo/client.ts';
import type { AlarmCreateBody, AlarmPatchBody } from '../../chronos/client.ts';
import { parseDuration } from '../../kit/clock/duration.ts';
import { calendarTime } from '../../kit/clock/local-time.ts';
import { randomSecret } from '../../kit/identity/secrets.ts';
import { waitText } from '../../kit/phrase/condition-text.ts';
import { PhraseError, type Reading } from '../../kit/phrase/reading.ts';
import type { AlarmView, HookMade } from '../../wire/alarm.ts';
import {
  ALARM_FIELDS,
  type AlarmKind,
  type FieldsWith,
  type FieldType,
  fieldOf,
  OWNER_FIELDS,
  ordered,
} from '../../wire/alarm-fields.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { RawJson } from '../../wire/json.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { scheduleHtml, seconds } from '../alarm-text.ts';
import { csrfField, type Page, pageHead } from '../page.ts';
import { field, type Redirect, type RequestContext, there } from '../request-context.ts';
import { controlNote, type Html, NOTHING, shown } from '../shown.ts';
import { type Engine, echo, firesRead, readTyped, refusal, scheduleOf, type TypedContext } from '../times.ts';
import {
  CONDITION_CONTROLS,
  type ConditionControl,
  conditionChanges,
  conditionDraft,
  conditionsIn,
  eventControls,
  firesChoice,
  waitReading,
  waitsIn,
  withAlarmId,
  workControls,
} from './alarm-conditions.ts';

type Fields = typeof ALARM_FIELDS;
type FormField = FieldsWith<{ form: object }>;

/** Names of the form's controls: a time and its zone, and one for each field or part of a field. */
type Control = 'when' | 'zone' | Fields[FormField]['form']['name'] | ConditionControl;

/** The content of the form, as text. */
type Draft = { readonly [N in Control]?: string | undefined };

/** The fields with a control, in the order of an error. */
const FORM_FIELDS = ordered<FormField>(
  [
    ...(['wake_message', 'label', 'conversation_id', 'payload', 'ends_at', 'max_fires'] as const),
    ...(['max_lateness_seconds', 'jitter_seconds', 'max_failures'] as const),
  ],
  OWNER_FIELDS.filter((name): name is FormField => fieldOf(name).form !== undefined),
);
/** Fields of one line below "More options", and those with a check box. */
const LINES = FORM_FIELDS.filter((name) => name !== 'label' && fieldOf(name).form?.hint !== undefined);
const SWITCHES = FORM_FIELDS.filter((name) => fieldOf(name).type === 'switch');

const controlOf = (name: FormField): Control => ALARM_FIELDS[name].form.name;
const titleOf = (name: FormField): string => fieldOf(name).form?.title ?? name;

const CONTROLS: readonly Control[] = ['when', 'zone', ...FORM_FIELDS.map(controlOf), ...CONDITION_CONTROLS];
/** The controls outside of "More options". */
const FIRST_CONTROLS: readonly Control[] = ['message', 'when', 'zone', 'label', ...CONDITION_CONTROLS];

/** A list of choices always has a value, and some alarms may not have the field: its default counts as empty. */
const DEFAULTS = new Map<Control, unknown>(
  FORM_FIELDS.filter((name) => fieldOf(name).type === 'choice').map((name) => [controlOf(name), fieldOf(name).absent]),
);

function draftOf({ form }: RequestContext): Draft {
  const entries = CONTROLS.map((name) => [name, form.get(name)?.replace(/\r\n/g, '\n')] as const);
  return Object.fromEntries(
    entries.filter(([name, value]) => value !== undefined && value !== '' && value !== DEFAULTS.get(name)),
  );
}

/** An alarm as form content without its time: an empty time field keeps the time. */
function draftFrom(alarm: AlarmView): Draft {
  const given = FORM_FIELDS.filter((name) => alarm[name] !== undefined && alarm[name] !== fieldOf(name).absent);
  const fields = given.map((name) => [controlOf(name), textOf(fieldOf(name).type, alarm[name])]);
  return { ...Object.fromEntries(fields), ...conditionDraft(alarm) };
}

/** A value as the control has it. */
function textOf(type: FieldType, value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (type === 'seconds') return seconds(value as number)!;
  // An empty field means that nothing is set, which is not an empty list.
  if (Array.isArray(value)) return value.join(', ') || ',';
  return type === 'switch' ? 'on' : String(value);
}

/** A request, with the hours that a typed time leaves open. */
type TypedRequest = Omit<RequestContext, 'here'> & { readonly here: TypedContext };

const typed = async (context: RequestContext): Promise<TypedRequest> => ({
  ...context,
  here: { ...context.here, hours: await context.backend.hours?.() },
});

type Form = {
  readonly action: string;
  readonly title: string;
  readonly button: string;
  readonly draft: Draft;
  readonly edited?: AlarmView;
  /** How the time was read, or why it could not be. */
  readonly reading?: Html;
  readonly complaint?: string;
  /** The idempotency key: a form that is sent twice creates one alarm. */
  readonly key?: string;
};

const input = (name: Control, label: string, draft: Draft, hint: string, more: Html = NOTHING): Html =>
  html`<div class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${draft[name] ?? ''}" autocomplete="off" aria-describedby="${name}-hint"${more}>${controlNote(draft[name])}<p class="hint" id="${name}-hint">${hint}</p></div>`;

/** A list of the values of a choice; the first is the default. */
function select(field: FormField, draft: Draft): Html {
  const [name, { of = [], absent, form }] = [controlOf(field), fieldOf(field)];
  const chosen = draft[name] ?? absent;
  const options = of.map(
    (value) =>
      html`<option value="${value}"${value === chosen ? raw(' selected') : ''}>${value.replaceAll('_', ' ')}</option>`,
  );
  return html`<div class="field"><label for="${name}">${titleOf(field)}</label><select id="${name}" name="${name}" aria-describedby="${name}-hint">${options}</select><p class="hint" id="${name}-hint">${form?.hint ?? ''}</p></div>`;
}

const line = (name: FormField, draft: Draft): Html =>
  fieldOf(name).type === 'choice'
    ? select(name, draft)
    : input(controlOf(name), titleOf(name), draft, fieldOf(name).form?.hint ?? '');

function checkBox(field: FormField, draft: Draft): Html {
  const name = controlOf(field);
  return html`<div class="field check"><input type="checkbox" id="${name}" name="${name}"${draft[name] ? raw(' checked') : ''}><label for="${name}">${titleOf(field)}</label></div>`;
}

function formPage({ session, here }: RequestContext, form: Form): Page {
  const { draft, edited, complaint } = form;
  const isOpen = CONTROLS.some(
    (name) => !FIRST_CONTROLS.includes(name) && draft[name] !== undefined && !(name === 'failures' && edited),
  );
  const now =
    edited === undefined
      ? NOTHING
      : html`<p class="hint">Now: ${scheduleHtml(edited, here)}. Leave empty to keep it.</p>`;
  const events = eventControls(draft, edited !== undefined);
  const time =
    edited?.kind === 'event'
      ? NOTHING
      : html`<div class="field if-time"><label for="when">When</label><input id="when" name="when" value="${draft.when ?? ''}" autocomplete="off" placeholder="tomorrow 9am" aria-describedby="when-hint reading">${controlNote(draft.when)}<p class="hint" id="when-hint">For example <em>in 2 hours</em>, <em>tomorrow 9am</em>, <em>every other monday at 10</em>, five cron fields, or a rule such as <em>RRULE:FREQ=…</em>.</p>${now}</div>`;
  const main = html`${pageHead(form.title)}
${complaint === undefined ? NOTHING : html`<p class="notice bad" role="alert">${shown(complaint)}</p>`}
<form method="post" action="${form.action}" class="stack" id="alarm-form" data-reads="alarms/reading">
${csrfField(session.csrf)}${form.key === undefined ? NOTHING : html`<input type="hidden" name="key" value="${form.key}">`}
${firesChoice(draft, edited !== undefined)}
<div class="field"><label for="message">Message</label>
<textarea id="message" name="message" rows="4" required aria-describedby="message-hint">${raw('\n')}${draft.message ?? ''}</textarea>${controlNote(draft.message)}<p class="hint" id="message-hint">The agent reads this text when the alarm fires.</p></div>
${events}
${time}
<div id="reading" aria-live="polite">${form.reading ?? NOTHING}</div>
${line('label', draft)}
<details${isOpen ? raw(' open') : ''}><summary>More options</summary>
<div class="pair">${input('zone', 'Time zone', draft, `Of the time above. Default: ${here.zone}.`, raw(` placeholder="${here.zone.replace(/[^A-Za-z0-9_+/-]/g, '')}"`) as Html)}${LINES.map((name) => html`\n${line(name, draft)}`)}</div>
<div class="field"><label for="payload">Payload</label><textarea id="payload" name="payload" rows="3" class="code" aria-describedby="payload-hint">${raw('\n')}${draft.payload ?? ''}</textarea>${controlNote(draft.payload)}<p class="hint" id="payload-hint">JSON for the agent’s tools. Numbers keep their digits.</p></div>${SWITCHES.map((name) => html`\n${checkBox(name, draft)}`)}
</details>
${workControls(draft)}
<div class="actions"><button name="do" value="set" class="primary">${form.button}</button><button name="do" value="read" formnovalidate>Preview</button><a class="button" href="${edited ? `alarms/${edited.id}` : 'alarms'}">Cancel</a></div>
</form>`;
  // An edited alarm may change elsewhere while its form is untouched.
  const looksAt = edited === undefined ? [] : ['alarms'];
  return { screen: 'alarms', title: form.title, main, looksAt, ...(complaint === undefined ? {} : { status: 400 }) };
}

const newForm = (draft: Draft, more: Partial<Form> = {}): Form => ({
  ...{ action: 'alarms/new', title: 'New alarm', button: 'Create alarm', draft, key: randomSecret(12) },
  ...more,
});

/** `alarms/new`, with the content of another alarm after `?like=`. */
export async function newAlarmScreen(context: RequestContext): Promise<Page> {
  const like = context.query.get('like');
  if (like === null) return formPage(context, newForm({}));
  const alarm = await there(context.backend.alarms).getAlarm(like);
  // The time of an alarm that fires once is not that of its copy.
  const when = (alarm.rrule ?? alarm.cron_expr)?.replace(/\s+/g, ' ');
  return formPage(context, newForm({ ...draftFrom(alarm), ...(when && { when, zone: alarm.timezone ?? 'UTC' }) }));
}

/** How a typed time is read, or why it is not. */
async function readingOf(
  when: string,
  zone: string | undefined,
  holidays: string | undefined,
  engine: Engine,
  here: TypedContext,
): Promise<Html> {
  try {
    return await echo(readTyped(when, zone, here), engine, here, holidays);
  } catch (thrown) {
    return refusal(thrown);
  }
}

/** `alarms/reading`: how a typed time is read, for the script. */
export async function readingScreen(context: RequestContext): Promise<Page> {
  const { query, backend, here } = await typed(context);
  const given = (name: string) => query.get(name)?.trim() || undefined;
  const when = given('when');
  const main = when === undefined ? NOTHING : await readingOf(when, given('zone'), given('holidays'), backend, here);
  return { screen: 'alarms', title: 'Time', main };
}

function duration(name: string, text: string, least: number): number {
  const ms = parseDuration(text.trim().replace(/\s+/g, ''));
  if (ms !== undefined && ms / 1000 >= least) return ms / 1000;
  throw new ReveilleError('invalid_request', `${name} must be a duration such as 15m or 2h (got "${text}")`);
}

function wholeNumber(name: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text.trim())) return Number(text);
  throw new ReveilleError('invalid_request', `${name} must be a whole number of at least 1 (got "${text}")`);
}

function payloadOf(text: string): RawJson {
  try {
    JSON.parse(text);
    return new RawJson(text.trim());
  } catch (cause) {
    throw new ReveilleError('invalid_request', `payload must be JSON: ${thrownText(cause)}`, { cause });
  }
}

function instantIn(title: string, text: string, draft: Draft, here: TypedContext): string {
  const reading = readTyped(text, draft.zone, here);
  if (reading.kind === 'instant' && reading.assumed === undefined) return formatInstant(reading.at);
  throw new ReveilleError('invalid_request', `${title} must be a time such as 2026-12-31 18:00`);
}

/** The value in a control. @throws ReveilleError `invalid_request` naming the field */
function valueIn(name: FormField, draft: Draft, here: TypedContext): unknown {
  const text = draft[controlOf(name)];
  const { type, least = 0 } = fieldOf(name);
  if (text === undefined) return type === 'message' ? '' : undefined;
  const title = titleOf(name).toLowerCase();
  switch (type) {
    case 'identifier':
      return text.trim();
    case 'json':
      return payloadOf(text);
    case 'instant':
      return instantIn(title, text, draft, here);
    case 'seconds':
      return duration(title, text, least);
    case 'count':
      return wholeNumber(title, text);
    case 'switch':
      return true;
    case 'list':
      return text.split(',').flatMap((name) => name.trim() || []);
    case 'choice':
      return text.trim();
    default:
      return text;
  }
}

type Members = Pick<AlarmCreateBody, FormField>;

/** The members of the alarm without its time. @throws ReveilleError `invalid_request` naming the field */
function membersOf(draft: Draft, { here }: TypedRequest): Members {
  const members = FORM_FIELDS.map((name) => [name, valueIn(name, draft, here)]);
  return Object.fromEntries(members) as Members;
}

/** @throws ReveilleError `invalid_request` with the user's channels, when one of the names is not among them */
function checkChannels({ backend }: TypedRequest, names: readonly string[] | null | undefined): void {
  if (!names || 'missing' in backend.notices) return;
  const known = backend.notices.there.list().map(({ name }) => name);
  const wrong = names.find((name) => !known.includes(name));
  if (wrong === undefined) return;
  const choice =
    known.length === 0 ? 'you have none; add one with: reveille notify add' : `you have ${known.join(', ')}`;
  throw new ReveilleError('invalid_request', `deliver must name channels of yours (got "${wrong}"; ${choice})`);
}

/** @throws ReveilleError `invalid_request` for channels that the user, or tools that the agent does not have */
async function checkNames(
  context: TypedRequest,
  { deliver, tools }: Pick<AlarmPatchBody, 'deliver' | 'tools'>,
): Promise<void> {
  checkChannels(context, deliver);
  const { agent } = context.backend;
  const refusal = 'there' in agent ? await refusedTools(agent.there, tools, context.clock) : undefined;
  if (refusal !== undefined) throw new ReveilleError('invalid_request', refusal);
}

/** Titles by the names in chronosd's errors. A name of one word counts only at the beginning, where it is a field. */
const TITLES = new Map<string, string>([
  ...FORM_FIELDS.filter((name) => fieldOf(name).type !== 'switch').map((name) => [name, titleOf(name)] as const),
  ...(['cron_expr', 'rrule'] as const).map((name) => [name, 'When'] as const),
]);
const NAMED = /"(?:[^"\\]|\\.)*"|^\w+|\b[a-z]+(?:_[a-z]+)+\b/g;
const withTitles = (message: string) => message.replace(NAMED, (name) => TITLES.get(name) ?? name);

function complaintOf(thrown: unknown): string | undefined {
  if (thrown instanceof PhraseError) return thrown.problem;
  const isTheirs =
    thrown instanceof ReveilleError && ['invalid_request', 'conflict', 'rate_limited'].includes(thrown.code);
  return isTheirs ? withTitles(thrown.message) : undefined;
}

/** The form with its content, the reading of its time, and the error. */
async function again(context: TypedRequest, form: Form, thrown?: unknown): Promise<Page> {
  const { when, zone, holidays } = form.draft;
  const { backend, here } = context;
  let reading = NOTHING;
  try {
    if (waitsIn(form.draft)) reading = thrown === undefined ? waitReading(form.draft) : NOTHING;
    else if (when !== undefined) reading = await readingOf(when, zone, holidays?.trim(), backend, here);
  } catch (unread) {
    reading = refusal(unread);
  }
  const complaint = thrown === undefined ? undefined : complaintOf(thrown);
  if (thrown !== undefined && complaint === undefined) throw thrown;
  return formPage(context, { ...form, reading, ...(complaint === undefined ? {} : { complaint }) });
}

/** The time of a new alarm, and when it fires. @throws ReveilleError and PhraseError for a wrong one */
async function timeIn({ when, zone, holidays }: Draft, { backend, here }: TypedRequest) {
  if (when === undefined) throw new ReveilleError('invalid_request', 'when must not be empty');
  const reading = readTyped(when, zone, here);
  const shownIn = reading.kind === 'delay' ? here.zone : reading.zone;
  const fires = await firesRead(reading, backend, here, holidays?.trim());
  const times = fires.map((at) => calendarTime(at, { now: here.now, zone: shownIn })).join(', then ');
  return { time: { kind: kindOf(reading), ...scheduleOf(reading) }, said: `fires ${times}, ${shownIn}` };
}

/** The secret that the answer to a create or an edit shows, as a sentence after others. */
const secretText = (hook: HookMade | undefined) =>
  hook?.secret === undefined ? '' : ` The sender signs with ${hook.secret}, which is shown only now.`;

/** `POST alarms/new`. */
export async function setAlarm(request: RequestContext): Promise<Page | Redirect> {
  const context = await typed(request);
  const draft = draftOf(context);
  const key = field(context, 'key') ?? randomSecret(12);
  const form = newForm(draft, { key });
  if (context.form.get('do') === 'read') return again(context, form);
  try {
    if (draft.message === undefined) throw new ReveilleError('invalid_request', 'message must not be empty');
    const alarms = there(context.backend.alarms);
    const conditions = conditionsIn(await withAlarmId(draft, alarms));
    const { time, said } = waitsIn(draft)
      ? { time: { kind: 'event' as const }, said: `${waitText(conditions)}` }
      : await timeIn(draft, context);
    const alarm: AlarmCreateBody = {
      ...{ ...time, ...membersOf(draft, context), ...conditions },
      idempotency_key: `console-${key}`.slice(0, 100),
    };
    await checkNames(context, alarm);
    const { id, hook } = await alarms.createAlarm(alarm);
    context.session.messages.success(`Alarm created. It ${said}.${secretText(hook)}`, async () => {
      await alarms.cancelAlarm(id);
      return 'The new alarm is cancelled.';
    });
    return { to: `alarms/${id}` };
  } catch (thrown) {
    return again(context, form, thrown);
  }
}

const editForm = (alarm: AlarmView, draft: Draft): Form => ({
  ...{ action: `alarms/${alarm.id}/edit`, title: 'Edit alarm', button: 'Save', draft, edited: alarm },
});

/** `alarms/{id}/edit`. */
export async function editScreen(context: RequestContext): Promise<Page> {
  const alarm = await there(context.backend.alarms).getAlarm(context.params.id!);
  return formPage(context, editForm(alarm, draftFrom(alarm)));
}

const kindOf = (reading: Reading): AlarmKind => {
  if (reading.kind !== 'series') return 'once';
  return reading.rrule === undefined ? 'cron' : 'rrule';
};

/** Why a time of another kind is refused: an edit keeps the kind. */
const KIND_REFUSALS: Readonly<Record<AlarmKind, string>> = {
  once: 'this alarm fires once: enter a time',
  cron: 'this alarm repeats by the clock: enter how often, as in "every monday at 10:00"',
  event: 'this alarm waits for events: leave the time empty',
  rrule: 'this alarm repeats by rules: enter one that skips days or weeks, as in "every other monday at 10:00"',
};

/** The members that the form changes, and their old values. An emptied field removes its member. */
function changesOf(
  alarm: AlarmView,
  draft: Draft,
  context: TypedRequest,
): { changes: AlarmPatchBody; back: AlarmPatchBody } {
  const was = draftFrom(alarm);
  const members = membersOf(draft, context);
  const before = membersOf(was, context);
  const differ = (name: Control) => (draft[name] ?? '') !== (was[name] ?? '').replace(/\r\n/g, '\n');
  const changed = FORM_FIELDS.filter((name) => differ(controlOf(name)));
  const none = (name: FormField) => (fieldOf(name).type === 'json' ? new RawJson('null') : null);
  const pick = (from: Members) => Object.fromEntries(changed.map((name) => [name, from[name] ?? none(name)]));
  const reading = draft.when === undefined ? undefined : readTyped(draft.when, draft.zone, context.here);
  if (reading && kindOf(reading) !== alarm.kind)
    throw new ReveilleError('invalid_request', `${KIND_REFUSALS[alarm.kind]}, or create a new alarm`);
  const old =
    alarm.kind === 'once'
      ? { fire_at: alarm.next_fire_at ?? alarm.fire_at }
      : { cron_expr: alarm.cron_expr, rrule: alarm.rrule, timezone: alarm.timezone };
  const conditions = conditionChanges(alarm, draft);
  return {
    changes: { ...pick(members), ...(reading ? scheduleOf(reading) : {}), ...conditions.changes },
    back: { ...pick(before), ...(reading ? old : {}), ...conditions.back } as AlarmPatchBody,
  };
}

/** `POST alarms/{id}/edit`. */
export async function editAlarm(request: RequestContext): Promise<Page | Redirect> {
  const context = await typed(request);
  const alarms = there(context.backend.alarms);
  const { id = '' } = context.params;
  const alarm = await alarms.getAlarm(id);
  const draft = draftOf(context);
  const form = editForm(alarm, draft);
  if (context.form.get('do') === 'read') return again(context, form);
  try {
    const { changes, back } = changesOf(alarm, await withAlarmId(draft, alarms), context);
    if (Object.keys(changes).length === 0) {
      context.session.messages.success('Nothing changed.');
      return { to: `alarms/${id}` };
    }
    await checkNames(context, changes);
    const { hook } = await alarms.patchAlarm(id, changes);
    const names = Object.keys(changes).join(', ');
    context.session.messages.success(`Changed: ${names}.${secretText(hook)}`, async () => {
      const undone = await alarms.patchAlarm(id, back);
      return `The change is undone.${secretText(undone.hook)}`;
    });
    return { to: `alarms/${id}` };
  } catch (thrown) {
    return again(context, form, thrown);
  }
}
