/** Actions on one or several alarms. Reversible actions have an undo; the others need a confirmation. */
import { html } from 'hono/html';
import type { ChronosClient } from '../../chronos/client.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { fireTime, nameOf, scheduleHtml } from '../alarm-text.ts';
import { csrfField, type Page } from '../page.ts';
import { type Redirect, type RequestContext, there } from '../request-context.ts';
import { type Html, NOTHING } from '../shown.ts';

type Verb = 'pause' | 'resume' | 'trigger' | 'redrive' | 'cancel';

type Action = {
  readonly name: string;
  /** Begins the message after the action. */
  readonly done: string;
  readonly act: (alarms: ChronosClient, id: string) => Promise<unknown>;
  /** Undoes it; an action without it needs a confirmation. */
  readonly undo?: { readonly act: (alarms: ChronosClient, id: string) => Promise<unknown>; readonly done: string };
  readonly question: string;
};

const ACTIONS: Readonly<Record<Verb, Action>> = {
  pause: {
    ...{ name: 'Pause', done: 'Paused', question: 'Pause these alarms?' },
    act: (alarms, id) => alarms.pauseAlarm(id),
    undo: { act: (alarms, id) => alarms.resumeAlarm(id), done: 'Resumed' },
  },
  resume: {
    ...{ name: 'Resume', done: 'Resumed', question: 'Resume these alarms?' },
    act: (alarms, id) => alarms.resumeAlarm(id),
    undo: { act: (alarms, id) => alarms.pauseAlarm(id), done: 'Paused again' },
  },
  trigger: {
    ...{ name: 'Fire now', done: 'Firing', act: (alarms: ChronosClient, id: string) => alarms.triggerAlarm(id) },
    question: 'This wakes the agent now, in addition to the schedule. It cannot be undone.',
  },
  redrive: {
    ...{ name: 'Retry', done: 'Retrying', act: (alarms: ChronosClient, id: string) => alarms.redriveAlarm(id) },
    question: 'This delivers the failed occurrence again and wakes the agent. It cannot be undone.',
  },
  cancel: {
    ...{ name: 'Cancel alarm', done: 'Cancelled', act: (alarms: ChronosClient, id: string) => alarms.cancelAlarm(id) },
    question: 'A cancelled alarm does not fire again. It cannot be restored; Duplicate creates a new one like it.',
  },
};

const MAX_AT_ONCE = 100;

const verbOf = (text: string | null | undefined): Verb => {
  const found = (Object.keys(ACTIONS) as Verb[]).find((verb) => verb === text);
  if (found) return found;
  throw new ReveilleError(
    'invalid_request',
    `do must be pause, resume, trigger, redrive or cancel (got "${text ?? ''}")`,
  );
};

const count = (ids: readonly string[]) => (ids.length === 1 ? '1 alarm' : `${ids.length} alarms`);

/** Applies an action to each alarm. @returns the ids of successes and the messages of failures */
async function each(ids: readonly string[], act: (id: string) => Promise<unknown>) {
  const done: string[] = [];
  const failed: string[] = [];
  for (const id of ids) {
    try {
      await act(id);
      done.push(id);
    } catch (thrown) {
      failed.push(toReveilleError(thrown).message);
    }
  }
  return { done, failed };
}

async function apply(context: RequestContext, verb: Verb, ids: readonly string[]): Promise<void> {
  const { act, undo, done: result } = ACTIONS[verb];
  const alarms = there(context.backend.alarms);
  const { messages } = context.session;
  const { done, failed } = await each(ids, (id) => act(alarms, id));
  const why = failed.length === 0 ? '' : ` ${failed.length} failed: ${[...new Set(failed)].slice(0, 3).join('; ')}`;
  if (done.length === 0) return messages.error(`Nothing changed.${why}`);
  const step =
    undo &&
    (async () => {
      const again = await each(done, (id) => undo.act(alarms, id));
      return `${undo.done}: ${count(again.done)}.${again.failed.length === 0 ? '' : ` ${again.failed.join('; ')}`}`;
    });
  messages.success(`${result}: ${count(done)}.${why}`, step);
}

