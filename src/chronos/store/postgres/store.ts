/** The alarm store on PostgreSQL, for any number of replicas at once. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { Calendars } from '../../alarm/holidays.ts';
import { firstBuckets, isSameLayout, readBuckets } from '../sharding/buckets.ts';
import { orderOfSeveral } from '../sharding/claim-order.ts';
import { type AlarmStore, type Claim, NONE_OPEN } from '../store.ts';
import { parseAddress } from './address.ts';
import { prepareAgentKeys, putNonce, takeNonce } from './agent-keys.ts';
import { pageOfAttempts, pruneAttempts } from './attempts.ts';
import { type Buckets, ONE_BUCKET, type Preference } from './buckets.ts';
import { prepareCalendarFeeds } from './calendar-feeds.ts';
import { ChangePoll } from './change-poll.ts';
import { prepareClaim } from './claim.ts';
import type { ClaimedRow } from './claim-query.ts';
import { prepareComplete } from './complete.ts';
import { prepareCreate } from './create.ts';
import { DatabaseClock } from './database-clock.ts';
import { deleteCancelled, deleteEnded } from './delete-ended.ts';
import { DueIndex, earliestDue, orderOfOne, prepareNextDue } from './due-index.ts';
import { dropEvents, eventsOf, prepareRecordEvents, pruneEvents } from './events.ts';
import { migrate } from './migrate.ts';
import { moveAlarms } from './move-alarms.ts';
import { OrphanedClaims } from './orphaned-claims.ts';
import { countOpenOf, usage } from './owners.ts';
import { PrimaryPool } from './pool.ts';
import { ReplicaNotifications } from './replica-notifications.ts';
import { Replica } from './replicas.ts';
import { countDue, findByKey, hasConversation, isStorable, list, readOne, search, upcoming } from './state.ts';
import { statement } from './statement.ts';
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
  /** The calendars for the `holidays` of series; by default, none. */
  calendars?: Calendars;
  /** Maximum number of connections, besides one for notifications and one of the replica; default 10. */
  poolSize?: number;
  /** Called when another replica reports a due instant. Without it, this replica does not listen. */
  onRemoteDue?: (dueAt: number) => void;
  /** The number of buckets if the tables are created or recreated now; default 1. See `sharding/buckets.ts`. */
  buckets?: number;
  /** Called when `reshard` has changed the number of buckets: this store is unusable, and a new one must be opened. */
  onOutdated?: () => void;
  /** The process as a replica, which the caller stops; default: one that ends with the store. */
  replica?: Replica;
  /** Default: `all`. */
  prefers?: Preference;
  /** Whether replicas notify each other (LISTEN and NOTIFY); default: true. */
  notifications?: boolean;
};

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
  const { uri, clock, log, calendars, poolSize = DEFAULT_POOL_SIZE, onRemoteDue } = options;
  let buckets: Buckets;
  const pool = new PrimaryPool(parseAddress(uri), { size: poolSize, clock, log });
  const databaseClock = new DatabaseClock(pool, clock, log);
  try {
    await pool.connect();
    const migration = options.buckets === undefined ? {} : { firstBuckets: firstBuckets(options.buckets) };
    await migrate(pool.primary, pool.clientConfig(pool.primary), log, migration);
    buckets = await readBuckets(pool);
    pool.inspect = async (connection) => {
      if (isSameLayout(await readBuckets(connection), buckets)) return;
      options.onOutdated?.();
      throw new ReveilleError('unavailable', 'the number of buckets has changed; try again');
    };
    await refuseIncompleteTransfer(pool, pool.primary.name);
    await databaseClock.start();
  } catch (thrown) {
    await pool.close();
    throw thrown;
  }
  const dueIndex = new DueIndex(buckets, clock);
  const { prefers: preference = 'all' } = options;
  const order =
    buckets === ONE_BUCKET ? orderOfOne(dueIndex) : orderOfSeveral({ buckets, dueIndex, preference, clock, log });
  const nextDue = prepareNextDue({ pool, buckets, dueIndex, order });
  const onNotifiedDue =
    onRemoteDue &&
    ((dueAt: number, bucket: number) => {
      dueIndex.noteDue(bucket, dueAt);
      onRemoteDue(dueAt + order.waitMs(bucket));
    });
  const notifications =
    options.notifications === false ? undefined : new ReplicaNotifications(pool, clock, log, onNotifiedDue);
  if (notifications) order.join(notifications);
  notifications?.listen();
  pool.onPrimary = () => {
    databaseClock.remeasure();
    notifications?.reconnect();
  };

  const creates = prepareCreate(pool, buckets);
  const now = () => databaseClock.now();
  const update = prepareUpdate(pool, buckets, clock, now);
  const claimed = new WeakMap<Claim, ClaimedRow>();
  const replica = options.replica ?? new Replica({ uri, clock, log });
  const settling = { pool, buckets, clock, now };
  const onDue = () => onRemoteDue?.(now());
  const orphans = new OrphanedClaims({ ...settling, dueIndex, replica, log, calendars, onDue });
  const searchOrphans = () => orphans.search();
  replica.onProof = searchOrphans;
  const claim = prepareClaim({
    pool,
    buckets,
    dueIndex,
    claimed,
    order,
    log,
    onFailure: () => orphans.suspect(),
  });
  const noteDue = (owner: string, dueAt: number) => dueIndex.noteDue(buckets.of(owner), dueAt, owner);
  const complete = prepareComplete({ ...settling, claimed, noteDue });
  const recordEvents = prepareRecordEvents(settling);
  const keys = prepareAgentKeys(pool, buckets);
  const feeds = prepareCalendarFeeds(pool, buckets);
  const changes = new ChangePoll({ pool, buckets, clock, now, log });

  const notify = (state: AlarmState | undefined) => {
    const dueAt = state && earliestDue(state);
    if (dueAt !== undefined) notifications?.notifyDue(dueAt, buckets.of(state!.alarm.owner), databaseClock.now());
  };

  return {
    now: () => databaseClock.now(),

    async create(entry, limits) {
      const answer = await creates.create(entry, limits);
      if (answer.result === 'created') {
        dueIndex.recordStored(answer.state);
        notify(answer.state);
      }
      return answer;
    },
    get: async (owner, alarmId) => (await readOne(pool, buckets, owner, alarmId))?.state,
    findByKey: (owner, key) => findByKey(pool, buckets, owner, key),
    list: (owner, filter) => list(pool, buckets.of(owner), owner, filter),
    hasConversation: (owner, madeBy, conversationId) =>
      hasConversation(pool, buckets.of(owner), owner, { madeBy, conversationId }),
    search: (owner, request) => search(pool, buckets.of(owner), owner, request),
    follow: async (follower) => changes.follow(follower),
    changesSince: (owner, since) => changes.since(owner, since),
    upcoming: (owner, request) => upcoming(pool, buckets.of(owner), owner, request),
    async update(owner, alarmId, transition, limits) {
      const state = await update(owner, alarmId, transition, limits);
      dueIndex.invalidate(buckets.of(owner));
      notify(state);
      return state;
    },
    attempts: (owner, alarmId, page) => pageOfAttempts(pool, buckets.of(owner), owner, alarmId, page),
    pruneAttempts: buckets.inTurn((bucket, request) => pruneAttempts(pool, bucket, request)),
    pruneAlarms: buckets.inTurn((bucket, { before, limit }) => deleteEnded(pool, bucket, before, limit)),
    deleteCancelled: (owner, limit) => deleteCancelled(pool, buckets.of(owner), owner, limit),
    usage: () => usage(pool),
    recordTurnReports: (report) => recordTurnReports(pool, buckets, report),
    hasFire: (fire) => hasFire(pool, buckets.of(fire.owner), fire),
    turnReportsOf: (owner, alarmId, fireIds) => turnReportsOf(pool, buckets.of(owner), owner, alarmId, fireIds),
    pruneTurnReports: buckets.inTurn((bucket, request) => pruneTurnReports(pool, bucket, request)),

    async recordEvents(arrival) {
      const recorded = await recordEvents(arrival);
      if (!recorded?.fresh) return recorded;
      dueIndex.invalidate(buckets.of(arrival.owner));
      notify(recorded.state);
      return recorded;
    },
    eventsOf: (owner, alarmId, range) => eventsOf(pool, buckets.of(owner), { owner, alarmId, ...range }),
    dropEvents: (owner, alarmId, upTo) => dropEvents(pool, buckets.of(owner), { owner, alarmId, upTo }),
    pruneEvents: buckets.inTurn((bucket, request) => pruneEvents(pool, bucket, request)),

    async endOrphanedClaims(at) {
      await replica.begin();
      return orphans.endAll(at);
    },
    async claim(request) {
      const standing = await replica.standing();
      return orphans.during(async () => {
        const claims = await claim({ ...request, standing });
        return claims.length === 0 || (await replica.confirms(standing.holder)) ? claims : [];
      });
    },
    async complete(completions) {
      const results = await complete(completions);
      for (const { key } of completions) replica.ended(key);
      return results;
    },
    async nextDueAt(saturated) {
      order.recordClaim();
      return nextDue(saturated, now());
    },
    countDue: (request) => countDue(pool, buckets, request),

    putNonce: (nonce, did, expiresAt, now) => putNonce(pool, buckets, nonce, did, expiresAt, now),
    takeNonce: (nonce, did, now) => takeNonce(pool, buckets, nonce, did, now),

    keysOf: keys.of,
    pinFirstKey: keys.pinFirst,
    enrollKey: keys.enrol,
    revokeKeys: keys.revoke,
    rotateKey: keys.rotate,
    feedsOf: feeds.of,
    addFeed: feeds.add,
    removeFeed: feeds.remove,
    countOpen: async (owner) => (isStorable(owner) ? countOpenOf(pool, buckets.of(owner), owner) : NONE_OPEN),
    async moveAlarms(move) {
      const answer = await moveAlarms(pool, buckets, move);
      for (const owner of [move.from, move.to]) dueIndex.invalidate(buckets.of(owner));
      return answer;
    },
    listKeys: ({ limit, after }) => keys.page(limit, after),

    async ping() {
      await pool.query(PING, []);
    },
    async close() {
      changes.close();
      if (replica.onProof === searchOrphans) replica.onProof = undefined;
      await creates.drain();
      order.leave();
      await Promise.all([
        notifications?.stop(),
        databaseClock.stop(),
        orphans.settled(),
        options.replica ? undefined : replica.stop(),
      ]);
      await pool.close();
    },
  };
}
