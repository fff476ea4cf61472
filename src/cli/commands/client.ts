/** `reveille client`: clients that users have connected through the authorization server. */
import { shortTime } from '../../kit/clock/local-time.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { oauthDataDir } from '../../oauth-server/config.ts';
import { type Connection, Connections } from '../../oauth-server/connections.ts';
import { hasStore, OauthStore } from '../../oauth-server/store.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { type Ended, endedSentences } from '../../wire/person.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { labelOf, userOf } from '../access/chronos.ts';
import { connectedClient } from '../access/oauth-server.ts';
import { routerClient } from '../access/router.ts';
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

/** Ends the access of a client, by its whole id or its beginning, and what the client has set. */
export async function clientRevoke(context: CliContext, { user }: ClientFlags, id: string): Promise<void> {
  const of = user === undefined ? undefined : userOf(context, user);
  const found = await withConnections(context, async (connections) => {
    const those = connections.list(of).filter((one) => id.length >= 4 && one.id.startsWith(id));
    if (those.length > 1)
      throw new ReveilleError('conflict', `${id} matches several clients: ${those.map((one) => one.id).join(', ')}`);
    const revoked = those[0] && (await connections.revoke(those[0].user, those[0].id));
    return revoked && { revoked, others: connections.list(revoked.user).filter(isSameClient(revoked)).length };
  });
  if (found === undefined) return endFormer(context, of ?? labelOf(context), id);
  const view = viewOf(found.revoked);
  const lines = [`Disconnected ${nameOf(view)}: it no longer acts for ${oneLine(view.user_id)}`];
  if (found.others > 0) {
    const kept = `  another connection of this client stays (${found.others} in all), and so does what it has set`;
    return context.out.result(view, [...lines, kept]);
  }
  const ended = await endClient(context, view.user_id, view.client_id).catch((thrown: unknown): Ended => {
    const { message } = toReveilleError(thrown);
    const again = `reveille client revoke ${oneLine(view.client_id)} --user ${oneLine(view.user_id)}`;
    const left = [`what it has set still wakes the agent (${message}); end that with: ${again}`];
    return { alarms: 0, addresses: 0, subscriptions: 0, push_targets: 0, tasks: 0, left };
  });
  context.out.result({ ...view, ended }, [...lines, ...endedSentences(ended).map((sentence) => `  ${sentence}`)]);
}

const isSameClient =
  ({ clientId }: Connection) =>
  (one: Connection) =>
    one.clientId === clientId;

const endClient = (context: CliContext, user: string, clientId: string) =>
  routerClient(context).endClient(user, clientId);

/** Ends what a client has left whose access had ended before, by the id of the client. */
async function endFormer(context: CliContext, user: string | undefined, clientId: string): Promise<void> {
  const ended = user === undefined ? undefined : await endClient(context, user, clientId).catch(() => undefined);
  const sentences = endedSentences(ended);
  if (sentences.length === 0)
    throw new ReveilleError(
      'not_found',
      `there is no connected client with this id (got ${clientId}); see: reveille client list`,
    );
  const line = `${oneLine(clientId)} was not connected any more`;
  context.out.result({ user_id: user, client_id: clientId, ended }, [line, ...sentences.map((one) => `  ${one}`)]);
}
