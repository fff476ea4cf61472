/**
 * The `submitters` table: tokens that hand tasks over for one user. Only their hashes are kept. Every method is
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

export type Submitters = {
  /** Whose token this is; `undefined` for one that is unknown or was revoked. */
  holder(token: string): SubmitterView | undefined;
  /** @throws ReveilleError `rate_limited` when the user has too many that stand */
  add(user: string, name: string): SubmitterView & { readonly token: string };
  /** @param user of everybody unless told */
  list(user?: string): SubmitterView[];
  /** Harmless when repeated. @throws ReveilleError `not_found` */
  revoke(id: string): SubmitterView;
};

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

export function submitterTable(db: DatabaseSync, writes: GroupCommit, clock: Clock): Submitters {
  const insert = db.prepare(
    'INSERT INTO submitters (id, name, user_id, token_sha256, created_at) VALUES (?, ?, ?, ?, ?)',
  );
  const byToken = db.prepare('SELECT * FROM submitters WHERE token_sha256 = ? AND revoked_at IS NULL');
  const byId = db.prepare('SELECT * FROM submitters WHERE id = ?');
  const all = db.prepare('SELECT * FROM submitters ORDER BY user_id, created_at, id');
  const ofUser = db.prepare('SELECT * FROM submitters WHERE user_id = ? ORDER BY created_at, id');
  const standing = db.prepare('SELECT count(*) AS n FROM submitters WHERE user_id = ? AND revoked_at IS NULL');
  const end = db.prepare('UPDATE submitters SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL');

  return {
    // The time that a search in an index takes tells of hashes, and nothing of a token follows from its hash.
    holder(token) {
      const row = token.startsWith(SUBMITTER_PREFIX) ? byToken.get(tokenDigest(token)) : undefined;
      return row && viewOf(row);
    },

    add: (user, name) =>
      writes.runNow(() => {
        const owner = ownerOf(user);
        if ((standing.get(owner)?.n as number) >= SUBMITTERS_PER_USER) {
          const message = `${owner} has ${SUBMITTERS_PER_USER} submitters that stand; revoke some of them first`;
          throw new ReveilleError('rate_limited', message);
        }
        const [id, token] = [randomUUID(), `${SUBMITTER_PREFIX}${randomSecret()}`];
        insert.run(id, name, owner, tokenDigest(token), clock.now());
        return { ...viewOf(byId.get(id)!), token };
      }),

    list: (user) => (user === undefined ? all.all() : ofUser.all(ownerOf(user))).map(viewOf),

    revoke: (id) =>
      writes.runNow(() => {
        if (byId.get(id) === undefined)
          throw new ReveilleError(
            'not_found',
            `there is no submitter ${id}; "reveille submitter list" (GET /submitters) lists them`,
          );
        end.run(clock.now(), id);
        return viewOf(byId.get(id)!);
      }),
  };
}
