/**
 * Writes a batch of changes, all or nothing: nothing when one of the alarms has changed since it was read.
 *
 * No row is locked between reading and writing. So a change takes two round trips, and a process that stops in between
 * blocks no other.
 */
import { type Clock, wait } from '../../../kit/clock/clock.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { Alarm, AlarmState, Attempt, Transition } from '../../alarm/alarm.ts';
import { checkTransition, differenceOf } from '../difference.ts';
import { checkIncrease, increaseOf, needsTotals } from '../limits.ts';
import type { StoreLimits } from '../store.ts';
import { abandonedAttempts } from './attempts.ts';
import type { Buckets } from './buckets.ts';
import { type Change, type Plan, planOf, type Writer, type Writers } from './change.ts';
import { ADD_OPEN, countOpen, storedOf, waitingTriggers } from './owners.ts';
import type { PrimaryPool } from './pool.ts';
import { sqlState } from './postgres-error.ts';
import { ALARM, ATTEMPT, CHANGEABLE, OCCURRENCE, PROGRESS } from './rows.ts';
import { readOne } from './state.ts';
import { type Call, statement } from './statement.ts';

const KEY = ['owner', 'alarmId', 'fireId'] as const;
const CLAIMED = [...KEY, 'fence', 'claimedAt'] as const;
const MOVED = OCCURRENCE.members.filter((member) => member !== 'owner' && member !== 'alarmId');

/** Appears in the server's log when a batch is aborted, so it explains itself. */
const CONFLICT_TEXT = 'reveille: concurrent change, the batch is retried (';

/** The condition for a row of `occurrences`: no claim, and no end of one, since it was read. */
const UNTOUCHED = (was: string) => `
      o.bucket = $1 AND o.owner = ${was}.owner AND o.alarm_id = ${was}.alarm_id AND o.fire_id = ${was}.was
      AND o.fence = ${was}.was_fence AND o.claimed_at IS NOT DISTINCT FROM ${was}.was_claimed_at`;

/** A kind of change to `occurrences`: its SQL, with the bucket as first parameter and others from number `first` on. */
type Part = {
  sql: (first: number) => string;
  values: (plan: Plan) => unknown[];
  count: (plan: Plan) => number;
};

const DELETE: Part = {
  sql: (first) => `
    DELETE FROM occurrences AS o
    USING unnest(${OCCURRENCE.arrays(first, CLAIMED)}) AS d (owner, alarm_id, was, was_fence, was_claimed_at)
    WHERE ${UNTOUCHED('d')}
    RETURNING 1`,
  values: ({ deletes }) => OCCURRENCE.bind(deletes, CLAIMED),
  count: ({ deletes }) => deletes.length,
};

const MOVE: Part = {
  sql: (first) => `
    UPDATE occurrences AS o SET alarm_revision = m.alarm_revision, ${OCCURRENCE.assignments('m', MOVED)},
      holder = CASE WHEN m.claimed_at IS NOT NULL THEN o.holder END
    FROM unnest(${OCCURRENCE.arrays(first, CLAIMED)}, $${first + 5}::bigint[], ${OCCURRENCE.arrays(first + 6, MOVED)})
      AS m (owner, alarm_id, was, was_fence, was_claimed_at, alarm_revision, ${OCCURRENCE.list(undefined, MOVED)})
    WHERE ${UNTOUCHED('m')}
    RETURNING 1`,
  values({ moves }) {
    const from = moves.map((move) => move.from);
    const to = moves.map((move) => move.to);
    const revisions = moves.map((move) => move.revision);
    return [...OCCURRENCE.bind(from, CLAIMED), revisions, ...OCCURRENCE.bind(to, MOVED)];
  },
  count: ({ moves }) => moves.length,
};

const INSERT = {
  statement: statement(
    'insert_occurrences',
    `
    INSERT INTO occurrences (bucket, alarm_revision, ${OCCURRENCE.list()})
    SELECT $1, * FROM unnest($2::bigint[], ${OCCURRENCE.arrays(3)})`,
  ),
  values: ({ inserts }: Plan) => [
    inserts.map(({ revision }) => revision),
    ...OCCURRENCE.bind(inserts.map(({ occurrence }) => occurrence)),
  ],
};

