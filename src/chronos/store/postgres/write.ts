/**
 * Writes a batch of changes, all or nothing: nothing when one of the alarms has changed since it was read.
 *
 * No row is locked between reading and writing. So a change takes two round trips, and a process that stops in between
 * blocks no other.
 */
import { type Clock, wait } from '../../../kit/clock/clock.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { AlarmState, Attempt, Transition } from '../../alarm/alarm.ts';
import { IDENTITY } from '../columns.ts';
import { checkTransition, differenceOf } from '../difference.ts';
import { checkIncrease, increaseOf, needsTotals } from '../limits.ts';
import type { StoreLimits } from '../store.ts';
import { abandonedAttempts } from './attempts.ts';
import type { Buckets } from './buckets.ts';
import { type Change, type Plan, planOf } from './change.ts';
import { ADD_OPEN, countOpen, storedOf, waitingTriggers } from './owners.ts';
import type { PrimaryPool } from './pool.ts';
import { sqlState } from './postgres-error.ts';
import { DEFINITION, LAST, NO_ATTEMPT, NO_OCCURRENCE, OWED, PROGRESS, RECORD } from './rows.ts';
import { readOne } from './state.ts';
import { type Call, type Statement, statement } from './statement.ts';

/** Appears in the server's log when a batch is aborted, so it explains itself. */
const CONFLICT_TEXT = 'reveille: concurrent change, the batch is retried (';

/**
 * Ends a statement whose WITH part `written` changes rows: it and its transaction fail unless $2 rows were changed. The
 * cast of this text to a number always fails, and is not evaluated when the numbers match.
 */
export const OR_FAIL = `
  SELECT CASE WHEN $2::bigint = (SELECT count(*) FROM written) THEN 0
    ELSE CAST('${CONFLICT_TEXT}' || (SELECT count(*) FROM written) || ')' AS BIGINT) END`;

/** A statement that writes a part of a plan, with its values after the bucket. */
type Writer = { statement: Statement; count: (plan: Plan) => number; values: (plan: Plan) => unknown[] };

const OWED_AT = 9 + PROGRESS.members.length;
const LAST_AT = OWED_AT + OWED.members.length;

/**
 * The rows of alarms, each only if it is unchanged since it was read. After a lock wait the row's newest version is
 * compared. It comes first in its transaction, so that its lock keeps others from the alarm's other rows.
 */
const WRITE: Writer = {
  statement: statement(
    'write',
    `
    WITH written AS (
      UPDATE progress AS p SET revision = p.revision + 1, triggers = w.triggers, edition = w.edition, holder = w.holder,
        ${PROGRESS.assignments('w')}, ${OWED.assignments('w')}, ${LAST.assignments('w')}
      FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
          ${PROGRESS.arrays(9)}, ${OWED.arrays(OWED_AT)}, ${LAST.arrays(LAST_AT)})
        AS w (owner, alarm_id, was_revision, triggers, edition, holder, ${PROGRESS.list()}, ${OWED.list()}, ${LAST.list()})
      WHERE p.bucket = $1 AND p.owner = w.owner AND p.alarm_id = w.alarm_id AND p.trigger_at = 0
        AND p.revision = w.was_revision
      RETURNING 1
    )${OR_FAIL}`,
  ),
  count: ({ progress }) => progress.length,
  values: ({ progress }) => [
    progress.length,
    progress.map(({ alarm }) => alarm.owner),
    progress.map(({ alarm }) => alarm.id),
    progress.map(({ revision }) => revision),
    progress.map(({ triggers }) => triggers),
    progress.map(({ edition }) => edition),
    progress.map(({ holder }) => holder),
    ...PROGRESS.bind(progress.map(({ alarm }) => alarm)),
    ...OWED.bind(progress.map(({ scheduled }) => scheduled ?? NO_OCCURRENCE)),
    ...LAST.bind(progress.map(({ last }) => last ?? NO_ATTEMPT)),
  ],
};

/** Members of a definition that an edit may change. */
const CHANGEABLE = DEFINITION.members.filter((member) => !(IDENTITY as readonly string[]).includes(member));

const DEFINE: Writer = {
  statement: statement(
    'define',
    `
    UPDATE definitions AS d SET edition = w.edition, ${DEFINITION.assignments('w', CHANGEABLE)},
      held_key = CASE WHEN w.holds_key THEN d.idempotency_key END
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::boolean[], ${DEFINITION.arrays(6, CHANGEABLE)})
      AS w (owner, id, edition, holds_key, ${DEFINITION.list(undefined, CHANGEABLE)})
    WHERE d.bucket = $1 AND d.owner = w.owner AND d.id = w.id`,
  ),
  count: ({ definitions }) => definitions.length,
  values: ({ definitions }) => [
    definitions.map(({ alarm }) => alarm.owner),
    definitions.map(({ alarm }) => alarm.id),
    definitions.map(({ edition }) => edition),
    definitions.map(({ alarm }) => alarm.status !== 'cancelled'),
    ...DEFINITION.bind(
      definitions.map(({ alarm }) => alarm),
      CHANGEABLE,
    ),
  ],
};

