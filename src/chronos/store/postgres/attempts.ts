/** The attempts at occurrences. The last one of an alarm is in its row; the ledger has the replaced ones. */
import { partsOfFireId } from '../../../wire/fire-id.ts';
import type { AlarmState, Attempt } from '../../alarm/alarm.ts';
import { isLook } from '../../alarm/events.ts';
import { interruptedAttempt } from '../../alarm/settlement.ts';
import type { Executor } from './pool.ts';
import { LAST, RECORD, readAttempt } from './rows.ts';
import { isStorable } from './state.ts';
import { type Row, statement } from './statement.ts';

/** The start of a page of the ledger: the last row of the previous page. */
type AttemptCursor = { startedAt: number; fireId: string; attempt: number };

/**
 * The attempts at alarms: in the ledger, and the last one of each in its row. A condition holds for columns with
 * the names of both.
 *
 * @param end ORDER BY and LIMIT of each part
 */
export function attemptsWhere(condition: string, lastCondition: string, end: string, lastEnd = ''): string {
  return `(SELECT owner, alarm_id, ${RECORD.list()} FROM ledger WHERE bucket = $1 AND ${condition} ${end})
    UNION ALL
    (SELECT owner, alarm_id, ${LAST.list()} FROM progress
     WHERE bucket = $1 AND last_attempt IS NOT NULL AND ${lastCondition} ${lastEnd})`;
}

/** Reads a row of {@link attemptsWhere}. */
export const attemptOfRow = (row: Row): Attempt => readAttempt(row, 2, row[0] as string, row[1] as string);

const ORDER = 'ORDER BY started_at DESC, scheduled_for DESC, attempt DESC LIMIT $4';
const OF_ALARM = 'owner = $2 AND alarm_id = $3';
const ROW_OF_ALARM = `${OF_ALARM} AND trigger_at = 0`;

const LATEST = statement('attempts', `${attemptsWhere(OF_ALARM, ROW_OF_ALARM, ORDER)} ${ORDER}`);

const EARLIER = statement(
  'attempts_before',
  `${attemptsWhere(
    `${OF_ALARM} AND (started_at, scheduled_for, attempt) < ($5, $6, $7)`,
    `${ROW_OF_ALARM} AND (last_started_at, last_scheduled_for, last_attempt) < ($5, $6, $7)`,
    ORDER,
  )} ${ORDER}`,
);

/** Skips rows that another replica is deleting at this moment. */
const PRUNE = statement(
  'prune_attempts',
  `
  WITH old AS (
    SELECT owner, alarm_id, started_at, scheduled_for, attempt FROM ledger
    WHERE bucket = $1 AND finished_at < $2 ORDER BY finished_at LIMIT $3
    FOR UPDATE SKIP LOCKED
  ), pruned AS (
    DELETE FROM ledger AS f USING old
    WHERE f.bucket = $1 AND f.owner = old.owner AND f.alarm_id = old.alarm_id AND f.started_at = old.started_at
      AND f.scheduled_for = old.scheduled_for AND f.attempt = old.attempt
    RETURNING 1
  )
  SELECT count(*) FROM pruned`,
);

/** Running attempts whose occurrence a transition removes now: no replica will record them. */
export function abandonedAttempts(given: AlarmState, wanted: AlarmState, now: number): Attempt[] {
  const kept = new Set(wanted.occurrences.map(({ fireId }) => fireId));
  return given.occurrences
    .filter((one) => one.claimedAt !== null && !kept.has(one.fireId) && !isLook(given.alarm, one))
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
  const values: unknown[] = [bucket, owner, alarmId, limit];
  if (before) values.push(before.startedAt, partsOfFireId(before.fireId).dueEpochMs, before.attempt);
  return (await executor.query(before ? EARLIER : LATEST, values)).map(attemptOfRow);
}

/** Deletes attempts in a bucket's ledger that finished before an instant, the oldest first; returns their number. */
export async function pruneAttempts(
  executor: Executor,
  bucket: number,
  { before, limit }: { before: number; limit: number },
): Promise<number> {
  return (await executor.query(PRUNE, [bucket, before, limit]))[0]![0] as number;
}
