/** The notifier's outbox: pending notifications, one at a time per channel, and summaries of deferred ones. */
import { calendarTime } from '../kit/clock/local-time.ts';
import type { OutboxItem, OutboxStore } from '../kit/outbox/outbox.ts';
import type { Message } from './channels/channel.ts';
import type { News } from './news.ts';
import { type Channel, type ChannelRow, channelOf, type NotifyStore, notificationId } from './store.ts';

/** The content: news, or a summary. */
export type NotificationContent = Omit<News, 'kinds'> & { readonly kinds: Message['kinds'] };

export type Outgoing = OutboxItem & { readonly channel: Channel; readonly content: NotificationContent };

/** With this many pending notifications, deferred ones stay deferred. */
const CROWD = 50;
const HOLD_ON_MS = 60_000;
const SUMMARY_LINES = 30;

type HeldRow = { seq: number; id: string; news: string; created_at: number };

/** One notification for several events. Pure. */
export function summaryOf(
  news: readonly NotificationContent[],
  key: string,
  now: number,
  zone: string,
): NotificationContent {
  const lines = news.map(({ at, title }) => `${calendarTime(at, { now, zone })}  ${title}`);
  const left = lines.length - SUMMARY_LINES;
  const more = left > 0 ? [`and ${left} more; see: reveille log`] : [];
  return {
    ...{ key, kinds: ['summary'], at: now, about: {} },
    title: `${news.length} events`,
    text: [...lines.slice(0, SUMMARY_LINES), ...more].join('\n'),
  };
}

/** @param options.zone the time zone of summaries */
export function outgoingOf(
  store: NotifyStore,
  { zone, now: clockNow }: { zone: string; now: () => number },
): OutboxStore<Outgoing> {
  const end = (id: string, state: string, why: string | null) => {
    const { changes } = store
      .sql(`UPDATE notifications SET state = :state, why = :why, ended_at = :now WHERE id = :id AND ended_at IS NULL`)
      .run({ id, state, why, now: clockNow() });
    return changes === 1;
  };
  const remark = (id: string, error: string | null) =>
    store
      .sql(`
        UPDATE channels SET
          last_told_at = iif(:error IS NULL, :now, last_told_at),
          last_error = :error,
          last_error_at = iif(:error IS NULL, last_error_at, :now)
        WHERE id = (SELECT channel_id FROM notifications WHERE id = :id)`)
      .run({ id, error, now: clockNow() });

  /** Joins the due, deferred notifications of a channel into one; questions stay separate. */
  const release = (channelId: string, now: number) => {
    const rows = store
      .sql(`SELECT seq, id, news, created_at FROM notifications
            WHERE channel_id = ? AND state = 'held' AND due_at <= ? ORDER BY seq`)
      .all(channelId, now) as unknown as HeldRow[];
    const free = store.sql(`UPDATE notifications SET state = 'waiting', due_at = :now WHERE id = :id`);
    const held = rows.map((row) => ({ row, content: JSON.parse(row.news) as NotificationContent }));
    const isAlone = ({ content }: { content: NotificationContent }) => content.question !== undefined;
    for (const { row } of held.filter(isAlone)) free.run({ id: row.id, now });
    const others = held.filter((one) => !isAlone(one));
    if (others.length === 1) free.run({ id: others[0]!.row.id, now });
    if (others.length < 2) return;
    const key = `summary ${others[0]!.row.seq} ${others.at(-1)!.row.seq}`;
    const inOrder = others.map(({ content }) => content).sort((one, other) => one.at - other.at);
    const summary = summaryOf(inOrder, key, now, zone);
    store
      .sql(`INSERT INTO notifications (id, channel_id, news, state, created_at, due_at)
            VALUES (:id, :channel, :news, 'waiting', :now, :now)`)
      .run({ id: notificationId(channelId, key), channel: channelId, news: JSON.stringify(summary), now });
    for (const { row } of others) end(row.id, 'summed', null);
  };

  const gather = (now: number) => {
    const due = store
      .sql(`SELECT DISTINCT channel_id FROM notifications WHERE state = 'held' AND due_at <= ?`)
      .all(now) as { channel_id: string }[];
    for (const { channel_id: id } of due) {
      store.transaction(() => {
        const row = store.sql(`SELECT count(*) AS n FROM notifications WHERE channel_id = ? AND state = 'waiting'`);
        if ((row.get(id) as { n: number }).n < CROWD) return release(id, now);
        store
          .sql(`UPDATE notifications SET due_at = :later WHERE channel_id = :id AND state = 'held' AND due_at <= :now`)
          .run({ id, now, later: now + HOLD_ON_MS });
      });
    }
  };

  return {
    due(now, limit) {
      // A final round ignores due times; quiet hours still apply.
      gather(Math.min(now, clockNow()));
      const rows = store
        .sql(`
          SELECT n.id AS notification, n.attempts, n.news, c.*
          FROM channels c
          JOIN notifications n ON n.seq = (
            SELECT seq FROM notifications
            WHERE channel_id = c.id AND state = 'waiting' AND due_at <= :now
            ORDER BY due_at, seq
            LIMIT 1)
          WHERE c.paused = 0
          ORDER BY n.due_at
          LIMIT :limit`)
        .all({ now: Math.min(now, Number.MAX_SAFE_INTEGER), limit }) as unknown as (ChannelRow & {
        notification: string;
        attempts: number;
        news: string;
      })[];
      return rows.map((row) => ({
        ...{ id: row.notification, attempts: row.attempts },
        ...{ channel: channelOf(row), content: JSON.parse(row.news) as NotificationContent },
      }));
    },
    nextDue() {
      const row = store
        .sql(`
          SELECT min(n.due_at) AS at FROM notifications n JOIN channels c ON c.id = n.channel_id
          WHERE n.state IN ('waiting', 'held') AND c.paused = 0`)
        .get() as { at: number | null };
      return row.at ?? undefined;
    },
    done(id) {
      store.transaction(() => {
        if (end(id, 'told', null)) remark(id, null);
      });
    },
    later(id, at, why) {
      store.transaction(() => {
        store
          .sql(`UPDATE notifications SET attempts = attempts + 1, due_at = :at, why = :why WHERE id = :id`)
          .run({ id, at, why });
        remark(id, why);
      });
    },
    drop(id, why) {
      store.transaction(() => {
        if (end(id, 'dropped', why)) remark(id, why);
      });
    },
  };
}
