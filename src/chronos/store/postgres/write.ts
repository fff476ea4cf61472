/**
 * Writing a batch of changes, all or nothing: nothing when somebody else changed one of the alarms since it was read.
 *
 * No row is locked between reading and writing. So an alarm is read, changed and written in two round trips, and a process that
 * stops in between holds nobody up.
 */
import type { Alarm } from '../../alarm/alarm.ts';
import { type Change, type Plan, planOf } from './change.ts';
import { ADD_OPEN } from './owners.ts';
import type { Executor, PrimaryPool } from './pool.ts';
import { ALARM, ATTEMPT, CHANGEABLE, OCCURRENCE, PROGRESS } from './rows.ts';
import { type Statement, statement } from './statement.ts';

const KEY = ['owner', 'alarmId', 'fireId'] as const;
const MOVED = OCCURRENCE.members.filter((member) => member !== 'owner' && member !== 'alarmId');

/** A kind of change to `occurrences`: its SQL, with parameters from number `first` on and a condition to take along. */
type Part = {
  sql: (first: number, gate: string) => string;
  values: (plan: Plan) => unknown[];
};

const DELETE: Part = {
  sql: (first, gate) => `
    DELETE FROM occurrences AS o
    USING unnest(${OCCURRENCE.arrays(first, KEY)}) AS d (owner, alarm_id, fire_id)
    WHERE o.owner = d.owner AND o.alarm_id = d.alarm_id AND o.fire_id = d.fire_id ${gate}`,
  values: ({ deletes }) => OCCURRENCE.bind(deletes, KEY),
};

const MOVE: Part = {
  sql: (first, gate) => `
    UPDATE occurrences AS o SET alarm_revision = m.alarm_revision, ${OCCURRENCE.assignments('m', MOVED)}
    FROM unnest(${OCCURRENCE.arrays(first, KEY)}, $${first + 3}::bigint[], ${OCCURRENCE.arrays(first + 4, MOVED)})
      AS m (owner, alarm_id, was, alarm_revision, ${OCCURRENCE.list(undefined, MOVED)})
    WHERE o.owner = m.owner AND o.alarm_id = m.alarm_id AND o.fire_id = m.was ${gate}`,
  values({ moves }) {
    const from = moves.map((move) => move.from);
    const to = moves.map((move) => move.to);
    const revisions = moves.map((move) => move.revision);
    return [...OCCURRENCE.bind(from, KEY), revisions, ...OCCURRENCE.bind(to, MOVED)];
  },
};

const INSERT: Part = {
  sql: (first) => `
    INSERT INTO occurrences (alarm_revision, ${OCCURRENCE.list()})
    SELECT * FROM unnest($${first}::bigint[], ${OCCURRENCE.arrays(first + 1)})`,
  values: ({ inserts }) => [
    inserts.map(({ revision }) => revision),
    ...OCCURRENCE.bind(inserts.map(({ occurrence }) => occurrence)),
  ],
};

const ALONE = {
  move: statement('move_occurrences', MOVE.sql(1, '')),
  insert: statement('insert_occurrences', INSERT.sql(1, '')),
};

type Writer = { statement: Statement; values: (plan: Plan) => unknown[] };

/**
 * The statement that writes alarms, ledger, and one kind of change to what is owed; it gives back how many alarms it wrote.
 *
 * First the alarms' rows are locked where the revision still stands, then the rows of what they owe where fence and lease still
 * stand, in one order everywhere, so that no two batches wait for each other in a circle. A row that had to be waited for is
 * compared as it is by then. Only when none is missing is anything written. (One statement may change a table only once on
 * some distributed engines: hence a variant each for deletes and for moves.)
 *
 * @param members of the alarm that are written
 */
