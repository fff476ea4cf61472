/** The alarm store on PostgreSQL, for any number of replicas at once. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { AlarmStore } from '../store.ts';
import { parseAddress } from './address.ts';
import { prepareAgentKeys, putNonce, takeNonce } from './agent-keys.ts';
import { pageOfAttempts, pruneAttempts } from './attempts.ts';
import { type Buckets, readBuckets } from './buckets.ts';
import { ChangePoll } from './change-poll.ts';
import { prepareClaim } from './claim.ts';
import { prepareComplete } from './complete.ts';
import { prepareCreate } from './create.ts';
import { DatabaseClock } from './database-clock.ts';
import { deleteCancelled, deleteEnded } from './delete-ended.ts';
import { DueIndex, earliestDue } from './due-index.ts';
import { PREFERENCE_DELAY_MS, ReplicaMembership } from './membership.ts';
import { migrate } from './migrate.ts';
import { usage } from './owners.ts';
import { PrimaryPool } from './pool.ts';
import { renew } from './renew.ts';
import { ReplicaNotifications } from './replica-notifications.ts';
import { ClaimedStates, countDue, findByKey, list, readOne, search, upcoming } from './state.ts';
import { statement } from './statement.ts';
import { prepareSweep } from './sweep.ts';
import { refuseIncompleteTransfer } from './transfer-state.ts';
import { hasFire, pruneTurnReports, recordTurnReports, turnReportsOf } from './turn-reports.ts';
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
  onRemoteDue?: (dueAt: number) => void;
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
  notifications?: boolean;
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
    for (let visited = 0; visited < buckets.count; visited++) {
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
  const { uri, clock, log, poolSize = DEFAULT_POOL_SIZE, onRemoteDue } = options;
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
    await refuseIncompleteTransfer(pool, pool.primary.name);
    await databaseClock.start();
  } catch (thrown) {
    await pool.close();
    throw thrown;
  }
  let membership: ReplicaMembership | undefined;
  const { prefers = 'all' } = options;
  const isPreferredElsewhere = (bucket: number) =>
    buckets.count > 1 && !(typeof prefers === 'function' ? prefers(bucket) : (membership?.prefers(bucket) ?? true));
  const dueIndex = new DueIndex(pool, buckets, clock, isPreferredElsewhere);
  const onNotifiedDue =
    onRemoteDue &&
    ((dueAt: number, bucket: number) => {
      dueIndex.noteDue(bucket, dueAt);
      onRemoteDue(isPreferredElsewhere(bucket) ? dueAt + PREFERENCE_DELAY_MS : dueAt);
    });
  const notifications =
    options.notifications === false ? undefined : new ReplicaNotifications(pool, clock, log, onNotifiedDue);
  if (notifications && prefers === 'rendezvous' && buckets.count > 1) {
    membership = new ReplicaMembership({
      self: notifications.sender,
      buckets: buckets.count,
      clock,
      notify: (word) => notifications.sendMembership(word),
    });
    notifications.onMember = (member, word) => membership?.receive(member, word);
  }
  notifications?.listen();
  pool.onPrimary = () => {
    databaseClock.remeasure();
    notifications?.reconnect();
  };

  const creates = prepareCreate(pool, buckets);
  const update = prepareUpdate(pool, buckets, clock);
  const claimed = new ClaimedStates();
  const sweeps = prepareSweep({ pool, buckets, dueIndex, clock, log });
  const claim = prepareClaim({
    pool,
    buckets,
    dueIndex,
    sweeps,
    claimed,
    isPreferredElsewhere,
    log,
  });
  const onState = (state: AlarmState) => dueIndex.recordStored(state);
  const complete = prepareComplete({ pool, buckets, claimed, clock, onState });
  const keys = prepareAgentKeys(pool, buckets);
  const changes = new ChangePoll({ pool, buckets, clock, now: () => databaseClock.now(), log });

  const changed = (owner: string) => notifications?.changeCounters.changed(owner);
  const notify = (state: AlarmState | undefined) => {
    const dueAt = state && earliestDue(state);
    if (dueAt !== undefined) notifications?.notifyDue(dueAt, buckets.of(state!.alarm.owner), databaseClock.now());
  };

  return {
    now: () => databaseClock.now(),

    async create(entry, limits) {
      const answer = await creates.create(entry, limits);
      if (answer.result === 'created') {
        changed(entry.alarm.owner);
        dueIndex.recordStored(answer.state);
        notify(answer.state);
      }
      return answer;
    },
    get: async (owner, alarmId) => (await readOne(pool, buckets, owner, alarmId))?.state,
    findByKey: (owner, key) => findByKey(pool, buckets, owner, key),
    list: (owner, filter) => list(pool, buckets.of(owner), owner, filter),
    search: (owner, request) => search(pool, buckets.of(owner), owner, request),
    follow: async (follower) => changes.follow(follower),
    changesSince: (owner, since) => changes.since(owner, since),
    mark: async (owner) => notifications?.changeCounters.of(owner),
    upcoming: (owner, request) => upcoming(pool, buckets.of(owner), owner, request),
    async update(owner, alarmId, transition, limits) {
      const state = await update(owner, alarmId, transition, limits);
      dueIndex.invalidate(buckets.of(owner));
      changed(owner);
      notify(state);
      return state;
    },
    attempts: (owner, alarmId, page) => pageOfAttempts(pool, buckets.of(owner), owner, alarmId, page),
    pruneAttempts: inTurn(buckets, (bucket, request) => pruneAttempts(pool, bucket, request)),
    pruneAlarms: inTurn(buckets, (bucket, { before, limit }) => deleteEnded(pool, bucket, before, limit)),
    async deleteCancelled(owner, limit) {
      const deleted = await deleteCancelled(pool, buckets.of(owner), owner, limit);
      changed(owner);
      return deleted;
    },
    usage: () => usage(pool),
    async recordTurnReports(report) {
      const recorded = await recordTurnReports(pool, buckets, report);
      changed(report.owner);
      return recorded;
    },
    hasFire: (fire) => hasFire(pool, buckets.of(fire.owner), fire),
    turnReportsOf: (owner, alarmId, fireIds) => turnReportsOf(pool, buckets.of(owner), owner, alarmId, fireIds),
    pruneTurnReports: inTurn(buckets, (bucket, request) => pruneTurnReports(pool, bucket, request)),

    // Any lease may belong to another, running replica.
    endOrphanedLeases: async () => 0,
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
      membership?.recordClaim();
      return dueIndex.nextDueAt(saturated, databaseClock.now(), sweeps.leaseEnds);
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
      changes.close();
      await creates.drain();
      membership?.stop();
      await Promise.all([notifications?.stop(), databaseClock.stop()]);
      await pool.close();
    },
  };
}
