/** The public keys that are accepted for owners. */
import { anHourBefore, checkPins } from '../limits.ts';
import type { AgentKey, PinLimits } from '../store.ts';
import { Gatherer } from './gather.ts';
import type { PrimaryPool } from './pool.ts';
import { AGENT_KEY } from './rows.ts';
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

const OF_OWNERS = statement(
  'keys_of',
  `SELECT ${AGENT_KEY.list()} FROM agent_keys WHERE owner = ANY ($1::text[]) ORDER BY enrolled_at, public_key`,
);

const PAGE = statement(
  'keys_page',
  `SELECT ${AGENT_KEY.list()} FROM agent_keys WHERE (owner, public_key) > ($1, $2) ORDER BY owner, public_key LIMIT $3`,
);

/** Of two first keys that are put in at the same time, the index over pinned keys refuses one. */
const PIN = statement(
  'pin_key',
  `
  INSERT INTO agent_keys (owner, label, public_key, source, enrolled_at, pinned)
  SELECT $1::text, $2::text, $3::text, $4::text, $5::bigint, true WHERE NOT EXISTS (SELECT 1 FROM agent_keys WHERE owner = $1::text)
  ON CONFLICT DO NOTHING
  RETURNING 1`,
);

const PINS = statement(
  'pins',
  `SELECT (SELECT count(*) FROM agent_keys WHERE enrolled_at > $1 AND source = 'tofu'), (SELECT count(*) FROM agent_keys)`,
);

const ENROL = statement(
  'enrol_key',
  `
  INSERT INTO agent_keys (owner, label, public_key, source, enrolled_at, pinned) VALUES ($1, $2, $3, $4, $5, false)
  ON CONFLICT (owner, public_key) DO UPDATE SET source = excluded.source, revoked_at = NULL`,
);

const REVOKE = statement(
  'revoke_keys',
  `
  UPDATE agent_keys SET revoked_at = $2
  WHERE owner = $1 AND revoked_at IS NULL AND ($3::text IS NULL OR public_key = $3)
  RETURNING ${AGENT_KEY.list()}`,
);

const valuesOf = ({ owner, label, publicKey, source, enrolledAt }: AgentKey) => [
  owner,
  label,
  publicKey,
  source,
  enrolledAt,
];

function byAge(one: AgentKey, other: AgentKey): number {
  return one.enrolledAt - other.enrolledAt || (one.publicKey < other.publicKey ? -1 : 1);
}

export function prepareAgentKeys(pool: PrimaryPool) {
  // Every request asks for its caller's keys; those that arrive together ask together.
  const lookUps = new Gatherer(
    async (owners: readonly string[]) => {
      const keys = (await pool.query(OF_OWNERS, [[...new Set(owners)]])).map((row) => AGENT_KEY.read(row));
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

    async revoke(owner: string, publicKey: string | undefined, now: number): Promise<AgentKey[]> {
      if (!isStorable(owner, publicKey ?? '')) return [];
      const rows = await pool.query(REVOKE, [owner, now, publicKey ?? null]);
      return rows.map((row) => AGENT_KEY.read(row)).sort(byAge);
    },
  };
}