/**
 * Makes the statement and its transaction fail unless the expected number of rows was written. The cast of this text to
 * a number always fails, and is not evaluated when the numbers match.
 */
function orFail(wanted: string, written: string): string {
  return `CASE WHEN ${wanted} = ${written} THEN 0 ELSE CAST('${CONFLICT_TEXT}' || ${written} || ')' AS BIGINT) END`;
}

/**
 * The statement that writes alarms, ledger, and one kind of change to pending occurrences. Each row is written only if
 * it is unchanged since it was read: the alarm by its revision, the occurrence by fence and claim. After a lock wait
 * the row's newest version is compared.
 *
 * Some distributed engines allow a statement to change a table only once: hence variants for deletes and moves.
 *
 * @param members the alarm's members to write
 * @param withLedger whether it also adds the attempts to the ledger
 */
function writer(name: string, members: readonly (keyof Alarm)[], part: Part, withLedger: boolean): Writer {
  const ledger = 6 + members.length;
  const owed = withLedger ? ledger + ATTEMPT.members.length : ledger;
  const recorded = `, recorded AS (
        INSERT INTO fire_attempts (bucket, ${ATTEMPT.list()}) SELECT $1, * FROM unnest(${ATTEMPT.arrays(ledger)})
      )`;
  return {
    statement: statement(
      name,
      `
      WITH written AS (
        UPDATE alarms AS a SET revision = a.revision + 1, ${ALARM.assignments('w', members)}
        FROM unnest($3::text[], $4::text[], $5::bigint[], ${ALARM.arrays(6, members)})
          AS w (owner, id, was_revision, ${ALARM.list(undefined, members)})
        WHERE a.bucket = $1 AND a.owner = w.owner AND a.id = w.id AND a.revision = w.was_revision
        RETURNING 1
      ), owed AS (${part.sql(owed)}
      )${withLedger ? recorded : ''}
      SELECT ${orFail('$2::bigint', '((SELECT count(*) FROM written) + (SELECT count(*) FROM owed))')}`,
    ),
    values(plan) {
      const alarms = plan.alarms.map(({ alarm }) => alarm);
      return [
        alarms.length + part.count(plan),
        ...ALARM.bind(alarms, ['owner', 'id']),
        plan.alarms.map(({ revision }) => revision),
        ...ALARM.bind(alarms, members),
        ...(withLedger ? ATTEMPT.bind(plan.ledger) : []),
        ...part.values(plan),
      ];
    },
  };
}

/** @param suffix of the statements' names */
export function writersOf(suffix: string, withLedger: boolean): Writers {
  const of = (name: string, members: readonly (keyof Alarm)[]) => ({
    delete: writer(`${name}_delete${suffix}`, members, DELETE, withLedger),
    move: writer(`${name}_move${suffix}`, members, MOVE, withLedger),
  });
  return { progress: of('progress', PROGRESS), all: of('edit', CHANGEABLE) };
}

const WRITERS = writersOf('', true);

const MOVE_ALONE: Writer = {
  statement: statement(
    'move_occurrences',
    `WITH owed AS (${MOVE.sql(3)}) SELECT ${orFail('$2::bigint', '(SELECT count(*) FROM owed)')}`,
  ),
  values: (plan) => [MOVE.count(plan), ...MOVE.values(plan)],
};

function failedOnConflict(error: unknown): boolean {
  const cause = error instanceof ReveilleError ? error.cause : error;
  return sqlState(cause) === '22P02' && (cause as Error).message.includes(CONFLICT_TEXT);
}

