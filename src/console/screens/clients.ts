/** Clients: programs with access of the user, each with a button that ends the access. */
import { html } from 'hono/html';
import { endedSentences } from '../../wire/person.ts';
import type { ConnectedClient } from '../backend.ts';
import { csrfField, empty, missing, type Page, pageHead } from '../page.ts';
import { field, type Redirect, type RequestContext, there } from '../request-context.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { absolute, time } from '../times.ts';

const TITLE = 'Clients';

/** The host of the client's document, which is verified; without a document, the client's own name or id. */
const nameOf = ({ host, name, clientId }: ConnectedClient): string => host ?? `${name ?? clientId} (unverified)`;

function row(client: ConnectedClient, { here, session }: RequestContext): Html {
  const { id, host, name, goesTo, scopes, createdAt, usedAt } = client;
  const says = host === undefined || name === undefined ? NOTHING : html`“${shown(name)}” · `;
  const via = goesTo === undefined ? 'on a device' : `at ${goesTo}`;
  return html`<li class="row" data-row><span class="name">${shown(nameOf(client))} <small>${says}${scopes.join(', ')} · ${shown(via)} · since ${absolute(createdAt, here)}</small></span>
<span class="when">${usedAt === undefined ? html`<span class="dim">not used yet</span>` : html`used ${time(usedAt, here)}`}</span>
<div class="actions"><form method="post" action="clients/revoke" class="inline">${csrfField(session.csrf)}<input type="hidden" name="id" value="${id}"><button class="danger">Disconnect</button></form></div></li>`;
}

/** `clients` */
export async function clientsScreen(context: RequestContext): Promise<Page> {
  const { clients } = context.backend;
  if ('missing' in clients)
    return {
      screen: 'status',
      title: TITLE,
      main: html`${pageHead(TITLE)}${missing('Clients cannot connect', clients.missing)}`,
    };
  const list = await clients.there.list();
  const known =
    list.length === 0
      ? empty(
          'No clients',
          html`Add one of the MCP addresses of this server, such as <code>/mcp/chronos</code>, to a client. It then asks here for access.`,
        )
      : html`<ul class="rows access" data-list>${list.map((client) => row(client, context))}</ul>`;
  const note = 'Programs with access to your Reveille';
  return {
    screen: 'status',
    title: TITLE,
    main: html`<p class="back"><a href="status">Status</a></p>${pageHead(TITLE, note)}${known}`,
  };
}

/** `POST clients/revoke`. */
export async function revokeClient(context: RequestContext): Promise<Redirect> {
  const { client, ended } = await there(context.backend.clients).revoke(field(context, 'id') ?? '');
  const { messages } = context.session;
  messages.success([`Disconnected: ${nameOf(client)} no longer has access.`, ...endedSentences(ended)].join(' '));
  return { to: 'clients' };
}
