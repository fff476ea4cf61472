/** The alarm store on PostgreSQL, for any number of replicas at once. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { AlarmStore } from '../store.ts';
import { parseAddress } from './address.ts';
import { prepareAgentKeys, putNonce, takeNonce } from './agent-keys.ts';
import { refuseHalfArrived } from './arrival.ts';
import { pageOfAttempts, pruneAttempts } from './attempts.ts';
import { type Buckets, readBuckets } from './buckets.ts';
import { prepareClaim } from './claim.ts';
import { prepareComplete } from './complete.ts';
import { prepareCreate } from './create.ts';
import { DatabaseClock } from './database-clock.ts';
import { forgetCancelled, forgetEnded } from './forget.ts';
import { Hints } from './hints.ts';
import { migrate } from './migrate.ts';
import { earliestDue, Outlook } from './outlook.ts';
import { usage } from './owners.ts';
import { PrimaryPool } from './pool.ts';
import { hasFire, pruneReceipts, receiptsOf, recordReceipts } from './receipts.ts';
import { renew } from './renew.ts';
import { ClaimedStates, countDue, findByKey, list, readOne, search, upcoming } from './state.ts';
import { statement } from './statement.ts';
import { prepareSweep } from './sweep.ts';
import { STAND_BACK_MS, Team } from './team.ts';
import { prepareUpdate } from './write.ts';

const DEFAULT_POOL_SIZE = 10;

/** Writes an existing value again: this reaches the disk, and the standbys', and changes nothing. */
const PING = statement('ping', 'UPDATE chronos_migrations SET name = name WHERE version = 1');

export type PostgresStoreOptions = {
  /**
   * `postgres://user:password@host:5432/database`; several hosts are separated by commas, and one of them accepts
   * writes.
   */
  uri: string;
  clock: Clock;
  log: Logger;
  /** Maximum number of connections, besides one for notifications; default 10. */
  poolSize?: number;
  /** Called when another replica reports a due instant. Without it, this replica does not listen. */
  onHint?: (dueAt: number) => void;
  /** The number of buckets if the tables are created or recreated now; default 1. See `buckets.ts`. */
  buckets?: number;
  /** Called when `reshard` has changed the number of buckets: this store is unusable, and a new one must be opened. */
  onOutdated?: () => void;
  /**
   * The buckets that this replica prefers: all, its share by rendezvous hashing over the active replicas, or the
   * selection of a function. It waits a moment before it claims from other buckets. Default: `all`.
   */
  prefers?: 'all' | 'rendezvous' | ((bucket: number) => boolean);
  /** Whether replicas notify each other (LISTEN and NOTIFY); default: true. */
  hints?: boolean;
};

/**
 * Processes the buckets in turn until `limit` is reached. Each call starts at the bucket where the last one ended,
 * which may have more.
 */
function inTurn(
  buckets: Buckets,
  work: (bucket: number, request: { before: number; limit: number }) => Promise<number>,
): (request: { before: number; limit: number }) => Promise<number> {
  let first = 0;
  return async ({ before, limit }) => {
    let [done, bucket] = [0, first];
    for (let looked = 0; looked < buckets.count; looked++) {
      done += await work(bucket, { before, limit: limit - done });
      if (done >= limit) break;
      bucket = (bucket + 1) % buckets.count;
    }
    first = bucket;
    return done;
  };
}

