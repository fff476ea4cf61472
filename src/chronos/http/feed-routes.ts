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
import { calendarFeedSteps } from '../alarm/calendar-feed.ts';
import { newFeed, readFeedAddress } from '../auth/calendar-feed.ts';
import type { CalendarFeed } from '../store/store.ts';
import { RateLimit, trustSince } from './admission.ts';
import { refuseBody, refuseQuery } from './no-arguments.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { authorOfRequest, type ChronosService, callerOf, ownerOfRequest } from './service.ts';

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
    const { owner, messages } = feed;
    const states = await store.upcoming(owner, { limit: MOST_ALARMS });
    const steps = calendarFeedSteps(states, { now, calendars, messages, owner });
    let step = steps.next();
    for (; !step.done; step = steps.next()) await nextTurn();
    const text = step.value;
    const etag = `"${createHash('sha256').update(text).digest('base64url')}"`;
    const headers = { etag, 'cache-control': 'private, max-age=300' };
    const known = (c.req.header('if-none-match') ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''));
    if (known.includes(etag) || known.includes('*')) return c.body(null, 304, headers);
    return c.body(text, 200, { 'content-type': 'text/calendar; charset=utf-8', ...headers });
  });

  /** The owner, if a person makes the request: an agent must not be able to publish the alarms. */
  async function person(c: HttpContext): Promise<string> {
    const caller = await callerOf(service, c);
    if (isByPerson(authorOfRequest(service, c, caller))) return caller.owner;
    throw new ReveilleError(
      'forbidden',
      'only a person adds a calendar feed: use the console, or "reveille calendar feed add" where CHRONOS_ADMIN_TOKEN is set',
    );
  }

  serve(app, CHRONOS_ROUTES.createFeed, async (c) => {
    const owner = await person(c as HttpContext);
    const { name = 'calendar', messages = false } = parseOrThrow(calendarFeedCreateSchema, await readJson(c));
    const { feed, path } = newFeed({ owner, name, messages, createdAt: clock.now() });
    if (!(await store.addFeed(feed, MOST_FEEDS)))
      throw new ReveilleError(
        'conflict',
        `you have ${MOST_FEEDS} calendar feeds, the most that are allowed; revoke one`,
      );
    return sendOk(c, { ...viewOf(feed), address: `${service.publicUrl ?? ''}${path}` });
  });

  serve(app, CHRONOS_ROUTES.listFeeds, async (c) => {
    const owner = await ownerOfRequest(service, c);
    refuseQuery(c);
    return sendOk(c, { feeds: (await store.feedsOf(owner)).map(viewOf) });
  });

  serve(app, CHRONOS_ROUTES.removeFeed, async (c) => {
    const owner = await ownerOfRequest(service, c);
    await refuseBody(c);
    const feed = await store.removeFeed(owner, c.req.param('id'));
    if (!feed) throw new ReveilleError('not_found', 'you have no calendar feed with this id');
    return sendOk(c, viewOf(feed));
  });
}
