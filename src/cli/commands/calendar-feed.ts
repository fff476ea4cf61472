/** `reveille calendar feed`: addresses at which calendar apps read the coming fires. */
import { localTime, shortTime } from '../../kit/clock/local-time.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { CalendarFeedView } from '../../wire/calendar-feed.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { alarmClient, personOf } from '../access/chronos.ts';
import { publicUrl } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';

export type FeedFlags = { messages?: boolean };

const contentText = ({ messages }: Pick<CalendarFeedView, 'messages'>) => (messages ? 'labels, messages' : 'labels');

export async function feedAdd(context: CliContext, { messages }: FeedFlags, name: string | undefined): Promise<void> {
  const client = alarmClient(context, personOf(context));
  const made = await client.createFeed({ ...(name !== undefined && { name }), ...(messages && { messages }) });
  const base = publicUrl(context);
  const isWhole = !made.address.startsWith('/');
  const address = isWhole ? made.address : `${base ?? ''}${made.address}`;
  const missing = isWhole || base !== undefined ? [] : ['  prefix it with the address of the public listener'];
  context.out.result({ ...made, address }, [
    `Subscribe to this address in a calendar app; it is not shown again (${oneLine(made.name)}, ${contentText(made)}):`,
    `  ${context.out.paint('bold', address)}`,
    ...missing,
    `  anyone with it sees this calendar; revoke it with: reveille calendar feed revoke ${made.id}`,
  ]);
}

export async function feedList(context: CliContext): Promise<void> {
  const person = personOf(context, {});
  const feeds = await alarmClient(context, person).listFeeds();
  const look = readerOf(context);
  context.out.list(feeds, () => {
    if (feeds.length === 0) return ['No calendar feeds; add one with: reveille calendar feed add'];
    const rows = feeds.map(({ id, name, messages, created_at }) => [
      ...[id, shortTime(Date.parse(created_at), look), contentText({ messages }), oneLine(name)],
    ]);
    return table(['ID', 'SINCE', 'SHOWS', 'NAME'], rows, look);
  });
}

/** By the whole id, or its beginning. */
async function feedMeant(client: ReturnType<typeof alarmClient>, given: string): Promise<string> {
  const found = (await client.listFeeds()).filter(({ id }) => given.length >= 4 && id.startsWith(given.toLowerCase()));
  if (found.length === 1) return found[0]!.id;
  const what = found.length === 0 ? 'no calendar feed has' : 'several calendar feeds have';
  throw new ReveilleError(
    found.length === 0 ? 'not_found' : 'conflict',
    `${what} this id (got ${oneLine(given)}); list them with "reveille calendar feed list"`,
  );
}

export async function feedRevoke(context: CliContext, given: string): Promise<void> {
  const client = alarmClient(context, personOf(context, {}));
  const removed = await client.removeFeed(await feedMeant(client, given));
  const since = localTime(Date.parse(removed.created_at), readerOf(context));
  context.out.result(
    { ...removed, revoked: true },
    `Revoked ${oneLine(removed.name)} of ${since}; its address ends now`,
  );
}
