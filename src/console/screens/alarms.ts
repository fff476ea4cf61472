/** Alarms: a paged list, and beside it one alarm. */
import { html, raw } from 'hono/html';
import type { AlarmPage, ChronosClient } from '../../chronos/client.ts';
import type { NameOfAlarm } from '../../kit/phrase/condition-text.ts';
import type { AlarmView } from '../../wire/alarm.ts';
import { ALARM_KINDS, ALARM_STATUSES } from '../../wire/alarm-fields.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { fireTime, hasTrouble, nameAmong, nameOf, scheduleHtml, stateMark, trouble } from '../alarm-text.ts';
import { csrfField, empty, missing, type Page, pageHead } from '../page.ts';
import { type RequestContext, there, withQuery } from '../request-context.ts';
import { brief, type Html, NOTHING } from '../shown.ts';
import type { LocalContext } from '../times.ts';
import { detailOf } from './alarm.ts';

const PAGE_ROWS = 50;
/** Query members of the list; links to an alarm and back keep them. */
const LIST_QUERY = ['text', 'status', 'kind', 'sort', 'cursor'] as const;

type ListQuery = Partial<Record<(typeof LIST_QUERY)[number], string>>;

export function listQueryOf(query: URLSearchParams): URLSearchParams {
  const kept = new URLSearchParams();
  for (const name of LIST_QUERY) {
    const value = query.get(name)?.trim();
    if (value) kept.set(name, value);
  }
  return kept;
}

const oneOf = <T extends string>(value: string | undefined, known: readonly T[]): T | undefined =>
  known.find((one) => one === value);

/** Begins the cursors of the alarms that are not active, which follow the active ones. */
const REST = 'rest.';

/** The alarms in the order of their next fire, then the ones that are not active, newest first. */
async function readNextFirst(client: ChronosClient, cursor: string | undefined): Promise<AlarmPage> {
  const inRest = cursor?.startsWith(REST) === true;
  const waiting = inRest ? undefined : await client.listAlarms({ limit: PAGE_ROWS, cursor, sort: 'next' });
  if (waiting?.next_cursor !== undefined) return waiting;
  const alarms = [...(waiting?.alarms ?? [])];
  let after = inRest ? cursor.slice(REST.length) || undefined : undefined;
  do {
    const page = await client.listAlarms({ limit: PAGE_ROWS, cursor: after });
    alarms.push(...page.alarms.filter(({ status }) => status !== 'active'));
    after = page.next_cursor;
  } while (after !== undefined && alarms.length === 0);
  return { alarms, count: alarms.length, ...(after !== undefined && { next_cursor: REST + after }) };
}

/** Without filters, the list is ordered by the next fire. */
async function readPage({ backend, reads }: RequestContext, query: URLSearchParams): Promise<AlarmPage> {
  const { text, cursor, ...given }: ListQuery = Object.fromEntries(query);
  const status = oneOf(given.status, ALARM_STATUSES);
  const kind = oneOf(given.kind, ALARM_KINDS);
  const isNext = text === undefined && status === undefined && kind === undefined && given.sort !== 'newest';
  const ask = () => {
    const client = there(backend.alarms);
    return isNext ? readNextFirst(client, cursor) : client.listAlarms({ limit: PAGE_ROWS, text, status, kind, cursor });
  };
  return reads.read(`${backend.user} alarms ${query}`, ask);
}

const choice = (value: string, text: string, chosen: string | undefined): Html =>
  html`<option value="${value}"${(chosen ?? '') === value ? raw(' selected') : ''}>${text}</option>`;

function filters(query: URLSearchParams): Html {
  const { text = '', status, kind, sort }: ListQuery = Object.fromEntries(query);
  return html`<form method="get" action="alarms" class="filters" role="search" id="filters" data-filters>
<label class="grow"><span class="sr">Search labels and messages</span><input type="search" name="text" value="${text}" maxlength="200" placeholder="Search labels and messages" data-key="/"></label>
<label><span class="sr">Status</span><select name="status">${choice('', 'Any status', status)}${choice('active', 'Waiting', status)}${choice('paused', 'Paused', status)}${choice('failed', 'Failed', status)}${choice('fired', 'Fired', status)}${choice('cancelled', 'Cancelled', status)}</select></label>
<label><span class="sr">Kind</span><select name="kind">${choice('', 'Any kind', kind)}${choice('once', 'Once', kind)}${choice('cron', 'Repeating', kind)}${choice('rrule', 'Repeating by rule', kind)}${choice('event', 'Waiting for events', kind)}</select></label>
<label><span class="sr">Order</span><select name="sort">${choice('', 'Next first', sort)}${choice('newest', 'Newest first', sort)}</select></label>
<button>Apply</button>
</form>`;
}

