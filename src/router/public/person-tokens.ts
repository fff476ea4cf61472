/** Stores the credentials of users in the registry's file. Of a token only its digest is stored. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { StatementSync } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import { randomSecret, tokenDigest } from '../../kit/identity/secrets.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { PERSON_TOKEN, type PersonRights, type PersonTokenMade, type PersonTokenView } from '../../wire/person.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Registry } from '../machines/registry.ts';

type Row = {
  id: string;
  user_id: string;
  name: string;
  digest: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
  alarm_key: string | null;
  alarm_mark: string | null;
  submitter: string | null;
};

export type Person = { readonly userId: string; readonly tokenId: string };

/** The most valid credentials of one user. */
const MOST_VALID = 64;
/** The shortest time between two stored uses, milliseconds. */
const USE_EVERY_MS = 60_000;
/** Compared when the credential does not exist, so that verification takes the same time. */
const NO_DIGEST = hash('sha256', 'no such credential', 'buffer');

/** The rights of a credential at other daemons, set by the operator. */
export type ExternalRights = {
  /** The claim of an alarm key for the credential; `undefined` without an enrolment at chronosd. */
  readonly claim: string | undefined;
  /** Whether a submitter was enrolled at the executor. */
  readonly submitter: boolean;
};

type Given = { name?: string | undefined; expires_at?: number | undefined };

export class PersonTokens {
  readonly #registry: Pick<Registry, 'commits'>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #byId: StatementSync;
  readonly #ofUser: StatementSync;
  readonly #page: StatementSync;
  readonly #add: StatementSync;
  readonly #revoke: StatementSync;
  readonly #use: StatementSync;
  readonly #grant: StatementSync;