function writer(name: string, members: readonly (keyof Alarm)[], part: Part): Writer {
  const gate = 'AND (SELECT yes FROM sound)';
  const expected = 6 + members.length;
  const ledger = expected + 5;
  const owed = ledger + ATTEMPT.members.length;
  return {
    statement: statement(
      name,
      `
      WITH wanted AS (
        SELECT * FROM unnest($3::text[], $4::text[], $5::bigint[], ${ALARM.arrays(6, members)})
          AS w (owner, id, revision, ${ALARM.list(undefined, members)})
      ), alarm_lock AS (
        SELECT a.id FROM wanted AS w
        JOIN alarms AS a ON a.owner = w.owner AND a.id = w.id AND a.revision = w.revision
        ORDER BY a.owner, a.id
        FOR NO KEY UPDATE OF a
      ), occurrence_lock AS (
        SELECT o.fire_id
        FROM unnest(${OCCURRENCE.arrays(expected, KEY)}, $${expected + 3}::bigint[], $${expected + 4}::bigint[])
          AS e (owner, alarm_id, fire_id, fence, lease_until)
        JOIN occurrences AS o ON o.owner = e.owner AND o.alarm_id = e.alarm_id AND o.fire_id = e.fire_id
          AND o.fence = e.fence AND o.lease_until IS NOT DISTINCT FROM e.lease_until
        WHERE (SELECT count(*) FROM alarm_lock) = $1::bigint
        ORDER BY o.owner, o.alarm_id, o.fire_id
        FOR UPDATE OF o
      ), sound AS (
        SELECT (SELECT count(*) FROM alarm_lock) = $1::bigint AND (SELECT count(*) FROM occurrence_lock) = $2::bigint AS yes
      ), written AS (
        UPDATE alarms AS a SET revision = a.revision + 1, ${ALARM.assignments('w', members)}
        FROM wanted AS w WHERE a.owner = w.owner AND a.id = w.id ${gate}
        RETURNING 1
      ), owed AS (${part.sql(owed, gate)}
      ), recorded AS (
        INSERT INTO fire_attempts (${ATTEMPT.list()})
        SELECT ${ATTEMPT.list('t')} FROM unnest(${ATTEMPT.arrays(ledger)}) AS t (${ATTEMPT.list()})
        WHERE (SELECT yes FROM sound)
      )
      SELECT count(*) FROM written`,
    ),
    values(plan) {
      const alarms = plan.alarms.map(({ alarm }) => alarm);
      return [
        alarms.length,
        plan.expected.length,
        ...ALARM.bind(alarms, ['owner', 'id']),
        plan.alarms.map(({ revision }) => revision),
        ...ALARM.bind(alarms, members),
        ...OCCURRENCE.bind(plan.expected, [...KEY, 'fence', 'leaseUntil']),
        ...ATTEMPT.bind(plan.ledger),
        ...part.values(plan),
      ];
    },
  };
}

const WRITERS = {
  progress: { delete: writer('progress_delete', PROGRESS, DELETE), move: writer('progress_move', PROGRESS, MOVE) },
  all: { delete: writer('edit_delete', CHANGEABLE, DELETE), move: writer('edit_move', CHANGEABLE, MOVE) },
};

/**
 * Writes a batch.
 *
 * @param locked a transaction that has locked the alarms already; without it a transaction of its own is used where one
 *   statement does not do
 * @returns whether it was written; otherwise everything is to be read again
 */
export async function writeChanges(pool: PrimaryPool, changes: readonly Change[]): Promise<boolean> {
  const plan = planOf(changes);
  const writers = plan.edits ? WRITERS.all : WRITERS.progress;
  const { statement: first, values } = plan.deletes.length > 0 ? writers.delete : writers.move;
  const write = async (executor: Executor) => (await executor.query(first, values(plan)))[0]![0] !== 0;

  const movesLeft = plan.deletes.length > 0 && plan.moves.length > 0;
  if (!movesLeft && plan.inserts.length === 0 && plan.opened.size === 0) return write(pool);
  return pool.transaction(async (transaction) => {
    if (!(await write(transaction))) return false;
    if (movesLeft) await transaction.query(ALONE.move, MOVE.values(plan));
    if (plan.inserts.length > 0) await transaction.query(ALONE.insert, INSERT.values(plan));
    if (plan.opened.size > 0) await transaction.query(ADD_OPEN, [[...plan.opened.keys()], [...plan.opened.values()]]);
    return true;
  });
}
