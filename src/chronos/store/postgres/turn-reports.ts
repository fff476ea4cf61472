/** Turn reports of fires. */
import type { TurnStage } from '../../../wire/turn-report.ts';
import { ATTEMPTS_READ, type StoredTurnReport } from '../../alarm/fire-history.ts';
import type { FireTurnReports, RecordedTurnReports } from '../store.ts';
import type { Buckets } from './buckets.ts';
import type { Executor, PrimaryPool } from './pool.ts';
import { TURN_REPORT } from './rows.ts';
import { isStorable } from './state.ts';
import { type Call, statement } from './statement.ts';

/**
 * An attempted fire of bucket $1, owner $2 and alarm $3. One statement is one snapshot, so a fire that is being settled
 * is pending, the last attempt, or in the ledger.
 */
const FIRE = `
    SELECT 1 FROM progress WHERE bucket = $1 AND owner = $2 AND alarm_id = $3
      AND ((scheduled_for = $4 AND attempt >= 1) OR (last_scheduled_for = $4 AND last_started_at >= $5))
    UNION ALL
    SELECT 1 FROM (
      SELECT scheduled_for FROM ledger WHERE bucket = $1 AND owner = $2 AND alarm_id = $3 AND started_at >= $5
      ORDER BY started_at, scheduled_for, attempt LIMIT ${ATTEMPTS_READ}
    ) AS tried WHERE scheduled_for = $4`;

/** The instant that a fire of the alarm stands for; `undefined` for any other name. */
function instantOf(alarmId: string, fireId: string): number | undefined {
  const prefix = `${alarmId}@`;
  const instant = fireId.slice(prefix.length);
  return fireId.startsWith(prefix) && /^\d{1,15}$/.test(instant) ? Number(instant) : undefined;
}

/** The options of alarm $3. */
const OPTIONS = '(SELECT options FROM definitions WHERE bucket = $1 AND owner = $2 AND id = $3)';

/** The columns say whether the fire exists, and the options of its alarm. */
const HAS_FIRE = statement('has_fire', `SELECT EXISTS (${FIRE}), ${OPTIONS}`);

/** The end of a statement that stores reports; it returns only new stages. */
export const NEW_STAGES = `
    ON CONFLICT (bucket, owner, alarm_id, fire_id, stage) DO UPDATE SET at = excluded.at, error = excluded.error,
      turn_id = excluded.turn_id, conversation_id = excluded.conversation_id, retry_at = excluded.retry_at,
      recorded_at = excluded.recorded_at
    WHERE excluded.stage = 'turn_waits' AND excluded.at > fire_receipts.at`;

/** The columns say whether the fire exists, which stages were new, and the options of its alarm. */
const RECORD = statement(
  'record_receipts',
  `
  WITH fire AS (${FIRE}
  ), recorded AS (
    INSERT INTO fire_receipts (bucket, ${TURN_REPORT.list()})
    SELECT $1, ${TURN_REPORT.list('given')} FROM unnest(${TURN_REPORT.arrays(6)}) AS given (${TURN_REPORT.list()})
    WHERE EXISTS (SELECT 1 FROM fire)
    ${NEW_STAGES}
    RETURNING stage
  )
  SELECT EXISTS (SELECT 1 FROM fire), (SELECT json_agg(stage) FROM recorded), ${OPTIONS}`,
);

const OF_FIRES = statement(
  'receipts_of_fires',
  `SELECT ${TURN_REPORT.list()} FROM fire_receipts WHERE bucket = $1 AND owner = $2 AND alarm_id = $3
     AND fire_id = ANY($4::text[])`,
);

/** Skips rows that another replica is deleting at this moment. */
const PRUNE = statement(
  'prune_receipts',
  `
  WITH old AS (
    SELECT owner, alarm_id, fire_id, stage FROM fire_receipts
    WHERE bucket = $1 AND recorded_at < $2 ORDER BY recorded_at LIMIT $3
    FOR UPDATE SKIP LOCKED
  ), pruned AS (
    DELETE FROM fire_receipts AS r USING old
    WHERE r.bucket = $1 AND r.owner = old.owner AND r.alarm_id = old.alarm_id AND r.fire_id = old.fire_id AND r.stage = old.stage
    RETURNING 1
  )
  SELECT count(*) FROM pruned`,
);

/** The options of the alarm of a fire; `undefined` when the fire does not exist. */
async function findFire(
  executor: Executor,
  bucket: number,
  { owner, alarmId, fireId, dueAt }: Pick<FireTurnReports, 'owner' | 'alarmId' | 'fireId' | 'dueAt'>,
): Promise<Pick<RecordedTurnReports, 'options'> | undefined> {
  const instant = instantOf(alarmId, fireId);
  if (instant === undefined || !isStorable(owner, alarmId)) return undefined;
  const [row] = await executor.query(HAS_FIRE, [bucket, owner, alarmId, instant, dueAt]);
  const [exists, options] = row as [boolean, string | null];
  return exists ? { options } : undefined;
}

/** Whether the fire exists. */
export async function hasFire(...given: Parameters<typeof findFire>): Promise<boolean> {
  return (await findFire(...given)) !== undefined;
}

/** Stores new reports; `undefined` when the fire does not exist. */
export async function recordTurnReports(
  pool: PrimaryPool,
  buckets: Buckets,
  report: FireTurnReports,
): Promise<RecordedTurnReports | undefined> {
  const { owner, alarmId, fireId, dueAt, reports, recordedAt } = report;
  const instant = instantOf(alarmId, fireId);
  if (instant === undefined || !isStorable(owner, alarmId)) return undefined;
  const bucket = buckets.of(owner);
  const rows: StoredTurnReport[] = reports.map((each) => ({ owner, alarmId, fireId, ...each, recordedAt }));
  const one = buckets.distributed?.recordTurnReport;
  if (one) {
    const found = await findFire(pool, bucket, report);
    if (!found) return undefined;
    const calls = rows.map((row): Call => ({ statement: one, values: [bucket, ...TURN_REPORT.bindOne(row)] }));
    const stages = calls.length === 0 ? [] : (await pool.together(calls)).flat();
    return { fresh: new Set(stages.map(([stage]) => stage as TurnStage)), ...found };
  }
  const [row] = await pool.query(RECORD, [bucket, owner, alarmId, instant, dueAt, ...TURN_REPORT.bind(rows)]);
  const [known, fresh, options] = row as [boolean, TurnStage[] | null, string | null];
  return known ? { fresh: new Set(fresh ?? []), options } : undefined;
}

export async function turnReportsOf(
  executor: Executor,
  bucket: number,
  owner: string,
  alarmId: string,
  fireIds: readonly string[],
): Promise<StoredTurnReport[]> {
  if (fireIds.length === 0 || !isStorable(owner, alarmId, ...fireIds)) return [];
  return (await executor.query(OF_FIRES, [bucket, owner, alarmId, fireIds])).map((row) => TURN_REPORT.read(row));
}

/** Deletes reports that were recorded before an instant, the oldest first; returns their number. */
export async function pruneTurnReports(
  executor: Executor,
  bucket: number,
  { before, limit }: { before: number; limit: number },
): Promise<number> {
  return (await executor.query(PRUNE, [bucket, before, limit]))[0]![0] as number;
}
