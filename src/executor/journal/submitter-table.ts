/**
 * The `submitters` table: tokens that may submit tasks for one user. Only their hashes are stored. Every method is
 * synchronous.
 */
import { randomUUID } from 'node:crypto';
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import { randomSecret, tokenDigest } from '../../kit/identity/secrets.ts';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import { ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { SUBMITTER_PREFIX, SUBMITTERS_PER_USER, type SubmitterView } from '../../wire/submitter.ts';

export type Submitters = ReturnType<typeof submitterTable>;

function viewOf(row: Record<string, SQLOutputValue>): SubmitterView {
  const revokedAt = row.revoked_at as number | null;
  return {
    id: row.id as string,
    name: row.name as string,
    user: row.user_id as string,
    created_at: formatInstant(row.created_at as number),
    ...(revokedAt === null ? {} : { revoked_at: formatInstant(revokedAt) }),
  };
}

export function submitterTable(db: DatabaseSync, writes: GroupCommit, clock: Clock) {
  const insert = db.prepare(
    'INSERT INTO submitters (id, name, user_id, token_sha256, created_at) VALUES (?, ?, ?, ?, ?)',
  );
  const byToken = db.prepare('SELECT * FROM submitters WHERE token_sha256 = ? AND revoked_at IS NULL');
  const known = db.prepare('SELECT 1 FROM submitters WHERE token_sha256 = ?');
  const byId = db.prepare('SELECT * FROM submitters WHERE id = ?');
  const all = db.prepare('SELECT * FROM submitters ORDER BY user_id, created_at, id');
  const ofUser = db.prepare('SELECT * FROM submitters WHERE user_id = ? ORDER BY created_at, id');
  const active = db.prepare('SELECT count(*) AS n FROM submitters WHERE user_id = ? AND revoked_at IS NULL');
  const revoke = db.prepare('UPDATE submitters SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL');

  return {
    /** The submitter of a token; `undefined` for an unknown or revoked one. */
    holder(token: string): SubmitterView | undefined {
      // The duration of an index lookup leaks only information about hashes, and a hash reveals nothing about its token.
      const row = token.startsWith(SUBMITTER_PREFIX) ? byToken.get(tokenDigest(token)) : undefined;
      return row && viewOf(row);
    },

    /**
     * @param tokenSha256 of a token that its holder already has; without it a token is generated
     * @throws ReveilleError `rate_limited` when the user has too many active ones, `conflict` for a known token
     */
    add: (user: string, name: string, tokenSha256?: string): SubmitterView & { readonly token?: string } =>
      writes.runNow(() => {
        const owner = ownerOf(user);
        if ((active.get(owner)?.n as number) >= SUBMITTERS_PER_USER) {
          const message = `${owner} has ${SUBMITTERS_PER_USER} active submitters; revoke some of them first`;
          throw new ReveilleError('rate_limited', message);
        }
        const id = randomUUID();
        const token = tokenSha256 === undefined ? `${SUBMITTER_PREFIX}${randomSecret()}` : undefined;
        const digest = tokenSha256 ?? tokenDigest(token!);
        if (known.get(digest))
          throw new ReveilleError('conflict', 'this token is already a submitter’s token, active or revoked');
        insert.run(id, name, owner, digest, clock.now());
        return { ...viewOf(byId.get(id)!), ...(token !== undefined && { token }) };
      }),

    /** @param user all users by default */
    list: (user?: string): SubmitterView[] => (user === undefined ? all.all() : ofUser.all(ownerOf(user))).map(viewOf),

    /** Idempotent. @throws ReveilleError `not_found` */
    revoke: (id: string): SubmitterView =>
      writes.runNow(() => {
        if (byId.get(id) === undefined)
          throw new ReveilleError(
            'not_found',
            `there is no submitter ${id}; "reveille submitter list" (GET /submitters) lists them`,
          );
        revoke.run(clock.now(), id);
        return viewOf(byId.get(id)!);
      }),
  };
}