/** Rows of other occurrences: none may have been claimed, or its claim have ended, since it was read. */
const REMOVE: Writer = {
  statement: statement(
    'remove_triggers',
    `
    WITH written AS (
      DELETE FROM progress AS p USING unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[])
        AS g (owner, alarm_id, trigger_at, was_revision)
      WHERE p.bucket = $1 AND p.owner = g.owner AND p.alarm_id = g.alarm_id AND p.trigger_at = g.trigger_at
        AND p.revision = g.was_revision
      RETURNING 1
    )${OR_FAIL}`,
  ),
  count: ({ gone }) => gone.length,
  values: ({ gone }) => [
    gone.length,
    gone.map(({ occurrence }) => occurrence.owner),
    gone.map(({ occurrence }) => occurrence.alarmId),
    gone.map(({ occurrence }) => occurrence.scheduledFor),
    gone.map(({ revision }) => revision),
  ],
};

const ADD: Writer = {
  statement: statement(
    'add_triggers',
    `
    INSERT INTO progress (bucket, triggers, edition, owner, alarm_id, trigger_at, revision, holder, ${OWED.list()})
    SELECT $1, 0, 0, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], ${OWED.arrays(7)})`,
  ),
  count: ({ added }) => added.length,
  values: ({ added }) => [
    added.map(({ occurrence }) => occurrence.owner),
    added.map(({ occurrence }) => occurrence.alarmId),
    added.map(({ occurrence }) => occurrence.scheduledFor),
    added.map(({ revision }) => revision),
    added.map(({ holder }) => holder),
    ...OWED.bind(added.map(({ occurrence }) => occurrence)),
  ],
};

const RECORD_ATTEMPTS: Writer = {
  statement: statement(
    'record_attempts',
    `
    INSERT INTO ledger (bucket, owner, alarm_id, ${RECORD.list()})
    SELECT $1, * FROM unnest($2::text[], $3::text[], ${RECORD.arrays(4)})`,
  ),
  count: ({ ledger }) => ledger.length,
  values: ({ ledger }) => [
    ledger.map(({ owner }) => owner),
    ledger.map(({ alarmId }) => alarmId),
    ...RECORD.bind(ledger),
  ],
};

const GROW: Writer = {
  statement: ADD_OPEN,
  count: ({ grown }) => grown.size,
  values({ grown }) {
    const counts = [...grown.values()];
    return [[...grown.keys()], counts.map(({ opened }) => opened), counts.map(({ bytes }) => bytes)];
  },
};

/** In the order of one transaction. */
const WRITERS = [WRITE, DEFINE, REMOVE, ADD, RECORD_ATTEMPTS, GROW];

/** The statements that write changes of alarms of one bucket: all in one transaction. */
export function callsOf(bucket: number, changes: readonly Change[]): Call[] {
  const plan = planOf(changes);
  return WRITERS.filter(({ count }) => count(plan) > 0).map(({ statement, values }) => ({
    statement,
    values: [bucket, ...values(plan)],
  }));
}

function failedOnConflict(error: unknown): boolean {
  const cause = error instanceof ReveilleError ? error.cause : error;
  return sqlState(cause) === '22P02' && (cause as Error).message.includes(CONFLICT_TEXT);
}

/**
 * Runs statements of {@link callsOf} in one transaction.
 *
 * @returns whether they were written; otherwise nothing was written, and everything must be read again
 */
export async function writeAll(pool: PrimaryPool, calls: readonly Call[]): Promise<boolean> {
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

/**
 * Refuses a transition that would take its owner over a limit. Replicas that change alarms of one owner concurrently do
 * not see each other's change.
 */
export async function checkLimits(
  pool: PrimaryPool,
  bucket: number,
  { stored, wanted, limits }: { stored: AlarmState; wanted: AlarmState; limits: StoreLimits },
): Promise<void> {
  const { owner } = wanted.alarm;
  const increase = increaseOf(stored, wanted);
  if (!needsTotals(increase, limits)) return;
  const active = increase.opens ? await countOpen(pool, bucket, owner) : 0;
  const totals = Promise.all([storedOf(pool, bucket, owner), waitingTriggers(pool, bucket, owner)]);
  const [{ bytes }, triggers] = await totals;
  checkIncrease(increase, limits, { active, bytes, triggers });
}

export function prepareUpdate(pool: PrimaryPool, buckets: Buckets, clock: Clock, now: () => number) {
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
        await checkLimits(pool, buckets.of(owner), { stored: stored.state, wanted, limits });
        const attempts: Attempt[] = abandonedAttempts(stored.state, wanted, now());
        const change: Change = { stored, wanted, attempts, isByOwner: true };
        return (await writeAll(pool, callsOf(buckets.of(owner), [change]))) ? { state: wanted } : undefined;
      },
    );
    return state;
  };
}
