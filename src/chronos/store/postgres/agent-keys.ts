/** The public keys that are accepted for owners. */
import { anHourBefore, checkPins, isRotatable } from '../limits.ts';
import {
  type AgentKey,
  type KeyRotation,
  type KeyRotationResult,
  MOST_REVOKED_KEYS,
  type PinLimits,
} from '../store.ts';
import { Batcher } from './batch.ts';
import type { Buckets } from './buckets.ts';
import type { PrimaryPool } from './pool.ts';
import { AGENT_KEY } from './rows.ts';
import { isStorable } from './state.ts';
import { type Call, statement } from './statement.ts';

/** Many expired nonces are deleted over several later challenges, so that none of them has to wait. */
const DROP_EXPIRED = statement(
  'drop_nonces',
  `
  DELETE FROM auth_nonces WHERE bucket = $1 AND nonce IN (
    SELECT nonce FROM auth_nonces WHERE bucket = $1 AND expires_at <= $2 ORDER BY expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED)`,
);
const INSERT = statement(
  'put_nonce',
  'INSERT INTO auth_nonces (bucket, nonce, did, expires_at) VALUES ($1, $2, $3, $4)',
);
const TAKE = statement(
  'take_nonce',
  'DELETE FROM auth_nonces WHERE bucket = $1 AND nonce = $2 RETURNING did, expires_at',
);

export async function putNonce(
  pool: PrimaryPool,
  buckets: Buckets,
  nonce: string,
  did: string,
  expiresAt: number,
  now: number,
): Promise<void> {
  const bucket = buckets.of(nonce);
  await pool.transaction(async (transaction) => {
    const drop = transaction.query(DROP_EXPIRED, [bucket, now]);
    await Promise.all([drop, transaction.query(INSERT, [bucket, nonce, did, expiresAt])]);
  });
}

export async function takeNonce(
  pool: PrimaryPool,
  buckets: Buckets,
  nonce: string,
  did: string,
  now: number,
): Promise<boolean> {
  // A caller's own text: nonces of this service contain only characters that the database accepts.
  if (!isStorable(nonce)) return false;
  const [row] = (await pool.query(TAKE, [buckets.of(nonce), nonce])) as [string, number][];
  return row !== undefined && row[0] === did && row[1] > now;
}

const OF_OWNERS = statement(
  'keys_of',
  `SELECT ${AGENT_KEY.list()} FROM agent_keys WHERE bucket = $1 AND owner = ANY ($2::text[]) ORDER BY enrolled_at, public_key`,
);

const PAGE = statement(
  'keys_page',
  `SELECT ${AGENT_KEY.list()} FROM agent_keys WHERE (owner, public_key) > ($1, $2) ORDER BY owner, public_key LIMIT $3`,
);

/** When two first keys are stored at the same time, the index over pinned keys rejects one. */
const PIN = statement(
  'pin_key',
  `
  INSERT INTO agent_keys (bucket, owner, label, public_key, source, enrolled_at, pinned)
  SELECT $1::bigint, $2::text, $3::text, $4::text, $5::text, $6::bigint, true
  WHERE NOT EXISTS (SELECT 1 FROM agent_keys WHERE bucket = $1::bigint AND owner = $2::text)
  ON CONFLICT DO NOTHING
  RETURNING 1`,
);

const PINS = statement(
  'pins',
  `SELECT (SELECT count(*) FROM agent_keys WHERE enrolled_at > $1 AND source = 'tofu' AND revoked_at IS NULL),
     (SELECT count(*) FROM agent_keys WHERE revoked_at IS NULL)`,
);

const ENROL = statement(
  'enrol_key',
  `
  INSERT INTO agent_keys (bucket, owner, label, public_key, source, enrolled_at, pinned)
  VALUES ($1, $2, $3, $4, $5, $6, false)
  ON CONFLICT (bucket, owner, public_key) DO UPDATE SET source = excluded.source, revoked_at = NULL`,
);

const REVOKE = statement(
  'revoke_keys',
  `
  UPDATE agent_keys SET revoked_at = $3
  WHERE bucket = $1 AND owner = $2 AND revoked_at IS NULL AND ($4::text IS NULL OR public_key = $4)
  RETURNING ${AGENT_KEY.list()}`,
);