  constructor({ registry, clock, log }: { registry: Pick<Registry, 'file' | 'commits'>; clock: Clock; log: Logger }) {
    this.#registry = registry;
    this.#clock = clock;
    this.#log = log;
    const { db } = registry.file;
    this.#byId = db.prepare('SELECT * FROM person_tokens WHERE id = ?');
    this.#ofUser = db.prepare('SELECT * FROM person_tokens WHERE user_id = ? ORDER BY created_at, id');
    this.#page = db.prepare(`
      SELECT * FROM person_tokens
      WHERE id > :after AND (:user_id IS NULL OR user_id = :user_id)
      ORDER BY id
      LIMIT :limit`);
    this.#add = db.prepare(`
      INSERT INTO person_tokens (id, user_id, name, digest, created_at, expires_at)
      VALUES (:id, :user_id, :name, :digest, :created_at, :expires_at)`);
    this.#revoke = db.prepare('UPDATE person_tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL');
    this.#grant = db.prepare(`
      UPDATE person_tokens SET alarm_key = :alarm_key, alarm_mark = :alarm_mark, submitter = :submitter WHERE id = :id`);
    this.#use = db.prepare('UPDATE person_tokens SET last_used_at = :now WHERE id = :id');
  }

  /**
   * The user of a token; `undefined` for one that is malformed, unknown, expired or revoked. All cases take the same
   * time.
   *
   * @param check receives the id in the token, if a credential with this id exists, before the verification; its error
   *   ends the verification
   */
  holderOf(token: string, check: (tokenId: string | undefined) => void = () => {}): Person | undefined {
    const [, id = ''] = PERSON_TOKEN.exec(token) ?? [];
    const row = this.#byId.get(id) as Row | undefined;
    check(row?.id);
    const digest = row === undefined ? NO_DIGEST : Buffer.from(row.digest, 'hex');
    const matches = timingSafeEqual(hash('sha256', token, 'buffer'), digest);
    if (!row || !matches || this.#stateOf(row) !== 'active') return undefined;
    this.#noteUse(row);
    return { userId: row.user_id, tokenId: row.id };
  }

  /** Whether a credential is still valid: streams and sessions outlive the verification of their token. */
  isValid({ tokenId }: Pick<Person, 'tokenId'>): boolean {
    const row = this.#byId.get(tokenId) as Row | undefined;
    return row !== undefined && this.#stateOf(row) === 'active';
  }

  /** The name that its user gave a credential. */
  nameOf(tokenId: string): string | undefined {
    return (this.#byId.get(tokenId) as Row | undefined)?.name;
  }

  /**
   * Stores the rights of a credential at other daemons, as the operator set them there.
   *
   * @throws ReveilleError `not_found` when this user has no such credential
   */
  async grant(userId: string, id: string, rights: PersonRights): Promise<PersonTokenView> {
    const row = await this.#registry.commits.run(() => {
      const found = this.#ofThisUser(userId, id);
      const { alarm_key = null, alarm_mark = null, submitter = null } = rights;
      this.#grant.run({ id: found.id, alarm_key, alarm_mark, submitter });
      return this.#byId.get(id) as Row;
    });
    return this.#viewOf(row);
  }

  externalRights(tokenId: string): ExternalRights {
    const row = this.#byId.get(tokenId) as Row | undefined;
    return { claim: row?.alarm_mark ?? undefined, submitter: row !== undefined && row.submitter !== null };
  }

  #ofThisUser(userId: string, id: string): Row {
    const found = this.#byId.get(id) as Row | undefined;
    if (found?.user_id === userId) return found;
    throw new ReveilleError('not_found', `${userId} has no credential ${id}; see: reveille user list`);
  }

  /**
   * Creates the first credential of a user.
   *
   * @throws ReveilleError `conflict` when a valid one exists, and as {@link issue}
   */
  add(userId: string, given: Given): Promise<PersonTokenMade> {
    return this.#make(userId, given, (valid) => {
      if (valid.length === 0) return;
      const message = `${userId} is a user already; create another credential with: reveille user token ${userId}`;
      throw new ReveilleError('conflict', message);
    });
  }

  /**
   * Creates another credential of a user.
   *
   * @throws ReveilleError `not_found` for an unknown user, `conflict` when too many are valid, `invalid_request` for an
   *   instant in the past
   */
  issue(userId: string, given: Given): Promise<PersonTokenMade> {
    return this.#make(userId, given, (valid, all) => {
      if (all.length === 0) throw noUser(userId);
      if (valid.length < MOST_VALID) return;
      const message = `${userId} has ${valid.length} valid credentials, the most that are allowed (${MOST_VALID}); revoke some with: reveille user revoke`;
      throw new ReveilleError('conflict', message);
    });
  }

  /** In order of id. */
  list({ userId, after = '', limit }: { userId?: string; after?: string; limit: number }): PersonTokenView[] {
    const rows = this.#page.all({ user_id: userId ?? null, after, limit }) as Row[];
    return rows.map((row) => this.#viewOf(row));
  }

  /**
   * @throws ReveilleError `not_found` when this user has no such credential; one that was revoked already is returned
   *   unchanged
   */
  async revoke(userId: string, id: string): Promise<PersonTokenView> {
    const row = await this.#registry.commits.run(() => {
      this.#ofThisUser(userId, id);
      this.#revoke.run({ id, now: this.#clock.now() });
      return this.#byId.get(id) as Row;
    });
    return this.#viewOf(row);
  }

  /** Revokes all valid credentials. @throws ReveilleError `not_found` for an unknown user */
  async revokeAll(userId: string): Promise<PersonTokenView[]> {
    const rows = await this.#registry.commits.run(() => {
      const all = this.#ofUser.all(userId) as Row[];
      if (all.length === 0) throw noUser(userId);
      const valid = all.filter(({ revoked_at }) => revoked_at === null);
      for (const { id } of valid) this.#revoke.run({ id, now: this.#clock.now() });
      return valid.map(({ id }) => this.#byId.get(id) as Row);
    });
    return rows.map((row) => this.#viewOf(row));
  }

  async #make(
    userId: string,
    { name = 'credential', expires_at }: Given,
    check: (valid: Row[], all: Row[]) => void,
  ): Promise<PersonTokenMade> {
    const now = this.#clock.now();
    if (expires_at !== undefined && expires_at <= now) {
      const message = `expires_at must be in the future (got ${formatInstant(expires_at)}; it is ${formatInstant(now)})`;
      throw new ReveilleError('invalid_request', message);
    }
    const id = randomBytes(6).toString('hex');
    const token = `rvp_${id}_${randomSecret()}`;
    const row = await this.#registry.commits.run(() => {
      const all = this.#ofUser.all(userId) as Row[];
      check(
        all.filter((one) => this.#stateOf(one) === 'active'),
        all,
      );
      this.#add.run({
        ...{ id, user_id: userId, name, digest: tokenDigest(token) },
        ...{ created_at: now, expires_at: expires_at ?? null },
      });
      return this.#byId.get(id) as Row;
    });
    return { ...this.#viewOf(row), token };
  }

  #stateOf({ revoked_at, expires_at }: Row): PersonTokenView['state'] {
    if (revoked_at !== null) return 'revoked';
    return expires_at !== null && expires_at <= this.#clock.now() ? 'expired' : 'active';
  }

  /** The caller does not wait for it, and a failure has no effect. */
  #noteUse({ id, last_used_at }: Row): void {
    const now = this.#clock.now();
    if (last_used_at !== null && Math.abs(now - last_used_at) < USE_EVERY_MS) return;
    this.#registry.commits
      .run(() => this.#use.run({ id, now }))
      .catch((err: unknown) => this.#log.warn({ err }, 'the use of a credential could not be stored'));
  }

  #viewOf(row: Row): PersonTokenView {
    const instant = (at: number | null) => (at === null ? undefined : formatInstant(at));
    return {
      ...{ id: row.id, user_id: row.user_id, name: row.name, state: this.#stateOf(row) },
      created_at: formatInstant(row.created_at),
      expires_at: instant(row.expires_at),
      revoked_at: instant(row.revoked_at),
      last_used_at: instant(row.last_used_at),
      ...(row.alarm_key !== null && { alarm_key: row.alarm_key }),
      ...(row.submitter !== null && { submitter: row.submitter }),
    };
  }
}

function noUser(userId: string): ReveilleError {
  return new ReveilleError('not_found', `there is no user ${userId}; add one with: reveille user add ${userId}`);
}
