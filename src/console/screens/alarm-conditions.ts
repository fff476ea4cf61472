/**
 * The part of an alarm's form about events, checks and commands. Its lists of choices decide which controls are shown:
 * the style sheet hides the others, and the server ignores them.
 */
import { html, raw } from 'hono/html';
import type { AlarmPatchBody, ChronosClient } from '../../chronos/client.ts';
import { type GivenParts, PART_NAMES, type PartName, partOf, partsOf } from '../../kit/phrase/condition-parts.ts';
import { waitText } from '../../kit/phrase/condition-text.ts';
import { type Conditions, conditionsOf, givenPartsOf } from '../../kit/phrase/conditions.ts';
import { type AlarmView, alarmIdSchema } from '../../wire/alarm.ts';
import { fieldOf } from '../../wire/alarm-fields.ts';
import type { ObjectField } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { controlNote, type Html, NOTHING } from '../shown.ts';

/** When the alarm fires, and what is checked before; other parts than those of the choice are ignored. */
const CHOICES = {
  fires: [
    ['time', 'at a time'],
    ['event', 'when something happens'],
    ['after', 'after another alarm'],
    ['missing', 'when something is missing'],
  ],
  checks: [
    ['none', 'nothing'],
    ['address', 'an address'],
    ['command', 'a command'],
    ['path', 'a file or folder'],
  ],
} as const;
type ChoiceName = keyof typeof CHOICES;

/** The parts with a control. */
type FormPart = Exclude<PartName, 'check'>;
const FORM_PARTS = PART_NAMES.filter((name): name is FormPart => partOf(name).form !== undefined);

export type ConditionControl = ChoiceName | FormPart;
export const CONDITION_CONTROLS: readonly ConditionControl[] = ['fires', 'checks', ...FORM_PARTS];

export type ConditionDraft = { readonly [N in ConditionControl]?: string | undefined };

const EVENTS: readonly FormPart[] = ['on', 'filter'];
const COLLECTED: readonly FormPart[] = ['quiet-for', 'at-most-every', 'batch', 'deadline', 'repeat'];
const FOLLOWED: readonly FormPart[] = ['after-outcome', 'delay'];
const EXPECTED: readonly FormPart[] = ['expect-every', 'grace'];
const OF_ADDRESS: readonly FormPart[] = ['check-url', 'check-status', 'check-pointer', 'check-equals', 'check-changed'];
const OF_COMMAND: readonly FormPart[] = ['check-command', 'check-env', 'check-timeout', 'check-network'];
const OF_PATH: readonly FormPart[] = ['check-path'];
const OF_ANY_CHECK: readonly FormPart[] = ['check-on-error', 'max-skips', 'wake-at-least'];
const OF_RUN: readonly FormPart[] = ['run', 'run-timeout'];

/** The parts that a choice reads. */
const READ: Readonly<Record<ChoiceName, Readonly<Record<string, readonly FormPart[]>>>> = {
  fires: {
    time: [],
    event: [...EVENTS, ...COLLECTED],
    after: ['after', ...FOLLOWED],
    missing: [...EXPECTED, ...EVENTS, 'after'],
  },
  checks: {
    none: [],
    address: [...OF_ADDRESS, ...OF_ANY_CHECK],
    command: [...OF_COMMAND, ...OF_ANY_CHECK],
    path: [...OF_PATH, ...OF_ANY_CHECK],
  },
};

/** Titles as errors have them. */
const titleOf = (name: PartName): string => partOf(name).form?.[0] ?? name;

const firesOf = ({ event, after, expect }: Conditions) =>
  expect !== undefined ? 'missing' : after !== undefined ? 'after' : event !== undefined ? 'event' : 'time';

const checksOf = ({ check }: Conditions) =>
  check?.http !== undefined ? 'address' : check?.command !== undefined ? 'command' : check?.path ? 'path' : 'none';

