/** One alarm: its message, its payload digit for digit, and the progress of every fire. */
import { html, raw } from 'hono/html';
import type { ChronosClient } from '../../chronos/client.ts';
import { formatDuration, formatLateness } from '../../kit/clock/duration.ts';
import { calendarTime } from '../../kit/clock/local-time.ts';
import { conditionText, type NameOfAlarm } from '../../kit/phrase/condition-text.ts';
import { usesWallClock } from '../../kit/phrase/series-text.ts';
import { unusedCalendar } from '../../kit/phrase/unused-calendar.ts';
import type { AlarmView } from '../../wire/alarm.ts';
import { type FieldsWith, fieldOf, OWNER_FIELDS, ordered } from '../../wire/alarm-fields.ts';
import type { ObjectField } from '../../wire/conditions.ts';
import { type Fire, type FireState, firesOf, plainError } from '../../wire/fire.ts';
import { setByText, type TextAuthor } from '../../wire/set-by.ts';
import { usageText } from '../../wire/usage.ts';
import {
  backfillText,
  fireTime,
  hasTrouble,
  instantOf,
  nameAmong,
  nameOf,
  rhythmOf,
  scheduleHtml,
  stateMark,
  trouble,
  valueText,
  whyItFires,
} from '../alarm-text.ts';
import { csrfField } from '../page.ts';
import { type RequestContext, there, withQuery } from '../request-context.ts';
import { block, type Html, NOTHING, shown } from '../shown.ts';
import { type LocalContext, time } from '../times.ts';
import { replyText } from './chat.ts';

const FIRES = 20;

const fact = (name: string, value: Html | string | undefined): Html =>
  value === undefined || value === '' ? NOTHING : html`<div><dt>${name}</dt><dd>${value}</dd></div>`;

/** The actions that its state permits; each is a form of its own. */
function actions({ id, kind, status, in_flight }: AlarmView, csrf: string, lastTurnFailed: boolean): Html {
  const act = (verb: string, name: string, key?: string) =>
    html`<form method="post" action="alarms/${id}/${verb}" class="inline" id="act-${verb}">${csrfField(csrf)}<button${key ? raw(` data-key="${key}"`) : ''}>${name}</button></form>`;
  const isOpen = status === 'active' || status === 'paused';
  return html`<div class="actions" role="group" aria-label="Actions">
${isOpen ? html`<a class="button" id="act-edit" href="alarms/${id}/edit" data-key="e">Edit</a>` : NOTHING}
${status === 'active' ? act('pause', 'Pause') : NOTHING}
${status === 'paused' ? act('resume', 'Resume') : NOTHING}
${status === 'failed' || lastTurnFailed ? act('redrive', 'Retry') : NOTHING}
${in_flight ? NOTHING : html`<a class="button" id="act-trigger" href="alarms/${id}/trigger">Fire now</a>`}
${kind !== 'once' && status === 'active' ? html`<a class="button" id="act-backfill" href="alarms/${id}/backfill">Backfill</a>` : NOTHING}
<a class="button" id="act-copy" href="alarms/new?like=${id}">Duplicate</a>
${isOpen ? html`<a class="button danger" id="act-cancel" href="alarms/${id}/cancel">Cancel alarm</a>` : NOTHING}
</div>`;
}

type Fact = FieldsWith<{ fact: readonly unknown[] }>;

const FACTS: readonly Fact[] = [
  ...ordered<Fact>(
    ['ends_at', 'max_lateness_seconds', 'jitter_seconds'],
    OWNER_FIELDS.filter((name): name is Fact => fieldOf(name).fact !== undefined && name !== 'max_failures'),
  ),
  'max_failures',
];

const isCondition = (name: Fact): name is Fact & ObjectField => fieldOf(name).type === 'object';

function fieldFact(alarm: AlarmView, name: Fact, here: LocalContext, nameOf: NameOfAlarm): Html {
  const { type, fact: [title, text] = ['', ''] } = fieldOf(name);
  const value = alarm[name];
  if (value !== undefined && isCondition(name)) {
    const line = shown(conditionText(name, alarm[name]!, nameOf));
    return fact(title, name === 'after' ? html`<a href="alarms/${alarm.after!.alarm}">${line}</a>` : line);
  }
  if (type === 'instant' && value !== undefined) return fact(title, time(value as string, here));
  const written = valueText(alarm, name);
  return written === undefined ? NOTHING : fact(title, shown(text.replace('{}', () => written)));
}

const SENDERS = { standard: 'signed as in Standard Webhooks', github: 'signed as by GitHub', path: 'keep it secret' };