/** The statements that write a plan: all in one transaction. */
function callsOf(bucket: number, plan: Plan, { all, progress, ledger }: Writers): Call[] {
  const call = ({ statement, values }: Writer): Call => ({ statement, values: [bucket, ...values(plan)] });
  const writers = plan.edits ? all : progress;
  const calls = [call(plan.deletes.length > 0 ? writers.delete : writers.move)];
  if (ledger && plan.ledger.length > 0) calls.push(call(ledger));
  if (plan.deletes.length > 0 && plan.moves.length > 0) calls.push(call(MOVE_ALONE));
  if (plan.inserts.length > 0) calls.push(call(INSERT));
  if (plan.grown.size > 0) {
    const grown = [...plan.grown.values()];
    const columns = [[...plan.grown.keys()], grown.map(({ opened }) => opened), grown.map(({ bytes }) => bytes)];
    calls.push({ statement: ADD_OPEN, values: [bucket, ...columns] });
  }
  return calls;
}

/**
 * Writes batches, each about owners of one bucket, in one transaction.
 *
 * @returns whether they were written; otherwise nothing was written, and everything must be read again
 */
export async function writeChanges(
  pool: PrimaryPool,
  buckets: Buckets,
  batches: readonly (readonly Change[])[],
): Promise<boolean> {
  const writers = buckets.distributed?.writers ?? WRITERS;
  const calls = batches.flatMap((changes) =>
    callsOf(buckets.of(changes[0]!.wanted.alarm.owner), planOf(changes), writers),
  );
  try {
    await pool.together(calls);
    return true;
  } catch (error) {
    if (failedOnConflict(error)) return false;
    throw error;
  }
}

/** Each round takes two round trips to the database. A caller that loses all of them competes with very many others. */
const ROUNDS = 100;
const LONGEST_PAUSE_MS = 20;

/**
 * Calls `round` until it returns a result. The pauses after failed rounds start short, then grow unevenly, so that one
 * caller succeeds.
 *
 * @throws ReveilleError `unavailable` when no round succeeds
 */
export async function retryUntilUncontended<T>(clock: Clock, round: () => Promise<T | undefined>): Promise<T> {
  for (let number = 1; number <= ROUNDS; number++) {
    const result = await round();
    if (result !== undefined) return result;
    if (number > 2) await wait(clock, Math.random() * Math.min(number, LONGEST_PAUSE_MS));
  }
  throw new ReveilleError('unavailable', 'too many others change the same alarm at present; try again');
}

// Changes one alarm by a pure transition.

function isSame(stored: AlarmState, wanted: AlarmState): boolean {
  const { alarm, added, changed, removed } = differenceOf(stored, wanted);
  return alarm.size + added.length + changed.length + removed.length === 0;
}

export function prepareUpdate(pool: PrimaryPool, buckets: Buckets, clock: Clock, now: () => number) {
  /** Replicas that change alarms of one owner concurrently do not see each other's change. */
  async function check(stored: AlarmState, wanted: AlarmState, limits: StoreLimits): Promise<void> {
    const { owner } = wanted.alarm;
    const increase = increaseOf(stored, wanted);
    if (!needsTotals(increase, limits)) return;
    const bucket = buckets.of(owner);
    const active = increase.opens ? await countOpen(pool, bucket, owner) : 0;
    const totals = Promise.all([storedOf(pool, bucket, owner), waitingTriggers(pool, bucket, owner)]);
    const [{ bytes }, triggers] = await totals;
    checkIncrease(increase, limits, { active, bytes, triggers });
  }

  return async (
    owner: string,
    alarmId: string,
    transition: Transition,
    limits: StoreLimits = {},
  ): Promise<AlarmState | undefined> => {
    const { state } = await retryUntilUncontended(
      clock,
      async (): Promise<{ state: AlarmState | undefined } | undefined> => {
        const stored = await readOne(pool, buckets, owner, alarmId);
        if (!stored) return { state: undefined };
        const wanted = transition(stored.state);
        checkTransition(stored.state, wanted);
        if (isSame(stored.state, wanted)) return { state: wanted };
        await check(stored.state, wanted, limits);
        const attempts: Attempt[] = abandonedAttempts(stored.state, wanted, now());
        const change: Change = { stored, wanted, attempts, isByOwner: true };
        return (await writeChanges(pool, buckets, [[change]])) ? { state: wanted } : undefined;
      },
    );
    return state;
  };
}