/** The confirmation of an action that cannot be undone. */
async function confirm(context: RequestContext, verb: Verb, ids: readonly string[], backTo: string): Promise<Page> {
  const { name, question } = ACTIONS[verb];
  const alarms = there(context.backend.alarms);
  const shown = await Promise.all(ids.slice(0, 20).map((id) => alarms.getAlarm(id)));
  const rows = shown.map(
    (alarm): Html =>
      html`<li><span dir="auto">${nameOf(alarm)}</span> <span class="dim">${scheduleHtml(alarm, context.here)} · ${fireTime(alarm, context.here)}</span></li>`,
  );
  const rest = ids.length > shown.length ? html`<li class="dim">and ${ids.length - shown.length} more</li>` : NOTHING;
  const hidden = ids.map((id) => html`<input type="hidden" name="id" value="${id}">`);
  const main = html`<section class="question"><h1>${name}: ${count(ids)}</h1><p>${question}</p>
<ul class="plain">${rows}${rest}</ul>
<form method="post" action="alarms/several" class="actions">${csrfField(context.session.csrf)}${hidden}<input type="hidden" name="sure" value="yes"><input type="hidden" name="back" value="${backTo}">
<button name="do" value="${verb}" class="${verb === 'cancel' ? 'danger' : 'primary'}" autofocus>${name}</button><a class="button" href="${backTo}">${verb === 'cancel' ? 'Keep alarm' : 'Cancel'}</a></form></section>`;
  return { screen: 'alarms', title: name, main };
}

/** `alarms/{id}/cancel`, `…/trigger`: the confirmation. */
export const confirmAction = (verb: Verb) => (context: RequestContext) => {
  const { id = '' } = context.params;
  return confirm(context, verb, [id], `alarms/${id}`);
};

/** `POST alarms/{id}/{verb}`: applies a reversible action, or asks for a confirmation. */
export const applyTo =
  (verb: Verb) =>
  async (context: RequestContext): Promise<Page | Redirect> => {
    const { id = '' } = context.params;
    if (!ACTIONS[verb].undo) return confirm(context, verb, [id], `alarms/${id}`);
    await apply(context, verb, [id]);
    return { to: `alarms/${id}` };
  };

/** `POST alarms/several`. */
export async function applyToSeveral(context: RequestContext): Promise<Page | Redirect> {
  const { form } = context;
  const verb = verbOf(form.get('do'));
  const ids = [...new Set(form.getAll('id'))];
  if (ids.some((id) => !/^[0-9a-f-]{36}$/.test(id)))
    throw new ReveilleError('invalid_request', 'id must be the id of an alarm');
  if (ids.length > MAX_AT_ONCE)
    throw new ReveilleError('invalid_request', `select at most ${MAX_AT_ONCE} alarms (got ${ids.length})`);
  const one = /^alarms\/[0-9a-f-]{36}$/.exec(form.get('back') ?? '')?.[0] ?? 'alarms';
  if (ids.length === 0) {
    context.session.messages.error('No alarm is selected. Select alarms with their checkboxes, or with x.');
    return { to: 'alarms' };
  }
  if (!ACTIONS[verb].undo && form.get('sure') !== 'yes') return confirm(context, verb, ids, one);
  await apply(context, verb, ids);
  return { to: one };
}

/** `POST undo`. */
export async function undoStep(context: RequestContext): Promise<Redirect> {
  const { session, form } = context;
  const step = session.messages.step(form.get('step') ?? '');
  if (!step) session.messages.error('This step was already undone, or is too old.');
  else {
    try {
      session.messages.success(await step());
    } catch (thrown) {
      session.messages.error(`Undo failed: ${toReveilleError(thrown).message}`);
    }
  }
  return { to: 'alarms' };
}
