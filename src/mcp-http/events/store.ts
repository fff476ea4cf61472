/** Stores subscriptions, and the events of users who have any, in SQLite (`mcp-events.db` in the router's folder). */
import { join } from 'node:path';
import type { SQLInputValue, StatementSync } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import { GroupCommit, Undo } from '../../kit/sqlite/group-commit.ts';
import { openDatabase, type SqliteFile } from '../../kit/sqlite/open.ts';
import { storageError } from '../../kit/sqlite/sqlite-error.ts';
import type { GrantedToken, RemoteScope } from '../../wire/remote-caller.ts';
import { type Arguments, EVENT_TYPES, type Facts, type NewEvent, type Source } from './event-types.ts';
import { EVENTS_FILE } from './names.ts';
import type { CallbackError } from './protocol.ts';
import { SecretBox } from './secret-box.ts';

const KEY_FILE = 'mcp-events.key';

const DAY_MS = 24 * 3600_000;
/** How long events, idle readers and ended subscriptions are kept. */
const KEPT_MS = 7 * DAY_MS;
/** Limits of this file. The oldest rows are deleted for new ones. */
export type StoreLimits = {
  /** Stored events of one user. */
  readonly events: number;
  readonly bytes: number;
  /** Of all users: the largest log is shortened first. */
  readonly bytesInAll: number;
  /** Rows of one subject: clients, readers, ended subscriptions and verified callbacks. */
  readonly clients: number;
  readonly readers: number;
  readonly ended: number;
  readonly verified: number;
};
const MIB = 1024 * 1024;
export const STORE_LIMITS: StoreLimits = {
  ...{ events: 10_000, bytes: 64 * MIB, bytesInAll: 1024 * MIB },
  ...{ clients: 200, readers: 200, ended: 100, verified: 1000 },
};
/** A full log shrinks to this part of its limit, so that few events pay for it. */
const KEPT_SHARE = 0.9;
/** Stored events that one page examines. */
const SCANNED = 2000;
/** The last request of a reader is written at most once in this time. */
const SEEN_AGAIN_MS = 60_000;
const MOST_SEEN = 10_000;

/** A client of a user, as its newest token describes it. */
export type Principal = {
  readonly id: number;
  readonly issuer: string;
  readonly subject: string;
  readonly clientId: string;
  readonly userId: string;
  readonly clientName: string | undefined;
  readonly scopes: readonly RemoteScope[];
  readonly grant: GrantedToken;
};

/** Without the data, which {@link EventStore.dataOf} reads. */
export type StoredEvent = Omit<NewEvent, 'data'> & { readonly seq: number };

/** `end`: no further event is at or before it. */
export type Page = { readonly events: readonly StoredEvent[]; readonly end: number };

type Usage = { rows: number; bytes: number };

export type Subscription = {
  readonly id: string;
  readonly principal: number;
  readonly name: string;
  readonly arguments: Arguments;
  readonly url: string;
  secret: string;
  old: { readonly secret: string; readonly until: number } | undefined;
  expiresAt: number | null;
  position: number;
  failures: number;
  failedSince: number | null;
  lastDeliveryAt: number | null;
  lastError: CallbackError | null;
};

/** A client that reads by poll or by stream. */
export type Reader = {
  readonly principal: number;
  readonly name: string;
  readonly arguments: Arguments;
  readonly seenAt: number;
};

type SubscriptionRow = {
  id: string;
  principal: number;
  name: string;
  arguments: string;
  url: string;
  secret: string;
  old_secret: string | null;
  old_until: number | null;
  expires_at: number | null;
  position: number;
  failures: number;
  failed_since: number | null;
  last_delivery_at: number | null;
  last_error: CallbackError | null;
};
type EventRow = { seq: number; event_id: string; name: string; at: number; facts: string };
type PrincipalRow = {
  id: number;
  issuer: string;
  subject: string;
  client_id: string;
  user_id: string;
  details: string;
};

const gapName = (source: Source) => `gap:${source}`;
/** The rows that concern a type: its events, and the gaps of its source. */
export const namesOf = (name: string): readonly [string, string] => {
  const { source } = EVENT_TYPES.get(name)!;
  return [name, source === undefined ? name : gapName(source)];
};
/** The clients of the subject of client `?1`. */
const OF_SUBJECT = `(SELECT id FROM principals
  WHERE (issuer, subject) = (SELECT issuer, subject FROM principals WHERE id = ?1))`;
