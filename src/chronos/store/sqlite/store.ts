/** The alarm store on SQLite: one file, owned by one process. */
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { Checkpoints } from '../../../kit/sqlite/checkpoints.ts';
import { GroupCommit, Undo } from '../../../kit/sqlite/group-commit.ts';
import { openDatabase } from '../../../kit/sqlite/open.ts';
import { storageError } from '../../../kit/sqlite/sqlite-error.ts';
import { isLook } from '../../alarm/events.ts';
import type { Calendars } from '../../alarm/holidays.ts';
import type { AlarmStore } from '../store.ts';
import { reportChange } from '../stored-change.ts';
import { prepareAgentKeys, prepareNonces } from './agent-keys.ts';
import { prepareComplete, prepareCreate, prepareFindByKey, prepareUpdateAlarm } from './alarm-changes.ts';
import { prepareCalendarFeeds } from './calendar-feeds.ts';
import { Changes, prepareChangesSince } from './changes.ts';
import { prepareClaim, prepareCountDue, prepareEndOrphanedClaims, prepareNextDue } from './claim.ts';
import { prepareDeleteEnded } from './delete-ended.ts';
import { prepareEvents } from './events.ts';
import { prepareFind } from './find.ts';
import { prepareList } from './list.ts';
import { prepareMoveAlarms } from './move-alarms.ts';
import { prepareTables } from './tables.ts';
import { refuseTransferred } from './transfer-state.ts';
import { prepareTurnReports } from './turn-reports.ts';

/** The schema of the file. */
export const MIGRATIONS = new URL('./migrations/', import.meta.url);

/** Memory for pages that fires and creates change repeatedly. Others come from the system's cache. */
const CACHE_KIB = 8 * 1024;

/**
 * A fire changes a few rows in as many pages. With pages of half the default size it writes less, in log and file
 * together.
 */
const PAGE_BYTES = 2048;

/** Deliveries of this time leave the list of active alarms together. */
const TIDY_AFTER_MS = 1000;

/**
 * Opens the store; creates the file and its folder when they are missing.
 *
 * Simultaneous writes share one transaction and one sync to disk. Transitions run inside it, synchronously, without
 * other database access in between. Reads see every acknowledged write.
 *
 * @param options.path the database file
 * @throws ReveilleError as `openDatabase`: `unavailable` when another process owns the file or it is damaged,
 *   `conflict` when it belongs to a newer version.
 *   Also `conflict` when its alarms have moved to PostgreSQL, or are being moved.
 */