/** The address of webhooks, at this console's listener. */
function addressFact({ hook }: AlarmView, origin: string): Html {
  if (hook === undefined) return NOTHING;
  const address = hook.address.startsWith('/') ? `${origin}${hook.address}` : hook.address;
  return fact('Address', html`<code>${shown(address)}</code> <span class="dim">${SENDERS[hook.verify]}</span>`);
}

/** The alarm that this one follows; it may have been deleted. */
async function followed(alarms: ChronosClient, { after, event }: AlarmView): Promise<AlarmView[]> {
  const id = after?.alarm ?? (event?.source === 'alarm' ? event.alarm : undefined);
  const found = id === undefined ? undefined : await alarms.getAlarm(id).catch(() => undefined);
  return found === undefined ? [] : [found];
}

/** The author of a text that another one than that of the message wrote. */
const authorOf = (by: TextAuthor | undefined) => by && (by.kind === 'agent' ? 'the agent' : shown(setByText(by)));

function facts(alarm: AlarmView, { backend, here, origin }: RequestContext, nameOf: NameOfAlarm): Html {
  const { cron_expr, rrule, timezone = 'UTC', max_fires, ends_at } = alarm;
  const written = rrule ?? cron_expr;
  const next = instantOf(alarm.next_fire_at);
  const fires =
    written === undefined || next === undefined || alarm.status !== 'active'
      ? []
      : backend.ringsOf({
          ...rhythmOf(alarm),
          after: next,
          until: instantOf(ends_at) ?? Number.MAX_SAFE_INTEGER,
          atMost: 2,
        });
  const then = fires.length === 0 ? NOTHING : html`, then ${fires.map((at) => calendarTime(at, here)).join(', ')}`;
  const fired =
    max_fires !== undefined
      ? `${alarm.fire_count} of ${max_fires}`
      : alarm.fire_count > 0
        ? String(alarm.fire_count)
        : undefined;
  const calendar = unusedCalendar(alarm);
  return html`<dl class="facts">
${fact('Next fire', html`${fireTime(alarm, here)}${then}${alarm.kind === 'event' && next !== undefined ? `, ${whyItFires(alarm)}` : NOTHING}`)}
${alarm.kind === 'event' ? NOTHING : fact('Schedule', html`${scheduleHtml(alarm, here)}${written !== undefined && usesWallClock(written) ? html` <code class="dim">${shown(written)}</code> <span class="dim">${shown(timezone)}</span>` : NOTHING}`)}
${fact('Calendar', calendar === undefined ? undefined : html`<span class="trouble">${shown(calendar)}</span>`)}
${fact('Backfill', backfillText(alarm, here))}
${fact('Message by', authorOf(alarm.set_by ?? { kind: 'agent' }))}
${fact('Label by', authorOf(alarm.text_by?.label))}
${fact('Payload by', authorOf(alarm.text_by?.payload))}
${fact('Created', time(alarm.created_at, here))}
${fact('Fired', fired)}
${fact('Last fire', alarm.last_fired_at === undefined ? undefined : time(alarm.last_fired_at, here))}
${FACTS.map((name) => html`${fieldFact(alarm, name, here, nameOf)}\n`)}${addressFact(alarm, origin)}
${fact('Conversation', alarm.conversation_id === undefined ? undefined : html`<a href="chat/${encodeURIComponent(alarm.conversation_id)}">Open in Chat</a>`)}
${fact('ID', html`<code>${alarm.id}</code>`)}
</dl>`;
}

const STAGES = ['due', 'machine ready', 'accepted', 'turn started', 'turn finished'] as const;

/** Four steps from due to finished, filled up to the stage that the fire reached. */
function progress(stages: readonly (number | undefined)[], isBad: boolean): Html {
  const reached = stages.findLastIndex((at) => at !== undefined);
  const text = reached === 0 ? 'due' : `reached: ${STAGES[reached]}`;
  const parts = STAGES.slice(1).map((_, at) => {
    const state = at < reached ? 'full' : isBad && at === reached ? 'bad' : 'none';
    return html`<rect class="${state}" x="${at * 26}" y="0" width="24" height="8" rx="2"/>`;
  });
  return html`<svg class="progress" viewBox="0 0 104 8" width="104" height="8" role="img" aria-label="${text}${isBad ? ', failed' : ''}">${parts}</svg>`;
}

/** The part of the reply that chronosd stores. The conversation has the whole reply. */
function replyBlock({ turn }: Fire): Html {
  if (turn?.conversation_id === undefined) return NOTHING;
  const to = `chat/${encodeURIComponent(turn.conversation_id)}${turn.turn_id === undefined ? '' : `#turn-${turn.turn_id}`}`;
  const reply = turn.reply
    ? html`<div class="reply"><h3>Reply</h3><div class="text" dir="auto">${replyText(turn.reply)}</div></div>`
    : NOTHING;
  return html`${reply}<p><a href="${to}">Open the conversation</a></p>`;
}

