/** Notifications: the channels of the user, and this browser as a channel. */
import { html, raw } from 'hono/html';
import { ReveilleError } from '../../wire/errors.ts';
import { parseJsonObject } from '../../wire/json.ts';
import type { NotificationChannel } from '../backend.ts';
import { csrfField, empty, missing, type Page, pageHead } from '../page.ts';
import { field, type Redirect, type RequestContext, there } from '../request-context.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { time, zoneText } from '../times.ts';

const KINDS: Readonly<Record<string, string>> = {
  approvals: 'a question is waiting',
  failures: 'an alarm or a task failed',
  missed: 'an alarm was missed',
  rings: 'an alarm fired, with the reply',
};
const TITLE = 'Notifications';

function row(channel: NotificationChannel, { here, session }: RequestContext): Html {
  const { id, name, place, told: kinds, quiet, lastSentAt, lastError, isPaused } = channel;
  const state = lastError !== undefined ? 'failed' : isPaused ? 'held' : 'good';
  const text = lastError !== undefined ? 'failing' : isPaused ? 'paused' : 'on';
  return html`<li class="row" data-row><span class="name">${shown(name)} <small>${shown(place)} · ${kinds.join(', ')}${quiet === undefined ? NOTHING : html` · quiet ${quiet.from}–${quiet.to} ${quiet.timezone}`}</small></span>
<span class="when">${lastSentAt === undefined ? html`<span class="dim">nothing sent yet</span>` : time(lastSentAt, here)}</span><span class="state ${state}">${text}</span>
<div class="actions"><form method="post" action="notifications/test" class="inline">${csrfField(session.csrf)}<input type="hidden" name="id" value="${id}"><button>Test</button></form>
<form method="post" action="notifications/remove" class="inline">${csrfField(session.csrf)}<input type="hidden" name="id" value="${id}"><button class="danger">Remove</button></form></div>
${lastError === undefined ? NOTHING : html`<p class="trouble">${shown(lastError)}</p>`}</li>`;
}

function thisBrowser(
  { backend, here, session }: RequestContext,
  kinds: readonly string[],
  standard: readonly string[],
): Html {
  const notices = there(backend.notices);
  const boxes = kinds.map(
    (kind) =>
      html`<div class="field check"><input type="checkbox" name="told" value="${kind}" id="told-${kind}"${standard.includes(kind) ? raw(' checked') : ''}><label for="told-${kind}">${KINDS[kind] ?? kind}</label></div>`,
  );
  return html`<h2>This browser</h2>
<form method="post" action="notifications/subscribe" class="stack" data-push-key="${notices.pushKey()}" hidden>
${csrfField(session.csrf)}<input type="hidden" name="subscription">
<fieldset><legend>Notify me when</legend>${boxes}</fieldset>
<div class="field"><label for="notice-name">Name</label><input id="notice-name" name="name" maxlength="60" placeholder="phone" autocomplete="off"></div>
<div class="pair"><div class="field"><label for="quiet-from">Quiet from</label><input id="quiet-from" name="from" placeholder="22:00" maxlength="5" autocomplete="off"></div>
<div class="field"><label for="quiet-to">Quiet until</label><input id="quiet-to" name="to" placeholder="07:00" maxlength="5" autocomplete="off"></div></div><p class="hint">Times are in ${zoneText(here)}. Questions are sent in quiet hours, too.</p>
<div class="actions"><button class="primary">Turn on in this browser</button></div>
<p class="notice bad" role="alert" data-error hidden></p>
</form>
<p class="dim" data-push-none>This browser cannot receive notifications. They need JavaScript, push support, and an https address or this computer.</p>
<script src="/assets/push.js" defer></script>`;
}

/** `notifications` */
export async function notificationsScreen(context: RequestContext): Promise<Page> {
  const { notices } = context.backend;
  if ('missing' in notices)
    return {
      screen: 'status',
      title: TITLE,
      main: html`${pageHead(TITLE)}${missing('Notifications are not available', notices.missing)}`,
    };
  const { list, kinds, standard } = notices.there;
  const channels = list();
  const known =
    channels.length === 0
      ? empty('No channels', html`Add this browser below, or another channel with <code>reveille notify add</code>`)
      : html`<ul class="rows channels" data-list>${channels.map((channel) => row(channel, context))}</ul>`;
  const main = html`<p class="back"><a href="status">Status</a></p>${pageHead(TITLE)}${known}${thisBrowser(context, kinds, standard)}`;
  return { screen: 'status', title: TITLE, main };
}

function quietOf(context: RequestContext) {
  const [from, to] = [field(context, 'from'), field(context, 'to')];
  if (from === undefined && to === undefined) return undefined;
  if (from === undefined || to === undefined)
    throw new ReveilleError('invalid_request', 'quiet hours need both times, such as 22:00 and 07:00');
  return { from, to, timezone: context.here.zone };
}

/** `POST notifications/subscribe`, with the result of `PushSubscription.toJSON()`. */
export async function subscribe(context: RequestContext): Promise<Redirect> {
  const notices = there(context.backend.notices);
  const { endpoint, keys } = parseJsonObject(field(context, 'subscription') ?? '{}');
  const kinds = notices.kinds.filter((kind) => context.form.getAll('told').includes(kind));
  if (kinds.length === 0) throw new ReveilleError('invalid_request', 'select at least one kind of notification');
  // Further options, such as an address of a private network, are for the command line alone.
  const { name } = notices.add(
    { endpoint, keys },
    { name: field(context, 'name'), told: kinds, quiet: quietOf(context) },
  );
  context.session.messages.success(`Notifications are on in this browser, as ${name}.`);
  return { to: 'notifications' };
}

/** `POST notifications/remove`. */
export async function removeChannel(context: RequestContext): Promise<Redirect> {
  const { name } = there(context.backend.notices).remove(field(context, 'id') ?? '');
  context.session.messages.success(`Removed: ${name}.`);
  return { to: 'notifications' };
}

/** `POST notifications/test`. */
export async function testChannel(context: RequestContext): Promise<Redirect> {
  const why = await there(context.backend.notices).test(field(context, 'id') ?? '');
  if (why === undefined) context.session.messages.success('A test notification was sent.');
  else context.session.messages.error(`The test notification failed: ${why}`);
  return { to: 'notifications' };
}
