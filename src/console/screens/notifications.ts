/** Being told: the channels of this person, and this browser as one of them. */
import { html, raw } from 'hono/html';
import { ReveilleError } from '../../wire/errors.ts';
import { parseJsonObject } from '../../wire/json.ts';
import type { NoticeChannel } from '../desk.ts';
import { csrfField, missing, type Page } from '../page.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { time, zoneText } from '../times.ts';
import { field, type Redirect, there, type RequestContext } from '../request-context.ts';

const KINDS: Readonly<Record<string, string>> = {
  approvals: 'a question waits',
  failures: 'something failed',
  missed: 'a ring never came',
  rings: 'every ring, and its reply',
};
const TITLE = 'Being told';

function row(channel: NoticeChannel, { here, session }: RequestContext): Html {
  const { id, name, place, told, quiet, lastToldAt, lastError, isPaused } = channel;
  const state = lastError !== undefined ? 'failed' : isPaused ? 'held' : 'good';
  const words = lastError !== undefined ? 'does not get through' : isPaused ? 'paused' : 'on';
  return html`<li class="row" data-row><span class="name">${shown(name)} <span class="dim">${shown(place)}</span></span>
<span class="dim">${told.join(', ')}${quiet === undefined ? NOTHING : html`; quiet ${quiet.from} to ${quiet.to}, ${quiet.timezone}`}</span>
<span class="when">${lastToldAt === undefined ? 'not told yet' : time(lastToldAt, here)}</span> <span class="state ${state}">${words}</span>
${lastError === undefined ? NOTHING : html`<p class="trouble">${shown(lastError)}</p>`}
<form method="post" action="notices/test" class="inline">${csrfField(session.csrf)}<input type="hidden" name="id" value="${id}"><button>Try it</button></form>
<form method="post" action="notices/remove" class="inline">${csrfField(session.csrf)}<input type="hidden" name="id" value="${id}"><button class="danger">Remove</button></form></li>`;
}

function thisBrowser({ backend, here, session }: RequestContext, kinds: readonly string[], standard: readonly string[]): Html {
  const notices = there(backend.notices);
  const boxes = kinds.map(
    (kind) =>
      html`<div class="field check"><input type="checkbox" name="told" value="${kind}" id="told-${kind}"${standard.includes(kind) ? raw(' checked') : ''}><label for="told-${kind}">${KINDS[kind] ?? kind}</label></div>`,
  );
  return html`<h2>This browser</h2>
<form method="post" action="notices/subscribe" class="stack" data-push-key="${notices.pushKey()}" hidden>
${csrfField(session.csrf)}<input type="hidden" name="subscription">
<fieldset><legend>Tell me when</legend>${boxes}</fieldset>
<div class="field"><label for="notice-name">Its name</label><input id="notice-name" name="name" maxlength="60" placeholder="phone" autocomplete="off"></div>
<div class="field"><label for="quiet-from">Quiet from</label><input id="quiet-from" name="from" placeholder="22:00" maxlength="5" autocomplete="off"></div>
<div class="field"><label for="quiet-to">to</label><input id="quiet-to" name="to" placeholder="07:00" maxlength="5" autocomplete="off"><p class="hint">In ${zoneText(here)}. Questions come through all the same.</p></div>
<button class="primary">Tell me in this browser</button>
<p class="notice bad" role="alert" data-error hidden></p>
</form>
<p class="dim" data-push-none>This browser cannot be told: that takes script, and a browser that has push messages, at an https address or on this computer.</p>
<script src="/assets/push.js" defer></script>`;
}

/** `notices` */
export async function noticesScreen(context: RequestContext): Promise<Page> {
  const { notices } = context.backend;
  if ('missing' in notices)
    return {
      screen: 'health',
      title: TITLE,
      main: html`<h1>${TITLE}</h1>${missing('Not from here', notices.missing)}`,
    };
  const { list, kinds, standard } = notices.there;
  const channels = list();
  const known =
    channels.length === 0
      ? html`<p class="dim">You are told nowhere yet. Add this browser below, or <code>reveille notify add --help</code>.</p>`
      : html`<ul class="rows notices" data-list>${channels.map((channel) => row(channel, context))}</ul>`;
  const main = html`<p class="back"><a href="health">Health</a></p><h1>${TITLE}</h1>${known}${thisBrowser(context, kinds, standard)}`;
  return { screen: 'health', title: TITLE, main };
}

function quietOf(context: RequestContext) {
  const [from, to] = [field(context, 'from'), field(context, 'to')];
  if (from === undefined && to === undefined) return undefined;
  if (from === undefined || to === undefined)
    throw new ReveilleError('invalid_request', 'quiet hours are two times such as 22:00 and 07:00, or none');
  return { from, to, timezone: context.here.zone };
}

/** `notices/subscribe`, sent: what `PushSubscription.toJSON()` gave. */
export async function subscribe(context: RequestContext): Promise<Redirect> {
  const notices = there(context.backend.notices);
  const { endpoint, keys } = parseJsonObject(field(context, 'subscription') ?? '{}');
  const told = notices.kinds.filter((kind) => context.form.getAll('told').includes(kind));
  if (told.length === 0) throw new ReveilleError('invalid_request', 'say at least one thing to be told of');
  // Nothing else that a page says gets in: an address of a private network is for the command line to allow.
  const { name } = notices.add({ endpoint, keys }, { name: field(context, 'name'), told, quiet: quietOf(context) });
  context.session.messages.success(`This browser is told now, as ${name}.`);
  return { to: 'notices' };
}

/** `notices/remove`, sent. */
export async function removeNotice(context: RequestContext): Promise<Redirect> {
  const { name } = there(context.backend.notices).remove(field(context, 'id') ?? '');
  context.session.messages.success(`${name} is told nothing any more.`);
  return { to: 'notices' };
}

/** `notices/test`, sent. */
export async function testNotice(context: RequestContext): Promise<Redirect> {
  const why = await there(context.backend.notices).test(field(context, 'id') ?? '');
  if (why === undefined) context.session.messages.success('It was told something.');
  else context.session.messages.error(`It could not be told: ${why}`);
  return { to: 'notices' };
}