/** How far it got, and the next step after a failure. */
function stateText({ state, next, error }: Fire, here: LocalContext): Html {
  const why = error === undefined ? NOTHING : html`: ${shown(error)}`;
  switch (state) {
    case 'missed':
      return html`missed`;
    case 'skipped':
      return html`skipped${why}`;
    case 'not_delivered':
      return html`failed`;
    case 'delivery_unknown':
      return html`unknown`;
    case 'accepted':
      return html`accepted; no turn report yet`;
    case 'turn_running':
      return html`turn running`;
    case 'turn_waits':
      return html`turn failed, next attempt ${next.step === 'retry' && next.at ? time(next.at, here) : NOTHING}${why}`;
    case 'turn_done':
      return html`done`;
    case 'turn_failed':
      return html`turn failed${why}`;
    case 'turn_unknown':
      return html`outcome of the turn unknown${why}`;
  }
}

const BAD: ReadonlySet<FireState> = new Set(['missed', 'not_delivered', 'delivery_unknown', 'turn_failed']);

function fireBlock(fire: Fire, here: LocalContext): Html {
  const { attempts, dueAt, lateness, missedCount } = fire;
  const stages = [dueAt, fire.machineReadyAt, fire.acceptedAt, fire.turnStartedAt, fire.turnFinishedAt];
  const isBad = BAD.has(fire.state);
  const used = usageText(fire.turn?.usage);
  const steps = stages
    .slice(1)
    .map((at, n) =>
      at === undefined
        ? NOTHING
        : html`<div><dt>${STAGES[n + 1]!}</dt><dd>${at < dueAt ? calendarTime(at, here) : html`+${formatDuration(at - dueAt)}`}</dd></div>`,
    );
  // The reason of a skip is in the line above.
  const failed = attempts.toReversed().filter(({ error, outcome }) => error !== undefined && outcome !== 'skipped');
  const errors = failed.map(
    ({ attempt, error = '', outcome }) => html`<li>attempt ${attempt} ${outcome}: ${shown(plainError(error))}</li>`,
  );
  return html`<li class="fire">
<div class="line">${time(dueAt, here)} ${progress(stages, isBad)} <span class="${isBad ? 'bad' : fire.state === 'skipped' ? 'dim' : 'good'}">${stateText(fire, here)}</span></div>
<p class="dim">${lateness ? formatLateness(lateness.ms, lateness.because) : NOTHING}${missedCount > 0 ? html`; covers ${missedCount} missed occurrences` : NOTHING}</p>
<dl class="steps">${steps}${used === undefined ? NOTHING : html`<div><dt>used</dt><dd>${used}</dd></div>`}</dl>
${errors.length === 0 ? NOTHING : html`<ul class="errors">${errors}</ul>`}
${replyBlock(fire)}
</li>`;
}

export async function detailOf(context: RequestContext, id: string): Promise<Html> {
  const { here, session, backend, query } = context;
  const alarms = there(backend.alarms);
  const before = query.get('fires') ?? undefined;
  const [alarm, page] = await Promise.all([
    alarms.getAlarm(id),
    alarms.listFires(id, { limit: FIRES, ...(before === undefined ? {} : { cursor: before }) }),
  ]);
  await backend.readCalendars?.([alarm]);
  const fires = firesOf(page.fires, alarm);
  const more =
    page.next_cursor === undefined
      ? NOTHING
      : html`<p><a class="button" href="${withQuery(`alarms/${id}`, query, { fires: page.next_cursor })}">Earlier fires</a></p>`;
  const next = alarm.next_fire_at === undefined ? NOTHING : html` Next fire: ${fireTime(alarm, here)}.`;
  return html`<h1 dir="auto">${nameOf(alarm, 120)}</h1>
<p>${stateMark(alarm)}</p>
${hasTrouble(alarm) ? html`<p class="trouble">${trouble(alarm, here)}</p>` : NOTHING}
${actions(alarm, session.csrf, fires[0]?.state === 'turn_failed')}
<h2>Message</h2>
${block(alarm.wake_message)}
${alarm.payload === undefined ? NOTHING : html`<h2>Payload</h2><pre class="payload" tabindex="0" aria-label="Payload">${shown(alarm.payload.text)}</pre>`}
${facts(alarm, context, nameAmong(await followed(alarms, alarm)))}
<h2>Fires</h2>
${fires.length === 0 ? html`<p class="dim">It has not fired yet.${next}</p>` : html`<ol class="fires">${fires.map((fire) => fireBlock(fire, here))}</ol>`}
${more}`;
}
