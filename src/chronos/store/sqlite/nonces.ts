/** Nonces of challenges: made once, used once. */
import type { DatabaseSync } from 'node:sqlite';
import { prepareQuery } from './statements.ts';

/** A flood of challenges is cleared away over several later ones, so that none of them has to wait for it. */
const EXPIRED_AT_ONCE = 1000;

export function prepareNonces(db: DatabaseSync) {
  const dropExpired = db.prepare(`
    DELETE FROM auth_nonces
    WHERE nonce IN (SELECT nonce FROM auth_nonces WHERE expires_at <= ? ORDER BY expires_at LIMIT ${EXPIRED_AT_ONCE})`);
  const insert = db.prepare('INSERT INTO auth_nonces (nonce, did, expires_at) VALUES (?, ?, ?)');
  const remove = prepareQuery(
    db,
    'DELETE FROM auth_nonces WHERE nonce = ? RETURNING did, expires_at',
    ([did, expiresAt]) => ({ did: did as string, expiresAt: expiresAt as number }),
  );

  return {
    put(nonce: string, did: string, expiresAt: number, now: number): void {
      dropExpired.run(now);
      insert.run(nonce, did, expiresAt);
    },

    take(nonce: string, did: string, now: number): boolean {
      const kept = remove.get(nonce);
      return kept !== undefined && kept.did === did && kept.expiresAt > now;
    },
  };
}