/** What a row takes up, without reading its data. */
const ROW_BYTES = '(octet_length(data) + octet_length(facts) + octet_length(event_id) + 100)';
/** Whether a row records that events of its source may be missing. */
export const isGap = ({ name }: Pick<StoredEvent, 'name'>): boolean => name.startsWith('gap:');

const eventOf = ({ seq, event_id, name, at, facts }: EventRow): StoredEvent => ({
  ...{ seq, eventId: event_id, name, at },
  facts: JSON.parse(facts) as Facts,
});

const principalOf = ({ id, issuer, subject, client_id, user_id, details }: PrincipalRow): Principal => ({
  ...{ id, issuer, subject, clientId: client_id, userId: user_id },
  ...(JSON.parse(details) as Pick<Principal, 'clientName' | 'scopes' | 'grant'>),
});

export class EventStore {
  readonly #file: SqliteFile;
  readonly #commits: GroupCommit;
  readonly #clock: Clock;
  readonly #box: SecretBox;
  readonly #statements = new Map<string, StatementSync>();
  readonly #epoch: string;
  readonly #principals = new Map<number, Principal>();
  /** When the row of a reader was last written, by the reader's key. */
  readonly #seen = new Map<string, number>();
  readonly #listeners = new Set<(userId: string, added: readonly StoredEvent[]) => void>();
  readonly #limits: StoreLimits;
  readonly #undo = new Undo();
  /** Stored events by user, and in all. */
  readonly #usage = new Map<string, Usage>();
  #bytes = 0;

