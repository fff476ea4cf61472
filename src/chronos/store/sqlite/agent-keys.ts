/** The public keys that are accepted for owners. */
import type { DatabaseSync } from 'node:sqlite';
import { AGENT_KEY_COLUMNS } from '../columns.ts';
import { anHourBefore, checkPins, isRotatable } from '../limits.ts';
import {
  type AgentKey,
  type KeyRotation,
  type KeyRotationResult,
  MOST_REVOKED_KEYS,
  type PinLimits,
} from '../store.ts';
import { LIMIT, prepareInsert, prepareQuery, shapeOf } from './statements.ts';

/** Many expired nonces are deleted over several later challenges, so that none of them has to wait. */
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

/** Owners whose keys are cached; beyond it the cache is cleared. */
const MOST_KNOWN = 10_000;

const AGENT_KEY = shapeOf(AGENT_KEY_COLUMNS);

function byAge(one: AgentKey, other: AgentKey): number {
  return one.enrolledAt - other.enrolledAt || (one.publicKey < other.publicKey ? -1 : 1);
}

export function prepareAgentKeys(db: DatabaseSync) {
  const ofOwner = prepareQuery(
    db,
    `SELECT ${AGENT_KEY.columns} FROM agent_keys WHERE owner = ? ORDER BY enrolled_at, public_key`,
    AGENT_KEY.read,
  );
  const page = prepareQuery(
    db,
    `SELECT ${AGENT_KEY.columns} FROM agent_keys WHERE (owner, public_key) > (?, ?) ORDER BY owner, public_key ${LIMIT}`,
    AGENT_KEY.read,
  );
  const pins = prepareQuery(
    db,
    `SELECT (SELECT count(*) FROM agent_keys INDEXED BY agent_keys_by_age
         WHERE enrolled_at > ? AND source = 'tofu' AND revoked_at IS NULL),
       (SELECT count(*) FROM agent_keys WHERE revoked_at IS NULL)`,
    ([pinned, keys]) => ({ pinned: pinned as number, keys: keys as number }),
  );
  const insert = prepareInsert<AgentKey>(db, 'agent_keys', AGENT_KEY_COLUMNS);
  const enrol = db.prepare(`
    INSERT INTO agent_keys (owner, label, public_key, source, enrolled_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (owner, public_key) DO UPDATE SET source = excluded.source, revoked_at = NULL`);
  const revoke = prepareQuery(
    db,
    `UPDATE agent_keys SET revoked_at = ?1 WHERE owner = ?2 AND public_key = ?3 AND revoked_at IS NULL
     RETURNING ${AGENT_KEY.columns}`,
    AGENT_KEY.read,
  );

  const forget = db.prepare(`
    DELETE FROM agent_keys WHERE owner = ?1 AND public_key IN (
      SELECT public_key FROM agent_keys WHERE owner = ?1 AND revoked_at IS NOT NULL
      ORDER BY revoked_at DESC, public_key LIMIT -1 OFFSET ${MOST_REVOKED_KEYS})`);

  // Every request reads its caller's keys. One process owns the file, so the cache is valid until this process changes
  // them.
  const known = new Map<string, readonly AgentKey[]>();

  return {
    of(owner: string): AgentKey[] {
      let keys = known.get(owner);
      if (!keys) {
        if (known.size >= MOST_KNOWN) known.clear();
        keys = ofOwner.all(owner);
        known.set(owner, keys);
      }
      return [...keys];
    },

    page: (limit: number, after = { owner: '', publicKey: '' }): AgentKey[] =>
      page.all(after.owner, after.publicKey, limit),

    pinFirst(key: AgentKey, limits?: PinLimits): boolean {
      const keys = ofOwner.all(key.owner);
      if (keys.length > 0)
        return keys.some(({ publicKey, revokedAt }) => publicKey === key.publicKey && revokedAt === null);
      if (limits) checkPins(pins.get(anHourBefore(key.enrolledAt))!, limits);
      known.delete(key.owner);
      insert({ ...key, revokedAt: null });
      return true;
    },

    enrol(key: AgentKey): void {
      known.delete(key.owner);
      enrol.run(key.owner, key.label, key.publicKey, key.source, key.enrolledAt);
    },

    rotate({ owner, from, to, now, enrolledOnly }: KeyRotation): KeyRotationResult {
      const keys = ofOwner.all(owner);
      const [old, there] = [from, to].map((wanted) => keys.find(({ publicKey }) => publicKey === wanted));
      if (!isRotatable(old, enrolledOnly)) return 'not_accepted';
      if (there && there.revokedAt !== null) return 'revoked_before';
      known.delete(owner);
      revoke.all(now, owner, from);
      if (there?.source !== 'enrolled') enrol.run(owner, old.label, to, old.source, old.enrolledAt);
      forget.run(owner);
      return 'rotated';
    },

    revoke(owner: string, publicKey: string | undefined, now: number): AgentKey[] {
      known.delete(owner);
      const keys = publicKey === undefined ? ofOwner.all(owner).map((key) => key.publicKey) : [publicKey];
      return keys.flatMap((key) => revoke.all(now, owner, key)).sort(byAge);
    },
  };
}
