/**
 * The notifier's data in one private SQLite file: channels with their secrets, found events, and the cursors of sources.
 * The command line and the notifier have it open at the same time.
 */
import { hash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { SQLInputValue, StatementSync } from 'node:sqlite';
import type { Clock } from '../kit/clock/clock.ts';
import { quietUntil } from '../kit/clock/quiet-hours.ts';
import { openDatabase, type SqliteFile } from '../kit/sqlite/open.ts';
import { type QuietHours, quietHoursSchema } from '../wire/budget.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { ChannelName } from './channels/channels.ts';
import { type News, type NotificationKind, unknownChannels } from './news.ts';

export type Channel = {
  readonly id: string;
  readonly user: string;
  readonly name: string;
  readonly kind: ChannelName;
  /** With its secrets. */
  readonly spec: unknown;
  readonly told: readonly NotificationKind[];
  readonly quiet: QuietHours | undefined;
  /** Whether quiet hours defer approvals as well. */
  readonly quietAll: boolean;
  readonly paused: boolean;
  /** Epoch milliseconds, as all instants here. */
  readonly createdAt: number;
  readonly lastToldAt: number | undefined;
  readonly lastError: string | undefined;
};

export type ChannelAdd = Pick<Channel, 'user' | 'name' | 'kind' | 'spec' | 'told' | 'quiet' | 'quietAll'>;

export type ChannelRow = Record<'id' | 'user_id' | 'name' | 'kind' | 'spec' | 'told', string> & {
  quiet: string | null;
  quiet_all: number;
  paused: number;
  created_at: number;
  last_told_at: number | null;
  last_error: string | null;
};

/** Found events, and the position of their source. */
export type Find = {
  readonly user: string;
  readonly source: string;
  readonly news: readonly News[];
  /** The source was read up to here. */
  readonly since: number;
};

const MOST_CHANNELS = 32;
/** Events found later than this become one summary. */
const LATE_MS = 10 * 60_000;
/** With this many pending notifications of a channel, the next ones become a summary. */
const CROWD = 50;
const GATHER_MS = 2000;
/** A cursor that is slightly behind costs a repeated read; moving it costs a write. */
const CURSOR_STEP_MS = 60_000;
const KEPT_ENDED_MS = 7 * 86_400_000;
const KEPT_FOUND_MS = 40 * 86_400_000;
const COUNT_OPEN = `SELECT count(*) AS n FROM notifications WHERE channel_id = ? AND state IN ('waiting', 'held')`;

export function channelOf(row: ChannelRow): Channel {
  return {
    ...{ id: row.id, user: row.user_id, name: row.name, kind: row.kind as ChannelName },
    ...{ spec: JSON.parse(row.spec), told: JSON.parse(row.told) as NotificationKind[] },
    quiet: row.quiet === null ? undefined : quietHoursSchema.parse(JSON.parse(row.quiet)),
    ...{ quietAll: row.quiet_all === 1, paused: row.paused === 1, createdAt: row.created_at },
    ...{ lastToldAt: row.last_told_at ?? undefined, lastError: row.last_error ?? undefined },
  };
}

/** The id of a notification: the same for the same event on the same channel. */
export const notificationId = (channelId: string, key: string) =>
  `ntf_${hash('sha256', `${channelId} ${key}`).slice(0, 32)}`;

export class NotifyStore {
  readonly file: SqliteFile;
  readonly #statements = new Map<string, StatementSync>();

  /**
   * @param options.lock `exclusive` for the process that sends; `shared` for commands that change channels
   * @throws ReveilleError as `openDatabase`
   */
  constructor(options: { dir: string; clock: Clock; lock: 'exclusive' | 'shared' }) {
    const { dir, clock, lock } = options;
    const migrations = new URL('./migrations', import.meta.url);
    this.file = openDatabase({ path: join(dir, 'notify.db'), migrations, clock, lock });
    // A deleted channel's token must not stay in free pages.
    this.file.db.exec('PRAGMA secure_delete = ON');
  }

  close(): void {
    this.file.close();
  }

  /** A statement, prepared once. */
  sql(text: string): StatementSync {
    const statement = this.#statements.get(text) ?? this.file.db.prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }

  /** One transaction. */
  transaction<T>(work: () => T): T {
    const { db } = this.file;
    db.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      db.exec('COMMIT');
      return result;
    } catch (thrown) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw thrown;
    }
  }

  /** @throws ReveilleError `conflict` when the user has a channel of this name, or too many */
  addChannel({ user, name, kind, spec, told, quiet, quietAll }: ChannelAdd, now: number): Channel {
    return this.transaction(() => {
      const all = this.channels(user);
      if (all.some((channel) => channel.name === name)) {
        const remedy = `choose another one with --name, or remove it first: reveille notify remove ${name}`;
        throw new ReveilleError('conflict', `${user} already has a channel ${name}; ${remedy}`);
      }
      if (all.length >= MOST_CHANNELS)
        throw new ReveilleError('conflict', `${user} has ${all.length} channels; the limit is ${MOST_CHANNELS}`);
      const id = randomUUID().slice(0, 8);
      this.sql(`
        INSERT INTO channels (id, user_id, name, kind, spec, told, quiet, quiet_all, created_at)
        VALUES (:id, :user, :name, :kind, :spec, :told, :quiet, :quiet_all, :now)`).run({
        ...{ id, user, name, kind, spec: JSON.stringify(spec), told: JSON.stringify(told), now },
        ...{ quiet: quiet === undefined ? null : JSON.stringify(quiet), quiet_all: quietAll ? 1 : 0 },
      });
      return this.channels(user).find((channel) => channel.id === id)!;
    });
  }

  /** The channels of one user, or of all, oldest first. */
  channels(user?: string): Channel[] {
    const rows = this.sql('SELECT * FROM channels WHERE :user IS NULL OR user_id = :user ORDER BY created_at, id');
    return (rows.all({ user: user ?? null }) as unknown as ChannelRow[]).map(channelOf);
  }

  /** A channel of a user, by its name or id. @throws ReveilleError `not_found` */
  channel(user: string, nameOrId: string): Channel {
    const found = this.channels(user).find(({ id, name }) => name === nameOrId || id === nameOrId);
    if (found) return found;
    throw new ReveilleError('not_found', `${user} has no channel ${nameOrId}; see: reveille notify list`);
  }

  /** Removes a channel with its pending notifications. @returns their number */
  removeChannel(id: string): number {
    return this.transaction(() => {
      const open = this.#count(COUNT_OPEN, id);
      this.sql('DELETE FROM channels WHERE id = ?').run(id);
      return open;
    });
  }

  /** A paused channel gets no notifications. */
  pauseChannel(id: string, paused: boolean): void {
    this.sql('UPDATE channels SET paused = ? WHERE id = ?').run(paused ? 1 : 0, id);
  }

  /** The number of pending notifications of a channel. */
  waiting(channelId: string): number {
    return this.#count(COUNT_OPEN, channelId);
  }

  /** A secret of the notifier, created on first use. */
  secret(name: string, make: () => string): string {
    const find = () => this.sql('SELECT value FROM secrets WHERE name = ?').get(name) as { value: string } | undefined;
    const there = find();
    if (there) return there.value;
    this.sql('INSERT OR IGNORE INTO secrets (name, value) VALUES (?, ?)').run(name, make());
    return find()!.value;
  }

  /** The start of a source: events before `begunAt` are not news. */
  cursor(user: string, source: string, now: number): { begunAt: number; since: number } {
    this.sql(`
      INSERT OR IGNORE INTO cursors (user_id, source, begun_at, since)
      VALUES (:user, :source, :now, :now)`).run({ user, source, now });
    const row = this.sql('SELECT begun_at, since FROM cursors WHERE user_id = ? AND source = ?').get(user, source);
    const { begun_at, since } = row as { begun_at: number; since: number };
    return { begunAt: begun_at, since };
  }

  /**
   * Stores found events: new ones are queued for every channel of their kind or name, and the cursor is moved, in one
   * transaction.
   *
   * @returns the new ones
   */
  record({ user, source, news, since }: Find, now: number): News[] {
    return this.transaction(() => {
      const all = news.length === 0 ? [] : this.channels(user);
      const names = all.map(({ name }) => name);
      const channels = all.filter(({ paused }) => !paused);
      const fresh = news
        .filter(({ key }) => this.#isNew(user, key, now))
        .flatMap((one) => {
          const unknown = unknownChannels(one, names);
          return unknown && this.#isNew(user, unknown.key, now) ? [one, unknown] : [one];
        });
      for (const one of fresh)
        for (const channel of channels) {
          this.#settle(channel, one, now);
          this.#write(channel, one, now);
        }
      this.sql(`
        UPDATE cursors SET since = :since
        WHERE user_id = :user AND source = :source AND since < :since - ${CURSOR_STEP_MS}`).run({
        user,
        source,
        since,
      });
      return fresh;
    });
  }

  /** Deletes old rows. */
  prune(now: number): void {
    this.sql('DELETE FROM notifications WHERE ended_at < ?').run(now - KEPT_ENDED_MS);
    this.sql('DELETE FROM found WHERE found_at < ?').run(now - KEPT_FOUND_MS);
    this.sql('DELETE FROM used_links WHERE expires_at < ?').run(now);
    this.sql('DELETE FROM wrong_passphrases WHERE expires_at < ?').run(now);
  }

  #isNew(user: string, key: string, now: number): boolean {
    const add = this.sql('INSERT OR IGNORE INTO found (user_id, key, found_at) VALUES (?, ?, ?)');
    return add.run(user, key, now).changes === 1;
  }

  /** Sends a notification that waited for this event, or ends it. */
  #settle(channel: Channel, { settles }: News, now: number): void {
    if (!settles) return;
    const id = notificationId(channel.id, settles.key);
    const change = settles.isSent
      ? `due_at = min(due_at, :now) WHERE state = 'waiting' AND attempts = 0`
      : `state = 'dropped', why = 'the turn had nothing to report', ended_at = :now WHERE ended_at IS NULL`;
    this.sql(`UPDATE notifications SET ${change} AND id = :id`).run({ id, now });
  }

  #write(channel: Channel, news: News, now: number): void {
    const isNamed = news.channels?.includes(channel.name) === true;
    if (!isNamed && !news.kinds.some((kind) => channel.told.includes(kind))) return;
    const isQuestion = news.question !== undefined;
    const isQuiet = channel.quiet !== undefined && (!isQuestion || channel.quietAll);
    const until = isQuiet ? quietUntil(channel.quiet, now) : undefined;
    const isLate = !isQuestion && (now - news.at > LATE_MS || this.waiting(channel.id) >= CROWD);
    const held = until !== undefined || isLate;
    this.sql(`
      INSERT OR IGNORE INTO notifications (id, channel_id, news, state, created_at, due_at)
      VALUES (:id, :channel, :news, :state, :now, :due)`).run({
      ...{ id: notificationId(channel.id, news.key), channel: channel.id, news: JSON.stringify(news), now },
      ...{
        state: held ? 'held' : 'waiting',
        due: until ?? (held ? now + GATHER_MS : Math.max(now, news.waitsUntil ?? now)),
      },
    });
  }

  #count(text: string, ...values: SQLInputValue[]): number {
    return (this.sql(text).get(...values) as { n: number }).n;
  }
}