  /** @throws ReveilleError when the database or the key cannot be opened */
  constructor(dataDir: string, clock: Clock, limits = STORE_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
    const migrations = new URL('./migrations/', import.meta.url);
    this.#file = openDatabase({ path: join(dataDir, EVENTS_FILE), migrations, clock, lock: 'exclusive' });
    try {
      this.#file.db.exec('PRAGMA foreign_keys = ON');
      this.#box = new SecretBox(join(dataDir, KEY_FILE));
    } catch (thrown) {
      this.#file.close();
      throw thrown;
    }
    this.#commits = new GroupCommit(this.#file.db, { undo: this.#undo });
    this.#epoch = this.#get<{ value: string }>('SELECT value FROM epoch')!.value;
    for (const row of this.#all<PrincipalRow>('SELECT * FROM principals'))
      this.#principals.set(row.id, principalOf(row));
    const used = `SELECT user_id, count(*) AS rows, sum(${ROW_BYTES}) AS bytes FROM events GROUP BY user_id`;
    for (const { user_id, rows, bytes } of this.#all<Usage & { user_id: string }>(used))
      this.#count(user_id, rows, bytes);
    this.#undo.keep();
  }

  /** Calls `listener`, which must not throw, after new events of a user are stored. @returns stops it */
  onEvents(listener: (userId: string, added: readonly StoredEvent[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    await this.#commits.drain();
    this.#file.close();
  }

  // Principals

  principal(id: number): Principal {
    return this.#principals.get(id)!;
  }

  get principals(): number {
    return this.#principals.size;
  }

  /** Stored bytes of the events of a user. */
  bytesOf(userId: string): number {
    return this.#usage.get(userId)?.bytes ?? 0;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The recorded client of a token; `undefined` if it has not used events before. */
  knownPrincipal({ issuer, subject, clientId }: Pick<Principal, 'issuer' | 'subject' | 'clientId'>) {
    const row = this.#get<{ id: number }>(
      'SELECT id FROM principals WHERE issuer = ? AND subject = ? AND client_id = ?',
      issuer,
      subject,
      clientId,
    );
    return row && this.#principals.get(row.id);
  }

  /** The recorded clients of a user with an id, one for each issuer. */
  principalsOf(userId: string, clientId: string): Principal[] {
    return [...this.#principals.values()].filter((one) => one.userId === userId && one.clientId === clientId);
  }

  /** Records a client with its newest token. */
  async putPrincipal(given: Omit<Principal, 'id'>): Promise<Principal> {
    const { issuer, subject, clientId, userId, clientName, scopes, grant } = given;
    const details = JSON.stringify({ clientName, scopes, grant });
    const known = this.knownPrincipal(given);
    if (known?.userId === userId && JSON.stringify(detailsOf(known)) === details) return known;
    const [id, removed] = await this.#commits.run(() => {
      // The subject now belongs to another user: this client must not get events of the former one.
      if (known && known.userId !== userId) this.#run('DELETE FROM principals WHERE id = ?', known.id);
      const row = this.#get<{ id: number }>(
        `INSERT INTO principals (issuer, subject, client_id, user_id, details) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (issuer, subject, client_id) DO UPDATE SET details = excluded.details RETURNING id`,
        ...[issuer, subject, clientId, userId, details],
      );
      return [row!.id, known ? [] : this.#forgetClients(row!.id)];
    });
    for (const one of removed) this.#principals.delete(one);
    const principal = { id, ...given };
    this.#principals.set(id, principal);
    return principal;
  }

  /** Removes the oldest clients of a subject, beyond the limit, that have no active subscription. */
  #forgetClients(newest: number): number[] {
    return this.#all<{ id: number }>(
      `DELETE FROM principals WHERE id <> ?1 AND id IN (
         SELECT id FROM principals WHERE id IN ${OF_SUBJECT}
           AND id NOT IN (SELECT principal FROM subscriptions WHERE ended_at IS NULL)
         ORDER BY id DESC LIMIT -1 OFFSET ?2) RETURNING id`,
      ...[newest, this.#limits.clients],
    ).map(({ id }) => id);
  }

  // Events

  /** The position after the latest event of a user. */
  head(userId: string): number {
    return this.#log(userId).last_seq;
  }

  /** The position of the last removed event of a user. */
  floor(userId: string): number {
    return this.#log(userId).floor;
  }

  cursorAt(position: number): string {
    return `${this.#epoch}.${position}`;
  }

  /**
   * The position of a cursor.
   *
   * @param cursor `null` for the present end
   *
   * @param maxAgeMs older events are skipped
   */
  positionOf(userId: string, cursor: string | null, maxAgeMs?: number): { position: number; isTruncated: boolean } {
    const { last_seq: head, floor } = this.#log(userId);
    if (cursor === null) return { position: head, isTruncated: false };
    const [, epoch, digits] = /^([0-9a-f]{8})\.(\d{1,15})$/.exec(cursor) ?? [];
    const given = Number(digits);
    if (epoch !== this.#epoch || !(given <= head)) return { position: head, isTruncated: true };
    const oldest = Math.max(given, floor);
    const position = maxAgeMs === undefined ? oldest : this.#youngerThan(userId, oldest, this.#clock.now() - maxAgeMs);
    return { position, isTruncated: position > given };
  }

  #youngerThan(userId: string, after: number, instant: number): number {
    const row = this.#get<{ seq: number | null }>(
      'SELECT max(seq) AS seq FROM events WHERE user_id = ? AND seq > ? AND at < ?',
      ...[userId, after, instant],
    );
    return row?.seq ?? after;
  }

  /** Events of a type and gaps of its source after a position, in order. It examines a limited part of the log. */
  page(userId: string, after: number, name: string, limit: number): Page {
    const until = Math.min(this.head(userId), after + SCANNED);
    const events = this.#all<EventRow>(
      `SELECT seq, event_id, name, at, facts FROM events
       WHERE user_id = ? AND seq > ? AND seq <= ? AND name IN (?, ?) ORDER BY seq LIMIT ?`,
      ...[userId, after, until, ...namesOf(name), limit],
    ).map(eventOf);
    return { events, end: events.length === limit ? events.at(-1)!.seq : Math.max(until, after) };
  }

  /** The data of an event, as JSON; `undefined` if it was removed. */
  dataOf(userId: string, seq: number): string | undefined {
    return this.#get<{ data: string }>('SELECT data FROM events WHERE user_id = ? AND seq = ?', userId, seq)?.data;
  }

  /**
   * Stores events of a user. An event with a stored id is ignored.
   *
   * @param read the position in the stream after these events, stored in the same transaction
   */
  async add(userId: string, events: readonly NewEvent[], read?: { source: Source; cursor: string }): Promise<void> {
    const added = await this.#commits.run(() => {
      const fresh = events.flatMap((event) => this.#insert(userId, event) ?? []);
      if (read) this.#saveCursor(userId, read.source, read.cursor);
      if (fresh.length > 0) this.#limitEvents(userId);
      return fresh;
    });
    if (added.length > 0) for (const listener of this.#listeners) listener(userId, added);
  }

