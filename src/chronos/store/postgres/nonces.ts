/** Nonces of challenges: made once, used once. */
import type { PrimaryPool } from './pool.ts';
import { isStorable } from './state.ts';
import { statement } from './statement.ts';

/** A flood of challenges is cleared away over several later ones, so that none of them has to wait for it. */
const DROP_EXPIRED = statement(
  'drop_nonces',
  `
  DELETE FROM auth_nonces WHERE nonce IN (
    SELECT nonce FROM auth_nonces WHERE expires_at <= $1 ORDER BY expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED)`,
);
const INSERT = statement('put_nonce', 'INSERT INTO auth_nonces (nonce, did, expires_at) VALUES ($1, $2, $3)');
const TAKE = statement('take_nonce', 'DELETE FROM auth_nonces WHERE nonce = $1 RETURNING did, expires_at');

export async function putNonce(
  pool: PrimaryPool,
  nonce: string,
  did: string,
  expiresAt: number,
  now: number,
): Promise<void> {
  await pool.transaction(async (transaction) => {
    await Promise.all([transaction.query(DROP_EXPIRED, [now]), transaction.query(INSERT, [nonce, did, expiresAt])]);
  });
}

export async function takeNonce(pool: PrimaryPool, nonce: string, did: string, now: number): Promise<boolean> {
  // A caller's own text: no nonce of ours has a character that the database does not.
  if (!isStorable(nonce)) return false;
  const [row] = (await pool.query(TAKE, [nonce])) as [string, number][];
  return row !== undefined && row[0] === did && row[1] > now;
}
