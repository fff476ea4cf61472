/** Moves alarms to another owner with all their rows, which may be in another bucket. */
import { ReveilleError } from '../../../wire/errors.ts';
import { refusedMove } from '../limits.ts';
import { type AlarmMove, MOVE_STEP, type MoveAlarmsResult } from '../store.ts';
import type { Buckets } from './buckets.ts';
import { countOpenOf, lockOwner, storedOf } from './owners.ts';
import type { Executor, PrimaryPool } from './pool.ts';
import { STORED_BYTES } from './rows.ts';
import { isStorable } from './state.ts';
import { type Row, statement } from './statement.ts';

const NEXT = statement(
  'move_next',
  `
  SELECT alarm_id FROM progress WHERE bucket = $1 AND owner = $2 AND trigger_at = 0
  ORDER BY alarm_id LIMIT ${MOVE_STEP} FOR UPDATE`,
);

/** Claims pass over locked rows. Triggers are added only by a holder of the row of the alarm. */
const LOCK_TRIGGERS = statement(
  'move_lock',
  `
  SELECT 1 FROM progress WHERE bucket = $1 AND owner = $2 AND alarm_id = ANY ($3::text[]) AND trigger_at <> 0
  ORDER BY alarm_id, trigger_at FOR UPDATE`,
);

const IN_FLIGHT = statement(
  'move_in_flight',
  'SELECT count(*) FROM progress WHERE bucket = $1 AND owner = $2 AND claimed_at IS NOT NULL',
);

const HELD_KEYS = statement(
  'move_held_keys',
  'SELECT held_key FROM definitions WHERE bucket = $1 AND owner = $2 AND held_key IS NOT NULL',
);

const SHARED_KEYS = statement(
  'move_shared_keys',
  `
  SELECT count(*) FROM unnest($3::text[]) AS held (held_key)
  JOIN definitions AS d ON d.bucket = $1 AND d.owner = $2 AND d.held_key = held.held_key`,
);

const DEFINITIONS = statement(
  'move_definitions',
  `
  WITH moved AS (
    UPDATE definitions SET bucket = $4, owner = $5 WHERE bucket = $1 AND owner = $2 AND id = ANY ($3::text[])
    RETURNING ${STORED_BYTES} AS bytes
  )
  SELECT COALESCE(sum(bytes), 0)::bigint FROM moved`,
);

const PROGRESS = statement(
  'move_progress',
  `
  WITH moved AS (
    UPDATE progress SET bucket = $4, owner = $5, revision = revision + 1,
      updated_at = CASE WHEN status IN ('active', 'paused') THEN $6 ELSE updated_at END
    WHERE bucket = $1 AND owner = $2 AND alarm_id = ANY ($3::text[])
    RETURNING status
  )
  SELECT count(*) FROM moved WHERE status IN ('active', 'paused')`,
);

const of = (table: string) =>
  statement(
    `move_${table}`,
    `UPDATE ${table} SET bucket = $4, owner = $5 WHERE bucket = $1 AND owner = $2 AND alarm_id = ANY ($3::text[])`,
  );
const HISTORY = [of('ledger'), of('fire_receipts'), of('events')];

/** Readers of the target find edits by the counter. */
const ADD_TO_TOTALS = statement(
  'move_totals',
  `
  UPDATE owners SET open_at_most = GREATEST(open_at_most + $3::bigint, 0), edits = edits + 1,
    stored_alarms = GREATEST(stored_alarms + $4::bigint, 0), stored_bytes = GREATEST(stored_bytes + $5::bigint, 0)
  WHERE bucket = $1 AND owner = $2`,
);

async function moveStep(transaction: Executor, buckets: Buckets, { from, to, limits, now }: AlarmMove) {
  const [source, target] = [buckets.of(from), buckets.of(to)];
  // One order for all moves, so that two of them do not wait for each other.
  for (const owner of [from, to].sort()) await lockOwner(transaction, buckets.of(owner), owner);
  const ids = (await transaction.query(NEXT, [source, from])).map(([id]) => id as string);
  if (ids.length === 0) return { result: 'moved', moved: 0 } as const;
  const those = [source, from, ids];
  await transaction.query(LOCK_TRIGGERS, those);
  const count = async (answer: Promise<readonly Row[]>) => (await answer)[0]![0] as number;
  const totalsOf = async (bucket: number, owner: string) => ({
    open: (await countOpenOf(transaction, bucket, owner)).open,
    ...(await storedOf(transaction, bucket, owner)),
  });
  const held = (await transaction.query(HELD_KEYS, [source, from])).map(([key]) => key as string);
  const conflicts = {
    inFlight: await count(transaction.query(IN_FLIGHT, [source, from])),
    sharedKeys: await count(transaction.query(SHARED_KEYS, [target, to, held])),
    totals: [await totalsOf(source, from), await totalsOf(target, to)],
  };
  const refused = refusedMove(conflicts, limits);
  if (refused) return refused;
  const place = [...those, target, to];
  const bytes = await count(transaction.query(DEFINITIONS, place));
  const open = await count(transaction.query(PROGRESS, [...place, now]));
  for (const history of HISTORY) await transaction.query(history, place);
  await transaction.query(ADD_TO_TOTALS, [source, from, -open, -ids.length, -bytes]);
  await transaction.query(ADD_TO_TOTALS, [target, to, open, ids.length, bytes]);
  return { result: 'moved', moved: ids.length } as const;
}

export async function moveAlarms(pool: PrimaryPool, buckets: Buckets, move: AlarmMove): Promise<MoveAlarmsResult> {
  if (buckets.distributed)
    throw new ReveilleError(
      'invalid_request',
      'this database is distributed over servers, where alarms cannot move; enrol a new key for their label instead',
    );
  if (!isStorable(move.from, move.to)) return { result: 'moved', moved: 0 };
  return pool.transaction((transaction) => moveStep(transaction, buckets, move));
}