/** Its own statement, so that the next one sees what was committed before the lock. */
const LOCK = statement(
  'lock_keys',
  `SELECT ${AGENT_KEY.list()} FROM agent_keys WHERE bucket = $1 AND owner = $2 ORDER BY public_key FOR UPDATE`,
);

const OF_OWNER = statement(
  'keys_of_one',
  `SELECT ${AGENT_KEY.list()} FROM agent_keys WHERE bucket = $1 AND owner = $2`,
);

const FORGET = statement(
  'forget_keys',
  `
  DELETE FROM agent_keys WHERE bucket = $1 AND owner = $2 AND public_key IN (
    SELECT public_key FROM agent_keys WHERE bucket = $1 AND owner = $2 AND revoked_at IS NOT NULL
    ORDER BY revoked_at DESC, public_key OFFSET ${MOST_REVOKED_KEYS})`,
);

function byAge(one: AgentKey, other: AgentKey): number {
  return one.enrolledAt - other.enrolledAt || (one.publicKey < other.publicKey ? -1 : 1);
}

export function prepareAgentKeys(pool: PrimaryPool, buckets: Buckets) {
  const valuesOf = ({ owner, label, publicKey, source, enrolledAt }: AgentKey) =>
    [buckets.of(owner), owner, label, publicKey, source, enrolledAt] as const;
  // Every request reads its caller's keys; simultaneous requests share one query.
  const lookUps = new Batcher(
    async (owners: readonly string[]) => {
      const calls = buckets
        .group([...new Set(owners)], (owner) => owner)
        .map(([bucket, those]): Call => ({ statement: OF_OWNERS, values: [bucket, those] }));
      const keys = (await buckets.queryAll(pool, calls)).map((row) => AGENT_KEY.read(row));
      const byOwner = Map.groupBy(keys, ({ owner }) => owner);
      return owners.map((owner) => byOwner.get(owner) ?? []);
    },
    { batches: 2, items: 256 },
  );
  const of = async (owner: string): Promise<AgentKey[]> => (isStorable(owner) ? lookUps.add(owner) : []);

  return {
    of,

    async page(limit: number, after = { owner: '', publicKey: '' }): Promise<AgentKey[]> {
      return (await pool.query(PAGE, [after.owner, after.publicKey, limit])).map((row) => AGENT_KEY.read(row));
    },

    async pinFirst(key: AgentKey, limits?: PinLimits): Promise<boolean> {
      if (limits && (await of(key.owner)).length === 0) {
        const [[pinned, keys]] = (await pool.query(PINS, [anHourBefore(key.enrolledAt)])) as [[number, number]];
        checkPins({ pinned, keys }, limits);
      }
      if ((await pool.query(PIN, valuesOf(key))).length > 0) return true;
      const known = await of(key.owner);
      return known.some(({ publicKey, revokedAt }) => publicKey === key.publicKey && revokedAt === null);
    },

    async enrol(key: AgentKey): Promise<void> {
      await pool.query(ENROL, valuesOf(key));
    },

    async rotate({ owner, from, to, now, enrolledOnly }: KeyRotation): Promise<KeyRotationResult> {
      if (!isStorable(owner, from, to)) return 'not_accepted';
      const bucket = buckets.of(owner);
      return pool.transaction(async ({ query }) => {
        await query(LOCK, [bucket, owner]);
        const keys = (await query(OF_OWNER, [bucket, owner])).map((row) => AGENT_KEY.read(row));
        const [old, there] = [from, to].map((wanted) => keys.find(({ publicKey }) => publicKey === wanted));
        if (!isRotatable(old, enrolledOnly)) return 'not_accepted';
        if (there && there.revokedAt !== null) return 'revoked_before';
        await query(REVOKE, [bucket, owner, now, from]);
        if (there?.source !== 'enrolled') await query(ENROL, valuesOf({ ...old, publicKey: to }));
        await query(FORGET, [bucket, owner]);
        return 'rotated';
      });
    },

    async revoke(owner: string, publicKey: string | undefined, now: number): Promise<AgentKey[]> {
      if (!isStorable(owner, publicKey ?? '')) return [];
      const bucket = buckets.of(owner);
      // The lock waits for a rotation, whose new key the second statement sees.
      const [, rows] = await pool.together([
        { statement: LOCK, values: [bucket, owner] },
        { statement: REVOKE, values: [bucket, owner, now, publicKey ?? null] },
      ]);
      return rows!.map((row) => AGENT_KEY.read(row)).sort(byAge);
    },
  };
}
