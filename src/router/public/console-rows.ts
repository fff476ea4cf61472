/** Sessions of the console and the codes that open one, in the registry's file: a restart of the router ends none. */
import type { StatementSync } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import { openRights, sealRights } from '../../kit/identity/person-rights.ts';
import { randomSecret, tokenDigest } from '../../kit/identity/secrets.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Registry } from '../machines/registry.ts';

/** A code is opened at once. */
export const CODE_SECONDS = 600;
/** Codes of one user that wait to be used; the one that ends first goes. */
const MOST_CODES = 32;
/** Without a request for so long nothing of a session is left (the console itself ends it earlier). */
const FORGET_MS = 8 * 24 * 3_600_000;

/** Somebody who may come in. */
export type Comer = {
  readonly user: string;
  /** The id of the credential that let them in; what it opened ends with it. */
  readonly credential: string;
  readonly rights: string;
  /** IANA. */
  readonly zone?: string | undefined;
};

/** A session as it is kept: nothing in it opens it. */
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

  /** A code that opens one session for whoever asks with their token. */
  async issue({ user, credential, rights, zone }: Comer): Promise<string> {
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

  /** Uses a code up, once whoever else tries it. `undefined` when there is none, or it is too old. */
  async redeem(code: string): Promise<Comer | undefined> {
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

  /** On disk when it resolves. Of one user so many are kept, those that were used last. */
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

  /** Nobody waits for it. */
  touch(base: string, at: number): void {
    this.#commits
      .run(() => this.#statements.touch.run(at, base))
      .catch((err: unknown) => this.#log.warn({ err }, 'the use of a console was not written down'));
  }

  async remove(base: string): Promise<void> {
    await this.#commits.run(() => this.#statements.remove.run(base));
  }
}
