/** The alarm store on PostgreSQL, for any number of replicas at once. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { AlarmStore } from '../store.ts';
import { parseAddress } from './address.ts';
import { prepareAgentKeys, putNonce, takeNonce } from './agent-keys.ts';
import { refuseHalfArrived } from './arrival.ts';
import { pageOfAttempts, pruneAttempts } from './attempts.ts';
import { prepareUpdate } from './change.ts';
import { prepareClaim } from './claim.ts';
import { prepareComplete } from './complete.ts';
import { prepareCreate } from './create.ts';
import { DatabaseClock } from './database-clock.ts';
import { forgetCancelled, forgetEnded } from './forget.ts';
import { Hints } from './hints.ts';
import { migrate } from './migrate.ts';
import { usage } from './owners.ts';
import { PrimaryPool } from './pool.ts';
import { hasFire, pruneReceipts, receiptsOf, recordReceipts } from './receipts.ts';
import { renew } from './renew.ts';
import { ClaimedStates, countDue, findByKey, list, nextDue, readOne } from './state.ts';
import { statement } from './statement.ts';

const DEFAULT_POOL_SIZE = 10;

/** Writing a value that stands there already goes all the way to the disk, and the standbys', and changes nothing. */
const PING = statement('ping', 'UPDATE chronos_migrations SET name = name WHERE version = 1');

export type PostgresStoreOptions = {
  /**
   * `postgres://user:password@host:5432/database`; several hosts with commas between them, of which one takes writes.
   */
  uri: string;
  clock: Clock;
  log: Logger;
  /** Most connections at once, one for hints apart; 10 unless told. */
  poolSize?: number;
  /** Called when another replica says that something is due at this instant. Without it, nobody listens. */
  onHint?: (dueAt: number) => void;
  /** Whether replicas tell each other at all (LISTEN and NOTIFY); true unless told. */
  hints?: boolean;
};

/** The earliest instant at which something of the alarm is owed. */
function earliestDue({ occurrences }: AlarmState): number | undefined {
  const instants = occurrences.flatMap(({ dueAt, leaseUntil }) =>
    dueAt === null || leaseUntil !== null ? [] : [dueAt],
  );
  return instants.length === 0 ? undefined : Math.min(...instants);
}

/**
 * Opens the store and brings its schema up to date.
 *
 * @throws ReveilleError `unavailable`, retryable when no server of the address takes writes at present and it makes
 *   sense to try again, not retryable when an operator has to do something first (password, rights, encoding, settings
 *   that lose data); `conflict` when the database belongs to a newer version or to something else, or when a move into
 *   it is not finished; `invalid_request` when the address cannot be read
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<AlarmStore> {
  const { uri, clock, log, poolSize = DEFAULT_POOL_SIZE, onHint } = options;
  const pool = new PrimaryPool(parseAddress(uri), { size: poolSize, clock, log });
  const databaseClock = new DatabaseClock(pool, clock, log);
  try {
    await pool.connect();
    await migrate(pool.primary, pool.clientConfig(pool.primary), log);
    await refuseHalfArrived(pool, pool.primary.name);
    await databaseClock.start();
  } catch (thrown) {
    await pool.close();
    throw thrown;
  }
  const hints = options.hints === false ? undefined : new Hints(pool, clock, log, onHint);
  hints?.listen();
  pool.onPrimary = () => {
    databaseClock.remeasure();
    hints?.moveOn();
  };

  const creates = prepareCreate(pool);
  const update = prepareUpdate(pool, clock);
  const claimed = new ClaimedStates();
  const claim = prepareClaim(pool, claimed, clock, log);
  const complete = prepareComplete(pool, claimed, clock);
  const keys = prepareAgentKeys(pool);

  const tell = (state: AlarmState | undefined) => {
    const dueAt = state && earliestDue(state);
    if (dueAt !== undefined) hints?.tell(dueAt, databaseClock.now());
  };

  return {
    now: () => databaseClock.now(),

    async create(entry, limits) {
      const answer = await creates.create(entry, limits);
      if (answer.result === 'created') tell(answer.state);
      return answer;
    },
    get: async (owner, alarmId) => (await readOne(pool, owner, alarmId))?.state,
    findByKey: (owner, key) => findByKey(pool, owner, key),
    list: (owner, filter) => list(pool, owner, filter),
    async update(owner, alarmId, transition, limits) {
      const state = await update(owner, alarmId, transition, limits);
      tell(state);
      return state;
    },
    attempts: (owner, alarmId, page) => pageOfAttempts(pool, owner, alarmId, page),
    pruneAttempts: (request) => pruneAttempts(pool, request),
    pruneAlarms: ({ before, limit }) => forgetEnded(pool, before, limit),
    forgetCancelled: (owner, limit) => forgetCancelled(pool, owner, limit),
    usage: () => usage(pool),
    recordReceipts: (report) => recordReceipts(pool, report),
    hasFire: (fire) => hasFire(pool, fire),
    receiptsOf: (owner, alarmId, fireIds) => receiptsOf(pool, owner, alarmId, fireIds),
    pruneReceipts: (request) => pruneReceipts(pool, request),

    // Another replica may hold any of them, and be well.
    endLeasesOfTheDead: async () => 0,
    claim,
    renew: (leaseKeys, leaseUntil) => renew(pool, claimed, leaseKeys, leaseUntil),
    complete,
    nextDueAt: (saturated) => nextDue(pool, saturated),
    countDue: (request) => countDue(pool, request),

    putNonce: (nonce, did, expiresAt, now) => putNonce(pool, nonce, did, expiresAt, now),
    takeNonce: (nonce, did, now) => takeNonce(pool, nonce, did, now),

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
      await Promise.all([hints?.stop(), databaseClock.stop()]);
      await pool.close();
    },
  };
}
