/** Calendar feeds: addresses at which calendar apps read the coming fires. */
import { html } from 'hono/html';
import type { ChronosClient } from '../../chronos/client.ts';
import type { CalendarFeedMade, CalendarFeedView } from '../../wire/calendar-feed.ts';
import { toReveilleError } from '../../wire/errors.ts';
import { csrfField, empty, missing, type Page, pageHead } from '../page.ts';
import { field, type Redirect, type RequestContext, there } from '../request-context.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { time } from '../times.ts';

const TITLE = 'Calendar feeds';
const PATH = 'upcoming/calendar';

function row({ id, name, messages, created_at }: CalendarFeedView, { here, session }: RequestContext): Html {
  return html`<li class="row" data-row><span class="name">${shown(name)} <small>${messages ? 'labels and messages' : 'labels'}</small></span>
<span class="when">since ${time(Date.parse(created_at), here)}</span>
<div class="actions"><form method="post" action="${PATH}/revoke" class="inline">${csrfField(session.csrf)}<input type="hidden" name="id" value="${id}"><button class="danger">Revoke</button></form></div></li>`;
}

/** The only page with the address. */
function address({ name, address }: CalendarFeedMade, origin: string): Html {
  const whole = address.startsWith('/') ? `${origin}${address}` : address;
  return html`<p class="notice good">“${shown(name)}” is ready. Subscribe to this address in your calendar app. It is not shown again, and anyone with it sees this calendar.</p>
<pre class="whole" tabindex="0" aria-label="The address">${shown(whole)}</pre>`;
}

async function page(context: RequestContext, alarms: ChronosClient, made?: CalendarFeedMade): Promise<Page> {
  const feeds = await alarms.listFeeds();
  const { csrf } = context.session;
  const list =
    feeds.length === 0
      ? empty('No calendar feeds', html`Add one below: your calendar app then shows when your alarms fire`)
      : html`<ul class="rows access" data-list>${feeds.map((feed) => row(feed, context))}</ul>`;
  const main = html`<p class="back"><a href="upcoming">Upcoming</a></p>${pageHead(TITLE, 'For calendar apps that subscribe to an address')}${made === undefined ? NOTHING : address(made, context.origin)}${list}
<h2>Add a feed</h2>
<form method="post" action="${PATH}" class="stack">${csrfField(csrf)}
<div class="field"><label for="feed-name">Name</label><input id="feed-name" name="name" maxlength="100" placeholder="phone" autocomplete="off"></div>
<div class="field check"><input type="checkbox" name="messages" value="yes" id="feed-messages"><label for="feed-messages">Show the messages of alarms, not only their labels</label></div>
<div class="actions"><button class="primary">Add</button></div></form>`;
  return { screen: 'upcoming', title: TITLE, main };
}

/** `upcoming/calendar` */
export async function feedsScreen(context: RequestContext): Promise<Page> {
  const { alarms } = context.backend;
  if ('there' in alarms) return page(context, alarms.there);
  const main = html`${pageHead(TITLE)}${missing('Calendar feeds are not available', alarms.missing)}`;
  return { screen: 'upcoming', title: TITLE, main };
}

/** `POST upcoming/calendar`: adds a feed and shows its address. */
export async function addFeed(context: RequestContext): Promise<Page | Redirect> {
  const alarms = there(context.backend.alarms);
  const name = field(context, 'name');
  try {
    const messages = context.form.has('messages');
    return await page(context, alarms, await alarms.createFeed({ ...(name !== undefined && { name }), messages }));
  } catch (thrown) {
    const { code, message } = toReveilleError(thrown);
    if (code === 'internal') throw thrown;
    context.session.messages.error(`The feed was not added: ${message}`);
    return { to: PATH };
  }
}

/** `POST upcoming/calendar/revoke`. */
export async function revokeFeed(context: RequestContext): Promise<Redirect> {
  const { name } = await there(context.backend.alarms).removeFeed(field(context, 'id') ?? '');
  context.session.messages.success(`Revoked: “${name}”. Its address ends now.`);
  return { to: PATH };
}
