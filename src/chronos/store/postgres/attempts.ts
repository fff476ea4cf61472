/** The ledger of attempts. */
import type { AlarmState, Attempt } from '../../alarm/alarm.ts';
import { interruptedAttempt } from '../../alarm/settlement.ts';
import type { Executor } from './pool.ts';
import { ATTEMPT } from './rows.ts';
import { isStorable } from './state.ts';
import { statement } from './statement.ts';

/** The start of a page of the ledger: the last row of the previous page. */
type AttemptCursor = { startedAt: number; fireId: string; attempt: number };

const ORDER = 'ORDER BY started_at DESC, fire_id DESC, attempt DESC LIMIT $4';

const LATEST = statement(
  'attempts',
  `SELECT ${ATTEMPT.list()} FROM fire_attempts WHERE bucket = $1 AND owner = $2 AND alarm_id = $3 ${ORDER}`,
);

const EARLIER = statement(
  'attempts_before',
  `SELECT ${ATTEMPT.list()} FROM fire_attempts
   WHERE bucket = $1 AND owner = $2 AND alarm_id = $3 AND (started_at, fire_id, attempt) < ($5, $6, $7) ${ORDER}`,
);

/** Skips rows that another replica is deleting at this moment. */
const PRUNE = statement(
  'prune_attempts',
  `
  WITH old AS (
    SELECT owner, alarm_id, started_at, fire_id, attempt FROM fire_attempts
    WHERE bucket = $1 AND finished_at < $2 ORDER BY finished_at LIMIT $3
    FOR UPDATE SKIP LOCKED
  ), pruned AS (
    DELETE FROM fire_attempts AS f USING old
    WHERE f.bucket = $1 AND f.owner = old.owner AND f.alarm_id = old.alarm_id AND f.started_at = old.started_at
      AND f.fire_id = old.fire_id AND f.attempt = old.attempt
    RETURNING 1
  )
  SELECT count(*) FROM pruned`,
);

/** Running attempts whose occurrence a transition removes now: no replica will record them. */
export function abandonedAttempts(given: AlarmState, wanted: AlarmState, now: number): Attempt[] {
  const kept = new Set(wanted.occurrences.map(({ fireId }) => fireId));
  return given.occurrences
    .filter(({ fireId, claimedAt }) => claimedAt !== null && !kept.has(fireId))
    .map((occurrence) => interruptedAttempt(occurrence, now));
}

/** One page of an alarm's ledger, latest first. */
export async function pageOfAttempts(
  executor: Executor,
  bucket: number,
  owner: string,
  alarmId: string,
  { limit, before }: { limit: number; before?: AttemptCursor },
): Promise<Attempt[]> {
  if (!isStorable(owner, alarmId)) return [];
  const rows = before
    ? await executor.query(EARLIER, [bucket, owner, alarmId, limit, before.startedAt, before.fireId, before.attempt])
    : await executor.query(LATEST, [bucket, owner, alarmId, limit]);
  return rows.map((row) => ATTEMPT.read(row));
}

/** Deletes attempts of a bucket that finished before an instant, the oldest first; returns their number. */
export async function pruneAttempts(
  executor: Executor,
  bucket: number,
  { before, limit }: { before: number; limit: number },
): Promise<number> {
  return (await executor.query(PRUNE, [bucket, before, limit]))[0]![0] as number;
}
