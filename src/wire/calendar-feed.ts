/** Calendar feeds: addresses at which calendar apps read the coming fires of a user's alarms (RFC 5545). */
import { z } from 'zod';
import type { Route, Routes } from './route.ts';
import { shortText } from './text.ts';

/** The first segment of the addresses, on chronosd and on the router's public listener. */
export const FEEDS_ROOT = '/calendar/';
/** Feeds of one user at most. */
export const MOST_FEEDS = 10;

export const calendarFeedCreateSchema = z.strictObject({
  /** A name for it, such as a device or an app. */
  name: shortText(100).min(1).optional(),
  /** Adds the messages of alarms; otherwise only labels are in it. */
  messages: z.boolean().optional(),
});

export const calendarFeedSchema = z.object({
  id: z.string(),
  name: z.string(),
  messages: z.boolean(),
  created_at: z.string(),
});
export type CalendarFeedView = z.infer<typeof calendarFeedSchema>;

/** The only answer with the address: a path of the public listener, after its base where that is known. */
export const calendarFeedMadeSchema = calendarFeedSchema.extend({ address: z.string() });
export type CalendarFeedMade = z.infer<typeof calendarFeedMadeSchema>;

export const calendarFeedListSchema = z.object({ feeds: z.array(calendarFeedSchema) });

/** Of a request for a feed, and of its answer; the router passes these on, and no others. */
export const FEED_REQUEST_HEADERS = ['if-none-match'] as const;
export const FEED_ANSWER_HEADERS = ['content-type', 'etag', 'cache-control', 'retry-after'] as const;
/** The largest answer. */
export const FEED_MAX_BYTES = 8 * 1024 * 1024;

export const FEED_ROUTE = {
  method: 'get',
  path: '/calendar/{feed}',
  summary: 'the coming fires of a user, as an iCalendar file, for an app that has the secret address',
  credential: 'hook',
  data: z.string(),
  text: true,
} as const satisfies Route;

export const FEED_ROUTES = { calendarFeed: FEED_ROUTE } as const satisfies Routes;

export const isFeed = (target: string): boolean => target.startsWith(FEEDS_ROOT);
