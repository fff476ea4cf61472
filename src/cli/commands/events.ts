/** `reveille events`: the subscriptions of MCP clients to events of this router. */
import { shortTime } from '../../kit/clock/local-time.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { listSubscriptions, type SubscriptionView } from '../../mcp-http/events/listing.ts';
import { userOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { fit, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

const [USER_CELLS, CLIENT_CELLS] = [16, 32];

export function eventsList(context: CliContext, { user }: { user?: string }): void {
  const of = user === undefined ? undefined : userOf(context, user);
  const found = listSubscriptions(context.settings.ROUTER_DATA_DIR!, of);
  context.out.list(found, () => render(found, readerOf(context)));
}

function render(found: readonly SubscriptionView[], look: Reader): string[] {
  if (found.length === 0) return ['No subscriptions to events. Clients with an access token subscribe over MCP.'];
  const when = (instant: string | undefined) =>
    instant === undefined ? 'never' : shortTime(Date.parse(instant), look);
  const rows = found.map((one) => [
    ...[fit(one.user_id, USER_CELLS), one.event, oneLine(one.host), when(one.last_delivery_at), when(one.expires_at)],
    ...[
      fit(oneLine(one.client_id), CLIENT_CELLS),
      one.reason === undefined ? one.status : `${one.status}: ${one.reason}`,
    ],
  ]);
  return table(['USER', 'EVENT', 'TO', 'DELIVERED', 'EXPIRES', 'CLIENT', 'STATUS'], rows, look);
}
