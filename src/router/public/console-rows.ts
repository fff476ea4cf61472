/** Stores console sessions and sign-in codes in the registry's file, so that they survive a restart of the router. */
import type { StatementSync } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import { openRights, sealRights } from '../../kit/identity/person-rights.ts';
import { randomSecret, tokenDigest } from '../../kit/identity/secrets.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Registry } from '../machines/registry.ts';

/** A code is used soon after it was created. */
export const CODE_SECONDS = 600;
/** The most unused codes of one user; the one that expires first is removed. */
const MOST_CODES = 32;
/** A session without requests for this long is deleted (the console itself ends it earlier). */
const FORGET_MS = 8 * 24 * 3_600_000;

export type ConnectingClient = {
  readonly user: string;
  /** The id of the credential of the sign-in. Its sessions end with it. */
  readonly credential: string;
  readonly rights: string;
  /** An IANA time zone. */
  readonly zone?: string | undefined;
};

/** A stored session: no member of it can open the session. */
export type SessionRow = {
  readonly base: string;
  readonly user: string;
  readonly credential: string;
  readonly digest: string;
  readonly sealed: string;
  readonly zone?: string | undefined;
  readonly startedAt: number;
  readonly usedAt: number;
};

type Row = {
  base: string;
  user_id: string;
  credential: string;
  digest: string;
  sealed: string;
  zone: string | null;
  started_at: number;
  used_at: number;
};
type CodeRow = Pick<Row, 'user_id' | 'credential' | 'sealed' | 'zone'> & { expires_at: number };

export class ConsoleRows {
  readonly #commits: Registry['commits'];
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #statements: Record<'get' | 'put' | 'trim' | 'touch' | 'remove' | 'forget', StatementSync>;
  readonly #codes: Record<'put' | 'trim' | 'take' | 'forget', StatementSync>;

  constructor({ registry, clock, log }: { registry: Pick<Registry, 'file' | 'commits'>; clock: Clock; log: Logger }) {
    this.#commits = registry.commits;
    this.#clock = clock;
    this.#log = log;
    const { db } = registry.file;
    this.#statements = {
      get: db.prepare('SELECT * FROM console_sessions WHERE base = ?'),
      put: db.prepare(`
        INSERT INTO console_sessions (base, user_id, credential, digest, sealed, zone, started_at, used_at)
        VALUES (:base, :user_id, :credential, :digest, :sealed, :zone, :started_at, :used_at)`),
      trim: db.prepare(`
        DELETE FROM console_sessions WHERE base IN (
          SELECT base FROM console_sessions WHERE user_id = ? ORDER BY used_at DESC, started_at DESC LIMIT -1 OFFSET ?)`),
      touch: db.prepare('UPDATE console_sessions SET used_at = ? WHERE base = ?'),
      remove: db.prepare('DELETE FROM console_sessions WHERE base = ?'),
      forget: db.prepare('DELETE FROM console_sessions WHERE used_at < ?'),
    };
    this.#codes = {
      put: db.prepare(`
        INSERT INTO console_codes (digest, user_id, credential, sealed, zone, expires_at)
        VALUES (:digest, :user_id, :credential, :sealed, :zone, :expires_at)`),
      trim: db.prepare(`
        DELETE FROM console_codes WHERE digest IN (
          SELECT digest FROM console_codes WHERE user_id = ? ORDER BY expires_at DESC LIMIT -1 OFFSET ?)`),
      take: db.prepare('DELETE FROM console_codes WHERE digest = ? RETURNING *'),
      forget: db.prepare('DELETE FROM console_codes WHERE expires_at < ?'),
    };
  }

  /** Creates a code that opens one session for the holder of the token. */
  async issue({ user, credential, rights, zone }: ConnectingClient): Promise<string> {
    const code = randomSecret();
    const now = this.#clock.now();
    await this.#commits.run(() => {
      this.#codes.forget.run(now);
      this.#codes.put.run({
        ...{ digest: tokenDigest(code), user_id: user, credential, zone: zone ?? null },
        ...{ sealed: sealRights(rights, code), expires_at: now + CODE_SECONDS * 1000 },
      });
      this.#codes.trim.run(user, MOST_CODES);
    });
    return code;
  }

  /** Uses a code. It works only once. `undefined` when the code does not exist or has expired. */
  async redeem(code: string): Promise<ConnectingClient | undefined> {
    const row = (await this.#commits.run(() => this.#codes.take.get(tokenDigest(code)))) as CodeRow | undefined;
    if (row === undefined || row.expires_at <= this.#clock.now()) return undefined;
    const rights = openRights(row.sealed, code);
    return rights === undefined
      ? undefined
      : { user: row.user_id, credential: row.credential, rights, zone: row.zone ?? undefined };
  }

  get(base: string): SessionRow | undefined {
    const row = this.#statements.get.get(base) as Row | undefined;
    if (row === undefined) return undefined;
    const { user_id: user, credential, digest, sealed, zone, started_at: startedAt, used_at: usedAt } = row;
    return { base, user, credential, digest, sealed, zone: zone ?? undefined, startedAt, usedAt };
  }

  /** Resolves when it is on disk. A user has a limited number of sessions; the least recently used are removed. */
  async put({ user, zone, startedAt, usedAt, ...row }: SessionRow, most: number): Promise<void> {
    await this.#commits.run(() => {
      this.#statements.forget.run(this.#clock.now() - FORGET_MS);
      this.#statements.put.run({
        ...row,
        ...{ user_id: user, zone: zone ?? null, started_at: startedAt, used_at: usedAt },
      });
      this.#statements.trim.run(user, most);
    });
  }

  /** The caller does not wait for it. */
  touch(base: string, at: number): void {
    this.#commits
      .run(() => this.#statements.touch.run(at, base))
      .catch((err: unknown) => this.#log.warn({ err }, 'the use of a console session could not be stored'));
  }

  async remove(base: string): Promise<void> {
    await this.#commits.run(() => this.#statements.remove.run(base));
  }
}