export function openSqliteStore(options: {
  path: string;
  clock: Clock;
  log: Logger;
  /** The calendars for the `holidays` of series; by default, none. */
  calendars?: Calendars;
}): AlarmStore {
  const file = openDatabase({ ...options, migrations: MIGRATIONS, lock: 'exclusive', pageBytes: PAGE_BYTES });
  const { db } = file;
  try {
    refuseTransferred(db, file.path);
  } catch (thrown) {
    file.close();
    throw thrown;
  }
  db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
  const checkpoints = new Checkpoints(db, file.path, options.log);
  const undo = new Undo();
  const changes = new Changes(undo, options.clock);
  const onCommit = () => {
    checkpoints.committed();
    changes.committed();
  };
  const commits = new GroupCommit(db, { onCommit, undo });

  const tables = prepareTables(db, undo, changes, options.clock);
  const findByKey = prepareFindByKey(db, tables);
  const create = prepareCreate(tables, findByKey);
  const list = prepareList(db, tables);
  const find = prepareFind(db, tables);
  const update = prepareUpdateAlarm(tables);
  const endOrphanedClaims = prepareEndOrphanedClaims(tables, options);
  const claim = prepareClaim(tables);
  const complete = prepareComplete(tables);
  const nextDue = prepareNextDue(tables);
  const countDue = prepareCountDue(db);
  const nonces = prepareNonces(db);
  const keys = prepareAgentKeys(db);
  const feeds = prepareCalendarFeeds(db);
  const turnReports = prepareTurnReports(db);
  const events = prepareEvents(db, tables);
  const deleteEnded = prepareDeleteEnded(db, tables);
  const changesSince = prepareChangesSince(db);
  const moveAlarms = prepareMoveAlarms(db, tables, changes);

  let cancelTidying: CancelTimer | undefined;
  /** Soon removes what deliveries have ended from the list of active alarms, in steps between other writes. */
  function tidyLater(pauseMs = TIDY_AFTER_MS): void {
    if (!tables.alarms.hasEnded()) return;
    cancelTidying ??= options.clock.after(pauseMs, () => {
      cancelTidying = undefined;
      // A file that refuses the write now, such as on a full disk, is tidied after a later delivery.
      commits
        .run(() => tables.alarms.removeEnded())
        .then(
          () => tidyLater(0),
          () => {},
        );
    });
  }

  async function read<T>(query: () => T): Promise<T> {
    try {
      return query();
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  return {
    now: () => options.clock.now(),

    create: (entry, limits) =>
      commits.run(() => {
        const { owner, id: alarmId, createdAt: at } = entry.alarm;
        const answer = create(entry, limits);
        if (answer.result === 'created') changes.note({ kind: 'created', owner, alarmId, at });
        return answer;
      }),
    get: (owner, alarmId) => read(() => tables.find(owner, alarmId)?.state),
    findByKey: (owner, idempotencyKey) => read(() => findByKey(owner, idempotencyKey)),
    list: (owner, filter) => read(() => list(owner, filter)),
    hasConversation: (owner, madeBy, id) => read(() => find.hasConversation(owner, madeBy, id)),
    search: (owner, request) => read(() => find.search(owner, request)),
    upcoming: (owner, request) => read(() => find.upcoming(owner, request)),
    follow: async (follower) => changes.follow(follower),
    changesSince: (owner, since) => read(() => changesSince(owner, since)),
    update: (owner, alarmId, transition, limits) => commits.run(() => update(owner, alarmId, transition, limits)),
    attempts: (owner, alarmId, { limit, before }) => read(() => tables.ledger.page(owner, alarmId, limit, before)),
    pruneAttempts: ({ before, limit }) => commits.run(() => tables.ledger.prune(before, limit)),
    pruneAlarms: ({ before, limit }) => commits.run(() => deleteEnded.endedBefore(before, limit)),
    deleteCancelled: (owner, limit) => commits.run(() => deleteEnded.cancelledOf(owner, limit)),
    usage: () => read(() => tables.owners.usage()),
    recordTurnReports: (given) =>
      commits.run(() => {
        const { owner, alarmId, fireId, reports, recordedAt } = given;
        const recorded = turnReports.record(given);
        for (const report of reports)
          if (recorded?.fresh.has(report.stage))
            changes.note(reportChange({ owner, alarmId, fireId, ...report, recordedAt }));
        return recorded;
      }),
    hasFire: (fire) => read(() => turnReports.find(fire) !== undefined),
    turnReportsOf: (owner, alarmId, fireIds) => read(() => turnReports.of(owner, alarmId, fireIds)),
    pruneTurnReports: ({ before, limit }) => commits.run(() => turnReports.prune(before, limit)),

    recordEvents: (arrival) => commits.run(() => events.record(arrival)),
    eventsOf: (owner, alarmId, range) => read(() => events.of(owner, alarmId, range)),
    dropEvents: (owner, alarmId, upTo) => commits.run(() => events.drop(owner, alarmId, upTo)),
    pruneEvents: ({ before, limit }) => commits.run(() => events.prune(before, limit)),

    endOrphanedClaims: (now) => commits.run(() => endOrphanedClaims(now)),
    claim: (request) =>
      commits.run(() => {
        const claims = claim(request);
        for (const { alarm, occurrence } of claims) {
          if (isLook(alarm, occurrence)) continue;
          const { owner, alarmId, fireId, attempt, claimedAt } = occurrence;
          changes.note({ kind: 'claimed', owner, alarmId, at: claimedAt!, fireId, attempt });
        }
        return claims;
      }),
    async complete(completions) {
      const results = await commits.run(() => complete(completions));
      tidyLater();
      return results;
    },
    nextDueAt: (saturated) => read(() => nextDue(saturated)),
    countDue: (request) => read(() => countDue(request)),
    computerWakes: (after) => read(() => find.wakings(after)),

    putNonce: (nonce, did, expiresAt, now) => commits.run(() => nonces.put(nonce, did, expiresAt, now)),
    takeNonce: (nonce, did, now) => commits.run(() => nonces.take(nonce, did, now)),

    keysOf: (owner) => read(() => keys.of(owner)),
    pinFirstKey: (key, limits) => commits.run(() => keys.pinFirst(key, limits)),
    enrollKey: (key) => commits.run(() => keys.enrol(key)),
    revokeKeys: (owner, publicKey, now) => commits.run(() => keys.revoke(owner, publicKey, now)),
    rotateKey: (rotation) => commits.run(() => keys.rotate(rotation)),
    feedsOf: (owner) => read(() => feeds.of(owner)),
    addFeed: (feed, most) => commits.run(() => feeds.add(feed, most)),
    removeFeed: (owner, id) => commits.run(() => feeds.remove(owner, id)),
    countOpen: (owner) => read(() => tables.owners.open(owner)),
    moveAlarms: (move) => commits.run(() => moveAlarms(move)),
    listKeys: ({ limit, after }) => read(() => keys.page(limit, after)),

    // Writing a setting's current value again reaches the disk and changes nothing.
    ping: () => commits.run(() => db.exec('PRAGMA user_version = 0')),
    async close() {
      cancelTidying?.();
      cancelTidying = () => {};
      try {
        while (tables.alarms.hasEnded()) await commits.run(() => tables.alarms.removeEnded());
      } catch (error) {
        options.log.debug({ err: error }, 'ended alarms stay in the list of active ones until they are deleted');
      }
      await commits.drain();
      changes.close();
      await checkpoints.close();
      file.close();
    },
  };
}
