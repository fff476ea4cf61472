/** The feeds of owners for calendar apps. */
import type { DatabaseSync } from 'node:sqlite';
import { CALENDAR_FEED_COLUMNS } from '../columns.ts';
import type { CalendarFeed } from '../store.ts';
import { prepareInsert, prepareQuery, shapeOf } from './statements.ts';

const FEED = shapeOf(CALENDAR_FEED_COLUMNS);

export function prepareCalendarFeeds(db: DatabaseSync) {
  const of = prepareQuery(
    db,
    `SELECT ${FEED.columns} FROM calendar_feeds WHERE owner = ? ORDER BY created_at, id`,
    FEED.read,
  );
  const insert = prepareInsert<CalendarFeed>(db, 'calendar_feeds', CALENDAR_FEED_COLUMNS);
  const remove = prepareQuery(
    db,
    `DELETE FROM calendar_feeds WHERE owner = ? AND id = ? RETURNING ${FEED.columns}`,
    FEED.read,
  );
  return {
    of: (owner: string): CalendarFeed[] => of.all(owner),
    add(feed: CalendarFeed, most: number): boolean {
      if (of.all(feed.owner).length >= most) return false;
      insert(feed);
      return true;
    },
    remove: (owner: string, id: string): CalendarFeed | undefined => remove.get(owner, id),
  };
}
