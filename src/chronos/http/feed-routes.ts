/** `/calendar/{feed}` for calendar apps, and the routes of users about their feeds. */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import { type CalendarFeedView, calendarFeedCreateSchema, FEED_ROUTE, MOST_FEEDS } from '../../wire/calendar-feed.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { isByPerson } from '../../wire/set-by.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { calendarFeed } from '../alarm/calendar-feed.ts';
import { newFeed, readFeedAddress } from '../auth/calendar-feed.ts';
import type { CalendarFeed } from '../store/store.ts';
import { RateLimit, trustSince } from './admission.ts';
import { upcomingOf } from './alarm-list-routes.ts';
import { refuseBody, refuseQuery } from './no-arguments.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { authorOfRequest, type ChronosService, callerOf } from './service.ts';

/** Maximum number of alarms in a feed. */
const MOST_ALARMS = 1_000;
/** Requests per minute of one feed, and of all feeds in this process. */
const READS = { perMinute: 30, inAll: 1_200 };

/** The same answer for an address that is malformed, unknown, or of a revoked feed. */
const noSuchFeed = () => new ReveilleError('not_found', 'there is no calendar at this address');

const viewOf = ({ id, name, messages, createdAt }: CalendarFeed): CalendarFeedView => ({
  ...{ id, name, messages, created_at: formatInstant(createdAt) },
});

export function feedRoutes(app: HttpApp, service: ChronosService): void {
  const { store, clock, calendars } = service;
  let reads: RateLimit | undefined;
  /** The calendars that are being written, by feed: requests at the same time share one. */
  const begun = new Map<string, Promise<{ text: string; etag: string }>>();

  async function write({ owner, messages }: CalendarFeed, now: number) {
    const text = await calendarFeed(
      upcomingOf(store, owner, { atMost: MOST_ALARMS }),
      { now, calendars, messages, owner },
      () => nextTurn(),
    );
    return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` };
  }

  function calendarOf(feed: CalendarFeed, now: number) {
    const known = begun.get(feed.id);
    if (known) return known;
    const writing = write(feed, now).finally(() => begun.delete(feed.id));
    begun.set(feed.id, writing);
    return writing;
  }

  /** The feed of an address. */
  async function named(address: string): Promise<CalendarFeed> {
    const read = readFeedAddress(address);
    const feed = read?.of(await store.feedsOf(read.owner));
    if (!feed) throw noSuchFeed();
    return feed;
  }

  serve(app, FEED_ROUTE, async (c) => {
    const feed = await named(c.req.param('feed') ?? '');
    const now = clock.now();
    reads ??= new RateLimit(READS, clock);
    const refused = reads.enter(feed.id, trustSince(feed.createdAt, now));
    if (refused)
      throw new ReveilleError('rate_limited', 'this calendar is read too often; wait for the time in Retry-After', {
        retryAfterSeconds: refused.waitSeconds,
      });
    const { text, etag } = await calendarOf(feed, now);
    const headers = { etag, 'cache-control': 'private, max-age=300' };
    const known = (c.req.header('if-none-match') ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''));
    if (known.includes(etag) || known.includes('*')) return c.body(null, 304, headers);
    return c.body(text, 200, { 'content-type': 'text/calendar; charset=utf-8', ...headers });
  });

  type Asking = { owner: string; isPerson: boolean; madeBy: string | null };
  const askedBy = async (c: HttpContext): Promise<Asking> => {
    const caller = await callerOf(service, c);
    const { author, madeBy } = authorOfRequest(service, c, caller);
    return { owner: caller.owner, isPerson: isByPerson(author), madeBy };
  };

  /** The feeds that a request may see and revoke: a person all of them, others what their own credential made. */
  const feedsFor = async ({ owner, isPerson, madeBy }: Asking) =>
    (await store.feedsOf(owner)).filter((feed) => isPerson || feed.madeBy === madeBy);

  serve(app, CHRONOS_ROUTES.createFeed, async (c) => {
    const { owner, isPerson, madeBy } = await askedBy(c as HttpContext);
    // An agent must not be able to publish the alarms.
    if (!isPerson)
      throw new ReveilleError(
        'forbidden',
        'only a person adds a calendar feed: use the console, or "reveille calendar feed add" where CHRONOS_ADMIN_TOKEN is set',
      );
    const { name = 'calendar', messages = false } = parseOrThrow(calendarFeedCreateSchema, await readJson(c));
    const { feed, path } = newFeed({ owner, name, messages, madeBy, createdAt: clock.now() });
    if (!(await store.addFeed(feed, MOST_FEEDS)))
      throw new ReveilleError(
        'conflict',
        `you have ${MOST_FEEDS} calendar feeds, the most that are allowed; revoke one`,
      );
    return sendOk(c, { ...viewOf(feed), address: `${service.publicUrl ?? ''}${path}` });
  });

  serve(app, CHRONOS_ROUTES.listFeeds, async (c) => {
    const asking = await askedBy(c as HttpContext);
    refuseQuery(c as HttpContext);
    return sendOk(c as HttpContext, { feeds: (await feedsFor(asking)).map(viewOf) });
  });

  serve(app, CHRONOS_ROUTES.removeFeed, async (c) => {
    const asking = await askedBy(c as HttpContext);
    await refuseBody(c as HttpContext);
    const id = c.req.param('id');
    const isIts = (await feedsFor(asking)).some((one) => one.id === id);
    const feed = isIts ? await store.removeFeed(asking.owner, id) : undefined;
    if (!feed) throw new ReveilleError('not_found', 'you have no calendar feed with this id');
    return sendOk(c, viewOf(feed));
  });
}
