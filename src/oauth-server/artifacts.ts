/**
 * Stores the records of the library's models. Ids are stored as digests and payloads sealed, so a copy of the database
 * alone contains no usable token. Tables are bounded, and expired rows are removed.
 */

import type { Clock } from '../kit/clock/clock.ts';
import { openRights, sealRights } from '../kit/identity/person-rights.ts';
import { tokenDigest } from '../kit/identity/secrets.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { Connections } from './connections.ts';
import type { OauthStore } from './store.ts';

/** A record of the library, opaque except for these members. */
type Payload = {
  readonly grantId?: string;
  readonly uid?: string;
  readonly userCode?: string;
  readonly consumed?: number;
  readonly [name: string]: unknown;
};

type Row = { sealed: string; consumed_at: number | null; grant_id: string | null; created_at: number };

/**
 * Maximum rows of the models that unauthenticated callers fill. The connections of users bound the others. A new row
 * beyond the maximum is refused, because eviction would let a flood end the requests of other callers.
 */
const MOST_ROWS: Readonly<Record<string, number>> = {
  ...{ DeviceCode: 1000, Client: 1000, Interaction: 5000, Session: 5000, ReplayDetection: 20_000 },
};
/**
 * Used refresh tokens that are kept per grant, so that a replayed one is recognised; and unused ones, of which the grace
 * period makes several.
 */
const MOST_USED = 32;
/** Lifetime of records without an expiry: clients that registered themselves. */
const UNLIMITED_SECONDS = 30 * 86_400;
const FORGET_EVERY_MS = 60_000;
/** A client that registered itself, and that no user has connected for this long, gives way to others. */
const UNCONNECTED_MS = 15 * 60_000;
/**
 * How long the last used refresh token of a grant still works: its answer may have been lost, or two processes of the
 * client used it at once. A replay after it, or of an earlier token, ends the grant (RFC 9700 §4.14.2).
 */
const GRACE_SECONDS = 60;

export type ArtifactOptions = {
  store: OauthStore;
  connections: Connections;
  clock: Clock;
  /** Seals the payloads. */
  secret: string;
  /** The error for a code or token that was already used. */
  usedAlready: () => Error;
};

export class Artifacts {
  readonly #options: ArtifactOptions;
  #forgottenAt = Number.NEGATIVE_INFINITY;

  constructor(options: ArtifactOptions) {
    this.#options = options;
  }

  /** The adapter of a model, with the methods that the library calls. */
  of(model: string) {
    return {
      upsert: (id: string, payload: Payload, expiresIn?: number) => this.#upsert(model, id, payload, expiresIn),
      find: async (id: string) => this.#read('model = ? AND digest = ?', model, tokenDigest(id)),
      findByUid: async (uid: string) => this.#read('model = ? AND uid = ?', model, uid),
      findByUserCode: async (code: string) => this.#read('model = ? AND user_code = ?', model, tokenDigest(code)),
      destroy: (id: string) => this.#destroy(model, id),
      consume: (id: string) => this.#consume(model, id),
      revokeByGrantId: (grantId: string) => this.#revoke(grantId),
    };
  }

