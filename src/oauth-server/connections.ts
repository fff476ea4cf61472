/** Connected clients: each row is one grant of a user to one client. Every statement for a user selects by the user. */
import type { Clock } from '../kit/clock/clock.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { OauthStore } from './store.ts';

type Row = {
  grant_id: string;
  user_id: string;
  client_id: string;
  client_name: string | null;
  redirect_host: string | null;
  scopes: string;
  resources: string;
  credential: string | null;
  created_at: number;
  used_at: number | null;
  expires_at: number;
};

/** A connected client of a user. Instants are epoch milliseconds. */
export type Connection = {
  readonly id: string;
  readonly user: string;
  readonly clientId: string;
  /** As the client calls itself. */
  readonly clientName: string | undefined;
  /** The host to which the browser went; `undefined` for a device. */
  readonly redirectHost: string | undefined;
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
  /** The id of the credential that the user signed in with. */
  readonly credential: string | undefined;
  readonly createdAt: number;
  readonly usedAt: number | undefined;
};

export type ConnectionAdd = Omit<Connection, 'createdAt' | 'usedAt'>;

/** Lifetime of a connection before its first token: a code must be redeemed within minutes. */
const UNUSED_MS = 15 * 60_000;
/** A connection without a new token for this long has ended: its refresh token has expired. */
export const IDLE_MS = 30 * 86_400_000;
/** Maximum of one user. Beyond it, the least recently used connection ends. */
const MOST_CONNECTIONS = 50;
const USE_EVERY_MS = 60_000;

const connectionOf = (row: Row): Connection => ({
  ...{ id: row.grant_id, user: row.user_id, clientId: row.client_id },
  ...{ clientName: row.client_name ?? undefined, redirectHost: row.redirect_host ?? undefined },
  ...{ scopes: row.scopes.split(' '), resources: row.resources.split(' ') },
  ...{ credential: row.credential ?? undefined, createdAt: row.created_at, usedAt: row.used_at ?? undefined },
});

export class Connections {
  readonly #store: OauthStore;
  readonly #clock: Clock;

  constructor(store: OauthStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Resolves when it is on disk. */
  async add(connection: ConnectionAdd): Promise<void> {
    const now = this.#clock.now();
    const { id, user, clientId, clientName, redirectHost, scopes, resources, credential } = connection;
    await this.#store.commits.run(() => {
      this.#forget(now);
      this.#store
        .sql(`
          INSERT INTO connections
            (grant_id, user_id, client_id, client_name, redirect_host, scopes, resources, credential, created_at,
             expires_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
        .run(
          ...[id, user, clientId, clientName ?? null, redirectHost ?? null, scopes.join(' '), resources.join(' ')],
          ...[credential ?? null, now, now + UNUSED_MS],
        );
      const older = this.#store
        .sql(`
          SELECT grant_id FROM connections WHERE user_id = ?
          ORDER BY coalesce(used_at, created_at) DESC LIMIT -1 OFFSET ?`)
        .all(user, MOST_CONNECTIONS) as Pick<Row, 'grant_id'>[];
      for (const { grant_id } of older) this.#end(grant_id);
    });
  }

  /** A connection that has not ended, by the id of its grant. */
  get(id: string): Connection | undefined {
    const row = this.#store.sql('SELECT * FROM connections WHERE grant_id = ?').get(id) as Row | undefined;
    return row === undefined || row.expires_at <= this.#clock.now() ? undefined : connectionOf(row);
  }

  /** Newest first. @param user by default all users */
  list(user?: string): readonly Connection[] {
    const rows = this.#store
      .sql(`
        SELECT * FROM connections WHERE expires_at > :now AND (:user IS NULL OR user_id = :user)
        ORDER BY created_at DESC`)
      .all({ now: this.#clock.now(), user: user ?? null }) as Row[];
    return rows.map(connectionOf);
  }

  /** The ids of all connected clients. */
  clients(): readonly string[] {
    const rows = this.#store
      .sql('SELECT DISTINCT client_id FROM connections WHERE expires_at > ?')
      .all(this.#clock.now()) as Pick<Row, 'client_id'>[];
    return rows.map(({ client_id }) => client_id);
  }

  isConnected(clientId: string): boolean {
    const found = this.#store.sql('SELECT 1 FROM connections WHERE client_id = ? AND expires_at > ? LIMIT 1');
    return found.get(clientId, this.#clock.now()) !== undefined;
  }

  /** Records that a token was issued. */
  async used(id: string): Promise<void> {
    const now = this.#clock.now();
    const known = this.get(id);
    if (!known || (known.usedAt !== undefined && Math.abs(now - known.usedAt) < USE_EVERY_MS)) return;
    await this.#store.commits.run(() =>
      this.#store
        .sql('UPDATE connections SET used_at = :now, expires_at = :until WHERE grant_id = :id')
        .run({ id, now, until: now + IDLE_MS }),
    );
  }

  /**
   * Ends a connection of a user, with all its tokens. Resolves when it is on disk.
   *
   * @throws ReveilleError `not_found` when this user has none with this id
   */
  async revoke(user: string, id: string): Promise<Connection> {
    return this.#store.commits.run(() => {
      const found = this.#store.sql('SELECT * FROM connections WHERE grant_id = ? AND user_id = ?').get(id, user) as
        | Row
        | undefined;
      if (found === undefined) throw new ReveilleError('not_found', `${user} has no connected client ${id}`);
      this.#end(id);
      return connectionOf(found);
    });
  }

  /** Ends a connection after its grant was revoked. Within a transaction. */
  revoked(id: string): void {
    this.#end(id);
  }

  #end(id: string): void {
    this.#store.sql('DELETE FROM connections WHERE grant_id = ?').run(id);
    this.#store.sql('DELETE FROM artifacts WHERE grant_id = ?').run(id);
  }

  #forget(now: number): void {
    const over = this.#store.sql('SELECT grant_id FROM connections WHERE expires_at <= ?').all(now) as Row[];
    for (const { grant_id } of over) this.#end(grant_id);
  }
}
