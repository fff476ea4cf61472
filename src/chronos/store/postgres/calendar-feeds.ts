/** The feeds of owners for calendar apps. */
import type { CalendarFeed } from '../store.ts';
import type { Buckets } from './buckets.ts';
import type { PrimaryPool } from './pool.ts';
import { CALENDAR_FEED } from './rows.ts';
import { isStorable } from './state.ts';
import { statement } from './statement.ts';

const OF_OWNER = statement(
  'feeds_of',
  `SELECT ${CALENDAR_FEED.list()} FROM calendar_feeds WHERE bucket = $1 AND owner = $2 ORDER BY created_at, id`,
);

const ADD = statement(
  'add_feed',
  `INSERT INTO calendar_feeds (bucket, owner, id, name, digest, messages, created_at, made_by)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
);

const REMOVE = statement(
  'remove_feed',
  `DELETE FROM calendar_feeds WHERE bucket = $1 AND owner = $2 AND id = $3 RETURNING ${CALENDAR_FEED.list()}`,
);

export function prepareCalendarFeeds(pool: PrimaryPool, buckets: Buckets) {
  const of = async (owner: string): Promise<CalendarFeed[]> =>
    isStorable(owner)
      ? (await pool.query(OF_OWNER, [buckets.of(owner), owner])).map((row) => CALENDAR_FEED.read(row))
      : [];
  return {
    of,

    /** Two simultaneous additions may exceed the limit by one each. */
    async add(feed: CalendarFeed, most: number): Promise<boolean> {
      if ((await of(feed.owner)).length >= most) return false;
      const { owner, id, name, digest, messages, createdAt, madeBy } = feed;
      await pool.query(ADD, [buckets.of(owner), owner, id, name, digest, Number(messages), createdAt, madeBy]);
      return true;
    },

    async remove(owner: string, id: string): Promise<CalendarFeed | undefined> {
      if (!isStorable(owner, id)) return undefined;
      const [row] = await pool.query(REMOVE, [buckets.of(owner), owner, id]);
      return row && CALENDAR_FEED.read(row);
    },
  };
}
