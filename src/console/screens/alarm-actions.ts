/** What is done with alarms: one, or several at once. What can be taken back, can be; what cannot, is asked about first. */
import { html } from 'hono/html';
import type { ChronosClient } from '../../chronos/client.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { nameOf, ringTime, scheduleWords } from '../alarm-text.ts';
import { csrfField, type Page } from '../page.ts';
import { type Html, NOTHING } from '../shown.ts';
import { type Redirect, there, type RequestContext } from '../request-context.ts';

type Verb = 'pause' | 'resume' | 'trigger' | 'redrive' | 'cancel';

type Deed = {
  readonly words: string;
  /** Of one, then of several. */
  readonly done: string;
  readonly act: (alarms: ChronosClient, id: string) => Promise<unknown>;
  /** Takes it back; without it, it is asked about first. */
  readonly back?: { readonly act: (alarms: ChronosClient, id: string) => Promise<unknown>; readonly done: string };
  readonly question: string;
};

const DEEDS: Readonly<Record<Verb, Deed>> = {
  pause: {
    ...{ words: 'Pause', done: 'Paused', question: 'Pause these?' },
    act: (alarms, id) => alarms.pauseAlarm(id),
    back: { act: (alarms, id) => alarms.resumeAlarm(id), done: 'Resumed' },
  },
  resume: {
    ...{ words: 'Resume', done: 'Resumed', question: 'Resume these?' },
    act: (alarms, id) => alarms.resumeAlarm(id),
    back: { act: (alarms, id) => alarms.pauseAlarm(id), done: 'Paused again' },
  },
  trigger: {
    ...{ words: 'Ring now', done: 'Rings now', act: (alarms: ChronosClient, id: string) => alarms.triggerAlarm(id) },
    question: 'Ring now, beside the schedule? The agent is woken; that cannot be taken back.',
  },
  redrive: {
    ...{ words: 'Redrive', done: 'Tried again', act: (alarms: ChronosClient, id: string) => alarms.redriveAlarm(id) },
    question: 'Try the ring that failed once more? The agent is woken; that cannot be taken back.',
  },
  cancel: {
    ...{ words: 'Cancel', done: 'Cancelled', act: (alarms: ChronosClient, id: string) => alarms.cancelAlarm(id) },
    question: 'Cancel for good? It does not ring any more, and cannot be brought back; a new one can be set like it.',
  },
};

const MOST_AT_ONCE = 100;

const verbOf = (text: string | null | undefined): Verb => {
  const found = (Object.keys(DEEDS) as Verb[]).find((verb) => verb === text);
  if (found) return found;
  throw new ReveilleError(
    'invalid_request',
    'what is to be done is none of pause, resume, trigger, redrive and cancel',
  );
};

const count = (ids: readonly string[]) => (ids.length === 1 ? '1 alarm' : `${ids.length} alarms`);

/** Does it to each, whatever comes of the others. @returns those that it was done to, and why not the others */
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

async function carryOut(context: RequestContext, verb: Verb, ids: readonly string[]): Promise<void> {
  const { act, back, done: words } = DEEDS[verb];
  const alarms = there(context.backend.alarms);
  const { messages } = context.session;
  const { done, failed } = await each(ids, (id) => act(alarms, id));
  const why = failed.length === 0 ? '' : ` ${failed.length} not: ${[...new Set(failed)].slice(0, 3).join('; ')}`;
  if (done.length === 0) return messages.error(`Nothing was done.${why}`);
  const step =
    back &&
    (async () => {
      const again = await each(done, (id) => back.act(alarms, id));
      return `${back.done}: ${count(again.done)}.${again.failed.length === 0 ? '' : ` ${again.failed.join('; ')}`}`;
    });
  messages.success(`${words}: ${count(done)}.${why}`, step);
}

/** The question before what cannot be taken back. */
async function ask(context: RequestContext, verb: Verb, ids: readonly string[], backTo: string): Promise<Page> {
  const { words, question } = DEEDS[verb];
  const alarms = there(context.backend.alarms);
  const shown = await Promise.all(ids.slice(0, 20).map((id) => alarms.getAlarm(id)));
  const rows = shown.map(
    (alarm): Html =>
      html`<li><span dir="auto">${nameOf(alarm)}</span> <span class="dim">${scheduleWords(alarm, context.here)} · ${ringTime(alarm, context.here)}</span></li>`,
  );
  const rest = ids.length > shown.length ? html`<li class="dim">and ${ids.length - shown.length} more</li>` : NOTHING;
  const hidden = ids.map((id) => html`<input type="hidden" name="id" value="${id}">`);
  const main = html`<section class="question"><h1>${words}: ${count(ids)}</h1><p>${question}</p>
<ul class="plain">${rows}${rest}</ul>
<form method="post" action="alarms/several" class="actions">${csrfField(context.session.csrf)}${hidden}<input type="hidden" name="sure" value="yes"><input type="hidden" name="back" value="${backTo}">
<button name="do" value="${verb}" class="${verb === 'cancel' ? 'danger' : 'primary'}" autofocus>${words}</button><a class="button" href="${backTo}">Leave it</a></form></section>`;
  return { screen: 'alarms', title: words, main };
}

/** `alarms/{id}/cancel`, `…/trigger`: the question. */
export const askAbout = (verb: Verb) => (context: RequestContext) => {
  const { id = '' } = context.params;
  return ask(context, verb, [id], `alarms/${id}`);
};

/** `alarms/{id}/{verb}`, sent: what can be taken back is done, the rest is asked about. */
export const doTo =
  (verb: Verb) =>
  async (context: RequestContext): Promise<Page | Redirect> => {
    const { id = '' } = context.params;
    if (!DEEDS[verb].back) return ask(context, verb, [id], `alarms/${id}`);
    await carryOut(context, verb, [id]);
    return { to: `alarms/${id}` };
  };

/** `alarms/several`, sent. */
export async function doToSeveral(context: RequestContext): Promise<Page | Redirect> {
  const { form } = context;
  const verb = verbOf(form.get('do'));
  const ids = [...new Set(form.getAll('id'))];
  if (ids.some((id) => !/^[0-9a-f-]{36}$/.test(id)))
    throw new ReveilleError('invalid_request', 'id must be that of an alarm');
  if (ids.length > MOST_AT_ONCE)
    throw new ReveilleError('invalid_request', `mark at most ${MOST_AT_ONCE} alarms at once`);
  const one = /^alarms\/[0-9a-f-]{36}$/.exec(form.get('back') ?? '')?.[0] ?? 'alarms';
  if (ids.length === 0) {
    context.session.messages.error('No alarm is marked: mark some with the boxes before them, or with x.');
    return { to: 'alarms' };
  }
  if (!DEEDS[verb].back && form.get('sure') !== 'yes') return ask(context, verb, ids, one);
  await carryOut(context, verb, ids);
  return { to: one };
}

/** `undo`, sent. */
export async function undoStep(context: RequestContext): Promise<Redirect> {
  const { session, form } = context;
  const step = session.messages.step(form.get('step') ?? '');
  if (!step) session.messages.error('That was taken back already, or too long ago.');
  else {
    try {
      session.messages.success(await step());
    } catch (thrown) {
      session.messages.error(`It could not be taken back: ${toReveilleError(thrown).message}`);
    }
  }
  return { to: 'alarms' };
}