/** The fields of an alarm as content of the form. */
export function conditionDraft(alarm: Conditions): ConditionDraft {
  const { check: _, ...parts } = givenPartsOf(alarm);
  return { ...parts, fires: firesOf(alarm), checks: checksOf(alarm) };
}

/** Whether the alarm fires without a time. */
export const waitsIn = ({ fires = 'time' }: ConditionDraft): boolean => fires !== 'time';

/** Whether a check or a command is given. */
export const worksIn = ({ checks = 'none', run }: ConditionDraft): boolean => checks !== 'none' || run !== undefined;

function partsIn(draft: ConditionDraft): GivenParts {
  const { fires = 'time', checks = 'none' } = draft;
  const read = [...(READ.fires[fires] ?? []), ...(READ.checks[checks] ?? []), ...OF_RUN];
  const entries = read.map((name) => [name, draft[name]] as const);
  return Object.fromEntries(entries.filter(([name, text]) => text !== undefined && text !== partOf(name).choices?.[0]));
}

const invalid = (message: string) => new ReveilleError('invalid_request', message);

/** What the choice of `fires` needs. */
const NEEDED: Readonly<Record<string, FormPart>> = { event: 'on', after: 'after', missing: 'expect-every' };
const NEEDED_BY_CHECK: Readonly<Record<string, FormPart>> = {
  address: 'check-url',
  command: 'check-command',
  path: 'check-path',
};

/** @throws ReveilleError `invalid_request` naming the control */
export function conditionsIn(draft: ConditionDraft, earlier?: Conditions): Conditions {
  const needed = [NEEDED[draft.fires ?? ''], NEEDED_BY_CHECK[draft.checks ?? '']];
  const missing = needed.find((name) => name !== undefined && draft[name] === undefined);
  if (missing !== undefined) throw invalid(`${titleOf(missing)} must not be empty`);
  return conditionsOf(partsIn(draft), { nameOf: titleOf, refuse: invalid, earlier });
}

const FIELDS: readonly ObjectField[] = ['check', 'event', 'after', 'expect', 'run'];

/** The fields that an edit changes, and their old values; `null` removes one. */
export function conditionChanges(
  alarm: AlarmView,
  draft: ConditionDraft,
): { changes: AlarmPatchBody; back: AlarmPatchBody } {
  const [was, is] = [conditionsIn(conditionDraft(alarm), alarm), conditionsIn(draft, alarm)];
  const changed = FIELDS.filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]));
  const fixed = changed.find((name) => fieldOf(name).edit === 'set' && is[name] === undefined);
  if (fixed !== undefined)
    throw invalid(`${titleOf(partsOf(fixed)[0]!)} can be changed but not removed; create a new alarm`);
  const pick = (from: Conditions) => Object.fromEntries(changed.map((name) => [name, from[name] ?? null]));
  return { changes: pick(is), back: pick({ ...was, ...alarm }) };
}

const MOST_FOUND = 500;

/** The draft with the id of the other alarm, which may be given by its label. @throws ReveilleError `not_found` */
export async function withAlarmId(draft: ConditionDraft, alarms: ChronosClient): Promise<ConditionDraft> {
  const { after } = draft;
  const isRead = READ.fires[draft.fires ?? 'time']?.includes('after');
  if (after === undefined || !isRead || alarmIdSchema.safeParse(after).success) return draft;
  const found = await alarms.listAlarms({ text: after, limit: MOST_FOUND });
  const named = found.alarms.filter(({ label }) => label === after);
  const active = named.filter(({ status }) => status === 'active');
  const [only, ...others] = active.length > 0 ? active : named;
  if (only === undefined) throw invalid(`${titleOf('after')} must be the id or the label of an alarm (got "${after}")`);
  if (others.length > 0) throw invalid(`${titleOf('after')}: several alarms have the label "${after}"; give the id`);
  return { ...draft, after: only.id };
}