  #read(where: string, ...values: string[]): Payload | undefined {
    const { store, secret } = this.#options;
    const row = store
      .sql(`SELECT sealed, consumed_at, grant_id, created_at, model FROM artifacts WHERE ${where}`)
      .get(...values) as (Row & { model: string }) | undefined;
    const text = row && openRights(row.sealed, secret);
    if (row === undefined || text === undefined) return undefined;
    const payload = JSON.parse(text) as Payload;
    return row.consumed_at === null || this.#isInGrace(row) ? payload : { ...payload, consumed: row.consumed_at };
  }

  /** Whether a used refresh token still works: it was used shortly before, and no token after it was. */
  #isInGrace({ model, consumed_at, grant_id, created_at }: Row & { model: string }): boolean {
    const { store, clock } = this.#options;
    if (model !== 'RefreshToken' || consumed_at === null || grant_id === null) return false;
    if (Math.floor(clock.now() / 1000) - consumed_at > GRACE_SECONDS) return false;
    const later = store
      .sql(`
        SELECT 1 FROM artifacts
        WHERE model = 'RefreshToken' AND grant_id = ? AND consumed_at IS NOT NULL AND created_at > ? LIMIT 1`)
      .get(grant_id, created_at);
    return later === undefined;
  }

  async #upsert(model: string, id: string, payload: Payload, expiresIn = UNLIMITED_SECONDS): Promise<void> {
    const { store, clock, secret } = this.#options;
    const now = clock.now();
    const digest = tokenDigest(id);
    const { grantId, uid, userCode } = payload;
    const grant_id = (model === 'Grant' ? id : grantId) ?? null;
    await store.commits.run(() => {
      this.#forget(now);
      const known = store.sql('SELECT 1 FROM artifacts WHERE model = ? AND digest = ?').get(model, digest);
      if (known === undefined) this.#makeRoom(model, grant_id, now);
      store
        .sql(`
          INSERT INTO artifacts (model, digest, sealed, grant_id, uid, user_code, created_at, expires_at)
          VALUES (:model, :digest, :sealed, :grant_id, :uid, :user_code, :created_at, :expires_at)
          ON CONFLICT (model, digest) DO UPDATE SET
            sealed = excluded.sealed, grant_id = excluded.grant_id, uid = excluded.uid,
            user_code = excluded.user_code, expires_at = excluded.expires_at`)
        .run({
          ...{ model, digest, grant_id, uid: uid ?? null, created_at: now, expires_at: now + expiresIn * 1000 },
          user_code: userCode === undefined ? null : tokenDigest(userCode),
          sealed: sealRights(JSON.stringify(payload), secret),
        });
    });
  }

  #makeRoom(model: string, grantId: string | null, now: number): void {
    const { store } = this.#options;
    if (model === 'RefreshToken' && grantId !== null)
      for (const used of [0, 1])
        store
          .sql(`
            DELETE FROM artifacts WHERE model = 'RefreshToken' AND digest IN (
              SELECT digest FROM artifacts
              WHERE model = 'RefreshToken' AND grant_id = ? AND (consumed_at IS NOT NULL) = ?
              ORDER BY created_at DESC LIMIT -1 OFFSET ?)`)
          .run(grantId, used, MOST_USED);
    const most = MOST_ROWS[model];
    if (most === undefined) return;
    const count = () =>
      (store.sql('SELECT count(*) AS n FROM artifacts WHERE model = ?').get(model) as { n: number }).n;
    if (count() < most) return;
    if (model === 'Client') this.#removeClients('created_at <= ?', now - UNCONNECTED_MS);
    if (count() < most) return;
    throw new ReveilleError('unavailable', 'too many requests are pending; try again in some minutes', {
      retryAfterSeconds: 60,
    });
  }

  /** Marks a code or token as used. Of two concurrent uses one fails, and is treated as a replay. */
  async #consume(model: string, id: string): Promise<void> {
    const { store, clock, connections, usedAlready } = this.#options;
    const digest = tokenDigest(id);
    const isFirst = await store.commits.run(() => {
      const { changes } = store
        .sql('UPDATE artifacts SET consumed_at = ? WHERE model = ? AND digest = ? AND consumed_at IS NULL')
        .run(Math.floor(clock.now() / 1000), model, digest);
      if (Number(changes) === 1) return true;
      const row = store
        .sql('SELECT model, grant_id, consumed_at, created_at FROM artifacts WHERE model = ? AND digest = ?')
        .get(model, digest) as (Row & { model: string }) | undefined;
      // The first use stays recorded: a use in the grace period does not extend it.
      if (row && this.#isInGrace(row)) return true;
      if (typeof row?.grant_id === 'string') connections.revoked(row.grant_id);
      return false;
    });
    if (!isFirst) throw usedAlready();
  }

  async #destroy(model: string, id: string): Promise<void> {
    const { store, connections } = this.#options;
    await store.commits.run(() => {
      if (model === 'Grant') connections.revoked(id);
      else store.sql('DELETE FROM artifacts WHERE model = ? AND digest = ?').run(model, tokenDigest(id));
    });
  }

  async #revoke(grantId: string): Promise<void> {
    const { store, connections } = this.#options;
    await store.commits.run(() => connections.revoked(grantId));
  }

  #forget(now: number): void {
    if (now - this.#forgottenAt < FORGET_EVERY_MS) return;
    this.#forgottenAt = now;
    this.#options.store.sql(`DELETE FROM artifacts WHERE expires_at <= ? AND model <> 'Client'`).run(now);
    this.#removeClients('expires_at <= ?', now);
  }

  /** Removes clients without a connection. Those with one keep their id, which their refresh needs. */
  #removeClients(where: 'created_at <= ?' | 'expires_at <= ?', instant: number): void {
    const { store, connections } = this.#options;
    const found = store.sql(`SELECT digest FROM artifacts WHERE model = 'Client' AND ${where}`).all(instant);
    if (found.length === 0) return;
    const connected = new Set(connections.clients().map(tokenDigest));
    const remove = store.sql(`DELETE FROM artifacts WHERE model = 'Client' AND digest = ?`);
    for (const { digest } of found as { digest: string }[]) if (!connected.has(digest)) remove.run(digest);
  }
}