function row(
  alarm: AlarmView,
  query: URLSearchParams,
  here: LocalContext,
  chosen: string | undefined,
  names: NameOfAlarm,
): Html {
  const { id } = alarm;
  const isChosen = id === chosen;
  return html`<li class="row${isChosen ? ' chosen' : ''}" id="alarm-${id}" data-row>
<input type="checkbox" name="id" value="${id}" form="several" id="mark-${id}" aria-label="Select this alarm">
<a class="name" href="${withQuery(`alarms/${id}`, query, {})}"${isChosen ? raw(' aria-current="true"') : ''} data-open dir="auto">${nameOf(alarm)}${alarm.label === '' || chosen !== undefined ? NOTHING : html`<small>${brief(alarm.wake_message, 90)}</small>`}</a>
<span class="when">${fireTime(alarm, here)}</span>
<span class="schedule dim">${alarm.kind === 'once' ? 'once' : scheduleHtml(alarm, here, names)}</span>
${stateMark(alarm)}
${hasTrouble(alarm) ? html`<p class="trouble">${trouble(alarm, here)}</p>` : NOTHING}
</li>`;
}

const several = (csrf: string): Html => html`<form method="post" action="alarms/several" id="several" class="several">
${csrfField(csrf)}<span class="dim">Selected:</span>
<button name="do" value="pause">Pause</button><button name="do" value="resume">Resume</button><button name="do" value="trigger">Fire now</button><button name="do" value="redrive">Retry</button><button name="do" value="cancel" class="danger">Cancel</button>
</form>`;

function nothingFound(query: URLSearchParams, goesOn: boolean): Html {
  if (goesOn)
    return html`<div class="empty"><h2>No match yet</h2><p>The newest alarms do not match. <em>More</em> searches the older ones.</p></div>`;
  if (query.size > 0)
    return html`<div class="empty"><h2>No alarm matches</h2><p>${query.has('cursor') ? html`This page is past the last alarm. ` : NOTHING}<a href="alarms">Clear the filters</a></p></div>`;
  return empty(
    'No alarms',
    html`Create an <a href="alarms/new">alarm</a>, or ask your agent to set one. In a terminal: <code>reveille alarm set "Look at the build" "in 10 minutes"</code>`,
  );
}

async function list(context: RequestContext, query: URLSearchParams, chosen: string | undefined): Promise<Html> {
  const { here, session } = context;
  const { alarms, next_cursor: next } = await readPage(context, query);
  const names = nameAmong(alarms);
  const rows = alarms.map((alarm) => row(alarm, query, here, chosen, names));
  const older =
    next === undefined
      ? NOTHING
      : html`<a rel="next" class="button" href="${withQuery('alarms', query, { cursor: next })}">More</a>`;
  const first = query.has('cursor')
    ? html`<a class="button" href="${withQuery('alarms', query, { cursor: undefined })}">First page</a>`
    : NOTHING;
  const add = html`<a class="button primary" href="alarms/new" data-key="n">New alarm</a>`;
  return html`<section class="list" aria-label="Alarms">
${chosen === undefined ? pageHead('Alarms', NOTHING, add) : html`<div class="page-head"><h2>Alarms</h2><div class="actions">${add}</div></div>`}
${filters(query)}
${alarms.length === 0 ? nothingFound(query, next !== undefined) : html`<ul class="rows" data-list>${rows}</ul>${several(session.csrf)}`}
<p class="pages">${first}${older}</p>
</section>`;
}

/** `alarms`. */
export async function alarmsScreen(context: RequestContext): Promise<Page> {
  if ('missing' in context.backend.alarms)
    return {
      screen: 'alarms',
      title: 'Alarms',
      main: html`${pageHead('Alarms')}${missing('Alarms are not available', context.backend.alarms.missing)}`,
    };
  const query = listQueryOf(context.query);
  const main = html`<div class="split only">${await list(context, query, undefined)}</div>`;
  return { screen: 'alarms', title: 'Alarms', main, looksAt: ['alarms'] };
}

/** `alarms/{id}`: one alarm beside the list. */
export async function alarmScreen(context: RequestContext): Promise<Page> {
  const { id = '' } = context.params;
  const query = listQueryOf(context.query);
  if (!/^[0-9a-f-]{36}$/.test(id)) throw new ReveilleError('not_found', 'there is no alarm with this id');
  const [beside, detail] = await Promise.all([list(context, query, id), detailOf(context, id)]);
  const main = html`<div class="split">${beside}<article class="detail" aria-label="Alarm"><p class="back"><a href="${withQuery('alarms', query, {})}">All alarms</a></p>${detail}</article></div>`;
  return { screen: 'alarms', title: 'Alarm', main, looksAt: ['alarms'] };
}