/** What the alarm waits for, as the page repeats it. */
export const waitReading = (draft: ConditionDraft): Html => {
  const text = waitText(conditionsIn(draft));
  return html`<p class="reading" role="status">${text.charAt(0).toUpperCase()}${text.slice(1)}</p>`;
};

function choice(name: ChoiceName, title: string, draft: ConditionDraft): Html {
  const chosen = draft[name];
  const options = CHOICES[name].map(
    ([value, text]) => html`<option value="${value}"${value === chosen ? raw(' selected') : ''}>${text}</option>`,
  );
  return html`<div class="field"><label for="${name}">${title}</label><select id="${name}" name="${name}">${options}</select></div>`;
}

function control(name: FormPart, draft: ConditionDraft): Html {
  const { type, choices = [], form: [title, hint = ''] = ['', ''] } = partOf(name);
  const value = draft[name];
  if (type === 'switch')
    return html`<div class="field check"><input type="checkbox" id="${name}" name="${name}"${value === undefined ? '' : raw(' checked')}><label for="${name}">${title}</label></div>`;
  const below = html`<p class="hint" id="${name}-hint">${hint}</p>`;
  if (type !== 'choice')
    return html`<div class="field"><label for="${name}">${title}</label><input id="${name}" name="${name}" value="${value ?? ''}" autocomplete="off" aria-describedby="${name}-hint">${controlNote(value)}${below}</div>`;
  const options = choices.map(
    (one) => html`<option value="${one}"${one === (value ?? choices[0]) ? raw(' selected') : ''}>${one}</option>`,
  );
  return html`<div class="field"><label for="${name}">${title}</label><select id="${name}" name="${name}" aria-describedby="${name}-hint">${options}</select>${below}</div>`;
}

/** Some controls that are shown for some values of a list of choices. */
function group(shownFor: string, names: readonly FormPart[], draft: ConditionDraft): Html {
  const isSwitch = (name: FormPart) => partOf(name).type === 'switch';
  const lines = names.filter((name) => !isSwitch(name)).map((name) => html`\n${control(name, draft)}`);
  const switches = names.filter(isSwitch).map((name) => html`\n${control(name, draft)}`);
  return html`<div class="stack ${shownFor}"><div class="pair">${lines}</div>${switches}</div>`;
}

/** The choice between a time and events. @param isEdit the alarm keeps its kind */
export function firesChoice(draft: ConditionDraft, isEdit: boolean): Html {
  if (!isEdit) return choice('fires', 'Fires', draft);
  return waitsIn(draft)
    ? html`<select id="fires" name="fires" hidden><option value="${draft.fires ?? ''}" selected></option></select>`
    : NOTHING;
}

/** The controls of events. @param isEdit the alarm keeps its kind */
export function eventControls(draft: ConditionDraft, isEdit: boolean): Html {
  if (isEdit && !waitsIn(draft)) return NOTHING;
  return html`${group('if-missing', EXPECTED, draft)}
${group('if-event if-missing', EVENTS, draft)}
${group('if-after if-missing', ['after'], draft)}
<details class="if-event"${COLLECTED.some((name) => draft[name] !== undefined) ? raw(' open') : ''}><summary>Collect events, repeat, deadline</summary>${group('', COLLECTED, draft)}</details>
${group('if-after', FOLLOWED, draft)}
<p class="hint if-missing">Leave both empty if a program calls the address that the alarm gets.</p>`;
}

/** The check, and the command in place of a turn. */
export function workControls(draft: ConditionDraft): Html {
  return html`<details${worksIn(draft) ? raw(' open') : ''}><summary>Check before a wake, or run a command</summary>
${choice('checks', 'Check first', draft)}
${group('if-address', OF_ADDRESS, draft)}
${group('if-command', OF_COMMAND, draft)}
${group('if-path', OF_PATH, draft)}
${group('if-address if-command if-path', OF_ANY_CHECK, draft)}
<div class="pair">${OF_RUN.map((name) => html`\n${control(name, draft)}`)}</div>
</details>`;
}