  /** Records that events of a source may be missing. */
  addGap(userId: string, source: Source, cursor: string): Promise<void> {
    const at = this.#clock.now();
    const gap = { eventId: `gap:${source}:${cursor}`, name: gapName(source), at, facts: {}, data: '{}' };
    return this.add(userId, [gap], { source, cursor });
  }

  /** @returns `undefined` for an event that is stored already */
  #insert(userId: string, { eventId, name, at, facts, data }: NewEvent): StoredEvent | undefined {
    const seq = this.head(userId) + 1;
    const row = this.#get<{ bytes: number }>(
      `INSERT INTO events (user_id, seq, event_id, name, at, stored_at, facts, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (user_id, event_id) DO NOTHING RETURNING ${ROW_BYTES} AS bytes`,
      ...[userId, seq, eventId, name, at, this.#clock.now(), JSON.stringify(facts), data],
    );
    if (row === undefined) return undefined;
    this.#count(userId, 1, row.bytes);
    this.#run(
      `INSERT INTO logs (user_id, last_seq) VALUES (?, ?)
       ON CONFLICT (user_id) DO UPDATE SET last_seq = excluded.last_seq`,
      ...[userId, seq],
    );
    return { seq, eventId, name, at, facts };
  }

  /** Counts added or removed rows. A lost transaction takes it back. */
  #count(userId: string, rows: number, bytes: number): void {
    const change = (sign: 1 | -1) => {
      const used = this.#usage.get(userId) ?? { rows: 0, bytes: 0 };
      const next = { rows: used.rows + sign * rows, bytes: used.bytes + sign * bytes };
      if (next.rows === 0) this.#usage.delete(userId);
      else this.#usage.set(userId, next);
      this.#bytes += sign * bytes;
    };
    change(1);
    this.#undo.note(() => change(-1));
  }

  #limitEvents(userId: string): void {
    const { events, bytes, bytesInAll } = this.#limits;
    const own = this.#usage.get(userId)!;
    if (own.rows > events || own.bytes > bytes)
      this.#shorten(userId, { rows: events * KEPT_SHARE, bytes: bytes * KEPT_SHARE });
    while (this.#bytes > bytesInAll) {
      const [largest, used] = [...this.#usage].reduce((most, one) => (one[1].bytes > most[1].bytes ? one : most));
      // The newest event of each user stays.
      if (used.rows === 1) return;
      const left = used.bytes - (this.#bytes - bytesInAll * KEPT_SHARE);
      this.#shorten(largest, { rows: used.rows, bytes: Math.max(left, used.bytes / 2) });
    }
  }

  /** Removes the oldest events of a user until the others are within limits; the newest one stays. */
  #shorten(userId: string, { rows, bytes }: Usage): void {
    const used = { ...this.#usage.get(userId)! };
    const oldest = this.#prepared(`SELECT seq, ${ROW_BYTES} AS bytes FROM events WHERE user_id = ? ORDER BY seq`);
    let floor = 0;
    for (const row of oldest.iterate(userId) as Iterable<{ seq: number; bytes: number }>) {
      if (used.rows === 1 || (used.rows <= rows && used.bytes <= bytes)) break;
      used.rows--;
      used.bytes -= row.bytes;
      floor = row.seq;
    }
    this.#removeUpTo(userId, floor);
  }

  #removeUpTo(userId: string, floor: number): void {
    this.#run('UPDATE logs SET floor = max(floor, ?) WHERE user_id = ?', floor, userId);
    const removed = this.#get<Usage>(
      `SELECT count(*) AS rows, coalesce(sum(${ROW_BYTES}), 0) AS bytes FROM events WHERE user_id = ? AND seq <= ?`,
      ...[userId, floor],
    )!;
    if (removed.rows === 0) return;
    this.#run('DELETE FROM events WHERE user_id = ? AND seq <= ?', userId, floor);
    this.#count(userId, -removed.rows, -removed.bytes);
  }

  #log(userId: string): { last_seq: number; floor: number } {
    const row = this.#get<{ last_seq: number; floor: number }>(
      'SELECT last_seq, floor FROM logs WHERE user_id = ?',
      userId,
    );
    return row ?? { last_seq: 0, floor: 0 };
  }

  // Streams of daemons

  /** The position up to which a stream was read; `undefined` for an unread stream. */
  sourceCursor(userId: string, source: Source): string | undefined {
    const row = this.#get<{ cursor: string }>(
      'SELECT cursor FROM sources WHERE user_id = ? AND source = ?',
      userId,
      source,
    );
    return row?.cursor;
  }

  saveSourceCursor(userId: string, source: Source, cursor: string): Promise<void> {
    return this.#commits.run(() => this.#saveCursor(userId, source, cursor));
  }

  #saveCursor(userId: string, source: Source, cursor: string): void {
    this.#run(
      `INSERT INTO sources (user_id, source, cursor) VALUES (?, ?, ?)
       ON CONFLICT (user_id, source) DO UPDATE SET cursor = excluded.cursor`,
      ...[userId, source, cursor],
    );
  }

  /** Ends the reading of a stream. A client that resumes from an earlier cursor gets a gap. */
  async dropSource(userId: string, source: Source): Promise<void> {
    await this.addGap(userId, source, `dropped ${this.#clock.now()}`);
    await this.#commits.run(
      () => void this.#run('DELETE FROM sources WHERE user_id = ? AND source = ?', userId, source),
    );
  }

  // Readers by poll and by stream

  async seen(principal: number, name: string, given: string): Promise<void> {
    const now = this.#clock.now();
    const key = JSON.stringify([principal, name, given]);
    if (now - (this.#seen.get(key) ?? 0) < SEEN_AGAIN_MS) return;
    if (this.#seen.size > MOST_SEEN) this.#seen.clear();
    this.#seen.set(key, now);
    await this.#commits.run(() => {
      this.#run(
        `INSERT INTO readers (principal, name, arguments, seen_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (principal, name, arguments) DO UPDATE SET seen_at = excluded.seen_at`,
        ...[principal, name, given, now],
      );
      this.#run(
        `DELETE FROM readers WHERE (principal, name, arguments) IN (
           SELECT principal, name, arguments FROM readers WHERE principal IN ${OF_SUBJECT}
           ORDER BY seen_at DESC LIMIT -1 OFFSET ?2)`,
        ...[principal, this.#limits.readers],
      );
    });
  }

  /** @param name of the events; by default all */
  readersOf(userId: string, name: string | null = null): Reader[] {
    return this.#all<{ principal: number; name: string; arguments: string; seen_at: number }>(
      `SELECT principal, name, arguments, seen_at FROM readers JOIN principals ON principals.id = principal
       WHERE user_id = ?1 AND name = coalesce(?2, name)`,
      ...[userId, name],
    ).map(({ arguments: given, seen_at: seenAt, ...row }) => ({ ...row, seenAt, arguments: JSON.parse(given) }));
  }

  /** Forgets that a client reads by poll or by stream. */
  dropReaders(principal: number): Promise<void> {
    return this.#commits.run(() => void this.#run('DELETE FROM readers WHERE principal = ?', principal));
  }

  /** The users with readers. */
  readingUsers(): string[] {
    return this.#all<{ user_id: string }>(
      'SELECT DISTINCT user_id FROM readers JOIN principals ON principals.id = principal',
    ).map(({ user_id }) => user_id);
  }

  // Subscriptions

  /** All active subscriptions. A subscription whose secret cannot be opened is omitted and reported. */
  active(onSealed: (id: string) => void): Subscription[] {
    return this.#all<SubscriptionRow>('SELECT * FROM subscriptions WHERE ended_at IS NULL').flatMap((row) => {
      const secret = this.#box.open(row.secret, row.id);
      if (secret === undefined) {
        onSealed(row.id);
        return [];
      }
      const old = row.old_secret === null ? undefined : this.#box.open(row.old_secret, row.id);
      return {
        ...{ id: row.id, principal: row.principal, name: row.name, url: row.url, secret },
        arguments: JSON.parse(row.arguments) as Arguments,
        old: old === undefined ? undefined : { secret: old, until: row.old_until ?? 0 },
        ...{ expiresAt: row.expires_at, position: row.position, failures: row.failures },
        ...{ failedSince: row.failed_since, lastDeliveryAt: row.last_delivery_at, lastError: row.last_error },
      };
    });
  }

  /** Stores a new subscription. It replaces an ended one with the same id. */
  create(subscription: Subscription): Promise<void> {
    const { id, principal, name, url } = subscription;
    const now = this.#clock.now();
    return this.#commits.run(() => {
      this.#run('DELETE FROM subscriptions WHERE id = ?', id);
      this.#run(
        `INSERT INTO subscriptions (id, principal, name, arguments, url, secret, created_at, expires_at, position)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ...[id, principal, name, JSON.stringify(subscription.arguments), url],
        ...[this.#box.seal(subscription.secret, id), now, subscription.expiresAt, subscription.position],
      );
      this.#run(
        `DELETE FROM subscriptions WHERE id IN (
           SELECT id FROM subscriptions WHERE principal IN ${OF_SUBJECT} AND ended_at IS NOT NULL
           ORDER BY ended_at DESC LIMIT -1 OFFSET ?2)`,
        ...[principal, this.#limits.ended],
      );
    });
  }

  /** Stores the secret and the expiry of a subscription. */
  update(subscription: Subscription): Promise<void> {
    const { id, secret, old } = subscription;
    return this.#commits.run(() => {
      this.#run(
        'UPDATE subscriptions SET secret = ?, old_secret = ?, old_until = ?, expires_at = ? WHERE id = ?',
        ...[this.#box.seal(secret, id), old ? this.#box.seal(old.secret, id) : null, old?.until ?? null],
        ...[subscription.expiresAt, id],
      );
      this.#saveDelivery(subscription);
    });
  }

  /** Stores the position and the failures of a subscription. */
  progress(subscription: Subscription): Promise<void> {
    return this.#commits.run(() => this.#saveDelivery(subscription));
  }

  #saveDelivery({ id, position, failures, failedSince, lastDeliveryAt, lastError }: Subscription): void {
    this.#run(
      `UPDATE subscriptions SET position = ?, failures = ?, failed_since = ?, last_delivery_at = ?, last_error = ?
       WHERE id = ?`,
      ...[position, failures, failedSince, lastDeliveryAt, lastError, id],
    );
  }

  /** Ends a subscription. @param reason for the operator */
  end(id: string, reason: string): Promise<void> {
    return this.#commits.run(
      () =>
        void this.#run(
          'UPDATE subscriptions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL',
          ...[this.#clock.now(), reason, id],
        ),
    );
  }

  /** @returns whether the subscription existed */
  remove(id: string): Promise<boolean> {
    return this.#commits.run(() => this.#run('DELETE FROM subscriptions WHERE id = ?', id).changes > 0);
  }

  isVerified(principal: number, url: string): boolean {
    return this.#get('SELECT 1 FROM verified WHERE principal = ? AND url = ?', principal, url) !== undefined;
  }

  verify(principal: number, url: string): Promise<void> {
    return this.#commits.run(() => {
      this.#run(
        'INSERT INTO verified (principal, url, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
        ...[principal, url, this.#clock.now()],
      );
      this.#run(
        `DELETE FROM verified WHERE (principal, url) IN (
           SELECT principal, url FROM verified WHERE principal IN ${OF_SUBJECT} ORDER BY at DESC LIMIT -1 OFFSET ?2)`,
        ...[principal, this.#limits.verified],
      );
    });
  }

  /** Removes expired rows, and verifications without a subscription. */
  prune(): Promise<void> {
    const before = this.#clock.now() - KEPT_MS;
    return this.#commits.run(() => {
      const old = this.#all<{ user_id: string; floor: number }>(
        'SELECT user_id, max(seq) AS floor FROM events WHERE stored_at < ? GROUP BY user_id',
        before,
      );
      for (const { user_id, floor } of old) this.#removeUpTo(user_id, floor);
      this.#run('DELETE FROM readers WHERE seen_at < ?', before);
      this.#run('DELETE FROM subscriptions WHERE ended_at < ?', before);
      this.#run(
        `DELETE FROM verified WHERE at < ? AND NOT EXISTS (SELECT 1 FROM subscriptions
           WHERE subscriptions.principal = verified.principal AND subscriptions.url = verified.url)`,
        this.#clock.now() - DAY_MS,
      );
    });
  }

  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#file.db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #run(sql: string, ...values: SQLInputValue[]) {
    return this.#prepared(sql).run(...values);
  }

  /** @throws ReveilleError when the file cannot be read */
  #all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    try {
      return this.#prepared(sql).all(...values) as Row[];
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  #get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    try {
      return this.#prepared(sql).get(...values) as Row | undefined;
    } catch (thrown) {
      throw storageError(thrown);
    }
  }
}

const detailsOf = ({ clientName, scopes, grant }: Principal) => ({ clientName, scopes, grant });