/**
 * Opens the store and updates its schema.
 *
 * @throws ReveilleError `unavailable`, retryable: no server of the address accepts writes at present
 * @throws ReveilleError `unavailable`, not retryable: an operator must act first (password, rights, encoding, settings
 *   that lose data)
 * @throws ReveilleError `conflict`: the database belongs to a newer version or another program, or a move into it is
 *   not finished
 * @throws ReveilleError `invalid_request`: the address is not valid
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<AlarmStore> {
  const { uri, clock, log, poolSize = DEFAULT_POOL_SIZE, onHint } = options;
  let buckets: Buckets;
  const pool = new PrimaryPool(parseAddress(uri), { size: poolSize, clock, log });
  const databaseClock = new DatabaseClock(pool, clock, log);
  try {
    await pool.connect();
    await migrate(pool.primary, pool.clientConfig(pool.primary), log, { buckets: options.buckets });
    buckets = await readBuckets(pool);
    pool.inspect = async (connection) => {
      const found = await readBuckets(connection);
      if (found.count === buckets.count && found.citus === buckets.citus) return;
      options.onOutdated?.();
      throw new ReveilleError('unavailable', 'the number of buckets has changed; try again');
    };
    await refuseHalfArrived(pool, pool.primary.name);
    await databaseClock.start();
  } catch (thrown) {
    await pool.close();
    throw thrown;
  }
  let team: Team | undefined;
  const { prefers = 'all' } = options;
  const standsBack = (bucket: number) =>
    buckets.count > 1 && !(typeof prefers === 'function' ? prefers(bucket) : (team?.prefers(bucket) ?? true));
  const outlook = new Outlook(pool, buckets, clock, standsBack);
  const heard =
    onHint &&
    ((dueAt: number, bucket: number) => {
      outlook.hear(bucket, dueAt);
      onHint(standsBack(bucket) ? dueAt + STAND_BACK_MS : dueAt);
    });
  const hints = options.hints === false ? undefined : new Hints(pool, clock, log, heard);
  if (hints && prefers === 'rendezvous' && buckets.count > 1) {
    team = new Team({ self: hints.sender, buckets: buckets.count, clock, tell: (word) => hints.say(word) });
    hints.onMember = (member, word) => team?.hear(member, word);
  }
  hints?.listen();
  pool.onPrimary = () => {
    databaseClock.remeasure();
    hints?.moveOn();
  };

  const creates = prepareCreate(pool, buckets);
  const update = prepareUpdate(pool, buckets, clock);
  const claimed = new ClaimedStates();
  const sweeps = prepareSweep({ pool, buckets, outlook, clock, log });
  const claim = prepareClaim({ pool, buckets, outlook, sweeps, claimed, standsBack, log });
  const onState = (state: AlarmState) => outlook.stored(state);
  const complete = prepareComplete({ pool, buckets, claimed, clock, onState });
  const keys = prepareAgentKeys(pool, buckets);

  const changed = (owner: string) => hints?.marks.changed(owner);
  const tell = (state: AlarmState | undefined) => {
    const dueAt = state && earliestDue(state);
    if (dueAt !== undefined) hints?.tell(dueAt, buckets.of(state!.alarm.owner), databaseClock.now());
  };

  return {
    now: () => databaseClock.now(),

    async create(entry, limits) {
      const answer = await creates.create(entry, limits);
      if (answer.result === 'created') {
        changed(entry.alarm.owner);
        outlook.stored(answer.state);
        tell(answer.state);
      }
      return answer;
    },
    get: async (owner, alarmId) => (await readOne(pool, buckets, owner, alarmId))?.state,
    findByKey: (owner, key) => findByKey(pool, buckets, owner, key),
    list: (owner, filter) => list(pool, buckets.of(owner), owner, filter),
    search: (owner, request) => search(pool, buckets.of(owner), owner, request),
    mark: async (owner) => hints?.marks.of(owner),
    upcoming: (owner, request) => upcoming(pool, buckets.of(owner), owner, request),
    async update(owner, alarmId, transition, limits) {
      const state = await update(owner, alarmId, transition, limits);
      outlook.forget(buckets.of(owner));
      changed(owner);
      tell(state);
      return state;
    },
    attempts: (owner, alarmId, page) => pageOfAttempts(pool, buckets.of(owner), owner, alarmId, page),
    pruneAttempts: inTurn(buckets, (bucket, request) => pruneAttempts(pool, bucket, request)),
    pruneAlarms: inTurn(buckets, (bucket, { before, limit }) => forgetEnded(pool, bucket, before, limit)),
    async forgetCancelled(owner, limit) {
      const forgotten = await forgetCancelled(pool, buckets.of(owner), owner, limit);
      changed(owner);
      return forgotten;
    },
    usage: () => usage(pool),
    async recordReceipts(report) {
      const recorded = await recordReceipts(pool, buckets, report);
      changed(report.owner);
      return recorded;
    },
    hasFire: (fire) => hasFire(pool, buckets.of(fire.owner), fire),
    receiptsOf: (owner, alarmId, fireIds) => receiptsOf(pool, buckets.of(owner), owner, alarmId, fireIds),
    pruneReceipts: inTurn(buckets, (bucket, request) => pruneReceipts(pool, bucket, request)),

    // Any lease may belong to another, running replica.
    endLeasesOfTheDead: async () => 0,
    async claim(request) {
      const claimedNow = await claim(request);
      for (const { alarm } of claimedNow) changed(alarm.owner);
      return claimedNow;
    },
    renew: (leaseKeys, leaseUntil) => renew(pool, buckets, claimed, leaseKeys, leaseUntil),
    async complete(completions) {
      const results = await complete(completions);
      for (const { key } of completions) changed(key.owner);
      return results;
    },
    async nextDueAt(saturated) {
      team?.looks();
      return outlook.nextDueAt(saturated, databaseClock.now(), sweeps.leaseEnds);
    },
    countDue: (request) => countDue(pool, buckets, request),

    putNonce: (nonce, did, expiresAt, now) => putNonce(pool, buckets, nonce, did, expiresAt, now),
    takeNonce: (nonce, did, now) => takeNonce(pool, buckets, nonce, did, now),

    keysOf: keys.of,
    pinFirstKey: keys.pinFirst,
    enrollKey: keys.enrol,
    revokeKeys: keys.revoke,
    listKeys: ({ limit, after }) => keys.page(limit, after),

    async ping() {
      await pool.query(PING, []);
    },
    async close() {
      await creates.drain();
      team?.stop();
      await Promise.all([hints?.stop(), databaseClock.stop()]);
      await pool.close();
    },
  };
}
