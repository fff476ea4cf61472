/** `reveille client`: clients that users have connected through the authorization server. */
import { shortTime } from '../../kit/clock/local-time.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { oauthDataDir } from '../../oauth-server/config.ts';
import { type Connection, Connections } from '../../oauth-server/connections.ts';
import { hasStore, OauthStore } from '../../oauth-server/store.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { userOf } from '../access/chronos.ts';
import { connectedClient } from '../access/oauth-server.ts';
import type { CliContext } from '../context.ts';
import { fit, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

export type ClientFlags = { user?: string };

const [USER_CELLS, ID_CELLS] = [16, 12];

/** Opens the database beside a running server. The server's next request sees a change. */
async function withConnections<T>(
  { clock, settings }: CliContext,
  work: (connections: Pick<Connections, 'list' | 'revoke'>) => T | Promise<T>,
): Promise<T> {
  const dataDir = oauthDataDir(settings);
  if (!hasStore(dataDir)) return work({ list: () => [], revoke: () => Promise.reject(new Error('there is none')) });
  const store = new OauthStore({ dataDir, clock });
  try {
    return await work(new Connections(store, clock));
  } finally {
    await store.close();
  }
}

/** The JSON of a list. */
function viewOf(connection: Connection) {
  const { id, user, resources } = connection;
  const { clientId, host, name, goesTo, scopes, createdAt, usedAt } = connectedClient(connection);
  return {
    ...{ id, user_id: user, client_id: clientId, host, name, redirect_host: goesTo, scopes, resources },
    ...{ created_at: formatInstant(createdAt), last_used_at: usedAt === undefined ? undefined : formatInstant(usedAt) },
  };
}

const nameOf = ({ host, name, client_id }: ReturnType<typeof viewOf>): string =>
  oneLine(host ?? `${name ?? client_id} (unverified)`);

export async function clientList(context: CliContext, { user }: ClientFlags): Promise<void> {
  const of = user === undefined ? undefined : userOf(context, user);
  const found = (await withConnections(context, (connections) => connections.list(of))).map(viewOf);
  context.out.list(found, () => (found.length === 0 ? renderNone(context) : renderClients(found, readerOf(context))));
}

function renderNone({ settings }: CliContext): string[] {
  const none = 'No connected clients.';
  if (settings.ROUTER_OAUTH === '1') return [none];
  return [none, 'The authorization server is off. To let clients connect: reveille config ROUTER_OAUTH 1'];
}

function renderClients(found: readonly ReturnType<typeof viewOf>[], look: Reader): string[] {
  const when = (instant: string | undefined) =>
    instant === undefined ? 'never' : shortTime(Date.parse(instant), look);
  const rows = found.map((view) => [
    ...[fit(view.user_id, USER_CELLS), view.id.slice(0, ID_CELLS), when(view.created_at), when(view.last_used_at)],
    ...[view.scopes.join(' '), nameOf(view)],
  ]);
  return table(['USER', 'ID', 'SINCE', 'USED', 'SCOPES', 'CLIENT'], rows, look);
}

/** Ends the access of a client, by its whole id or its beginning. */
export async function clientRevoke(context: CliContext, { user }: ClientFlags, id: string): Promise<void> {
  const of = user === undefined ? undefined : userOf(context, user);
  const revoked = await withConnections(context, (connections) => {
    const found = connections.list(of).filter((one) => id.length >= 4 && one.id.startsWith(id));
    if (found.length === 1) return connections.revoke(found[0]!.user, found[0]!.id);
    const message =
      found.length === 0
        ? `there is no connected client with this id (got ${id}); see: reveille client list`
        : `${id} matches several clients: ${found.map((one) => one.id).join(', ')}`;
    throw new ReveilleError(found.length === 0 ? 'not_found' : 'conflict', message);
  });
  const view = viewOf(revoked);
  context.out.result(view, `Disconnected ${nameOf(view)}: it no longer acts for ${oneLine(view.user_id)}`);
}
