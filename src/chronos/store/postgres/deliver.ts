/**
 * Writes deliveries that change nothing but the row of their alarm: one statement per batch and bucket, without reading
 * and comparing states. The revision of a claimed row proves that nothing of the alarm has changed since the claim.
 */
import type { Attempt, Occurrence } from '../../alarm/alarm.ts';
import type { DeliveryEffect } from '../../alarm/settlement.ts';
import type { Claim, Completion } from '../store.ts';
import type { ClaimedRow } from './claim-query.ts';
import { arrayLiteral, LAST, RECORD } from './rows.ts';
import { type Call, statement } from './statement.ts';
import { OR_FAIL } from './write.ts';

/**
 * A claimed row is where its claim has left it as long as its revision is the same, so that its location finds it
 * without the index. On several servers a location is not unique.
 */
const theRow = (isApart: boolean) => `p.bucket = $1 AND ${isApart ? '' : 'p.ctid = w.location AND '}p.owner = w.owner
    AND p.alarm_id = w.alarm_id AND p.trigger_at = 0 AND p.revision = w.revision`;

/** The last attempts of rows enter the ledger before the statement of {@link deliver} replaces them. */
const displace = (name: string, isApart: boolean) =>
  statement(
    name,
    `
  INSERT INTO ledger (bucket, owner, alarm_id, ${RECORD.list()})
  SELECT p.bucket, p.owner, p.alarm_id, ${LAST.list('p')}
  FROM unnest($2::tid[], $3::text[], $4::text[], $5::bigint[]) AS w (location, owner, alarm_id, revision)
  JOIN progress AS p ON ${theRow(isApart)}`,
  );

/**
 * What the row has of the claimed occurrence becomes its last attempt; the next occurrence, if any, takes its place. An
 * array that is NULL has only NULL values.
 */
const deliver = (name: string, isApart: boolean) =>
  statement(
    name,
    `
  WITH written AS (
    UPDATE progress AS p SET revision = p.revision + 1, failure_count = 0, last_error = NULL,
      status = CASE WHEN w.nominal IS NULL THEN 'fired' ELSE 'active' END,
      updated_at = CASE WHEN w.nominal IS NULL THEN GREATEST(p.updated_at, w.started_at) ELSE p.updated_at END,
      last_fired_at = w.started_at, fire_count = p.fire_count + 1, scheduled_fires = p.scheduled_fires + 1,
      last_scheduled_for = p.scheduled_for, last_attempt = p.attempt, last_missed_count = p.missed_count,
      last_started_at = w.started_at, last_finished_at = w.finished_at, last_outcome = 'delivered',
      last_http_status = w.http_status, last_attempt_error = NULL, last_machine_ready_ms = w.machine_ready_ms,
      last_late_because = w.late_because, last_cause = p.cause, cause = NULL,
      scheduled_for = w.scheduled_for, nominal = w.nominal, due_at = w.due_at, missed_count = w.missed_count,
      attempt = CASE WHEN w.nominal IS NOT NULL THEN 0 END, fence = CASE WHEN w.nominal IS NOT NULL THEN 0 END,
      holder = NULL, claimed_at = NULL, held_reason = NULL, held_until = NULL
    FROM unnest($3::tid[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
        $10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
      AS w (location, owner, alarm_id, revision, started_at, finished_at, http_status, machine_ready_ms, late_because,
        scheduled_for, nominal, due_at, missed_count)
    WHERE ${theRow(isApart)}
    RETURNING 1
  )${OR_FAIL}`,
  );

const ON_ONE_SERVER = { displace: displace('displace', false), deliver: deliver('deliver', false) };
const APART = { displace: displace('displace_apart', true), deliver: deliver('deliver_apart', true) };

type Delivery = {
  owner: string;
  alarmId: string;
  row: ClaimedRow;
  next: Occurrence | null;
  attempt: Attempt;
};

const isFirst = ({ attempt, fence, heldReason, heldUntil, cause }: Occurrence) =>
  attempt === 0 && fence === 0 && heldReason === null && heldUntil === null && cause === null;

/** Whether the statement of {@link deliver} writes this effect and this attempt. */
function isPlain({ progress, next }: DeliveryEffect, attempt: Attempt, { alarm, occurrence }: Claim): boolean {
  const { startedAt } = attempt;
  return (
    progress.status === (next === null ? 'fired' : 'active') &&
    progress.updatedAt === (next === null ? Math.max(alarm.updatedAt, startedAt) : alarm.updatedAt) &&
    progress.lastFiredAt === startedAt &&
    progress.fireCount === alarm.fireCount + 1 &&
    progress.scheduledFires === alarm.scheduledFires + 1 &&
    progress.failureCount === 0 &&
    progress.lastError === null &&
    (next === null || isFirst(next)) &&
    attempt.outcome === 'delivered' &&
    attempt.error === null &&
    attempt.fireId === occurrence.fireId &&
    attempt.scheduledFor === occurrence.scheduledFor &&
    attempt.attempt === occurrence.attempt &&
    attempt.missedCount === occurrence.missedCount &&
    attempt.cause === occurrence.cause
  );
}

/** The deliveries of one bucket in a batch. */
export class Deliveries {
  readonly #deliveries: Delivery[] = [];
  /** When the next occurrences are due. */
  readonly due: { owner: string; dueAt: number }[] = [];

  /**
   * @param claimed the rows of claims; the one of an added claim is taken out, because the claim is used up
   * @returns whether the completion can be written directly
   */
  add({ key, attempt, direct }: Completion, claimed: WeakMap<Claim, ClaimedRow>): boolean {
    if (!direct || !attempt) return false;
    const { claim, effect } = direct;
    const row = claimed.get(claim);
    if (!row || key.fence !== claim.occurrence.fence || key.fireId !== claim.occurrence.fireId) return false;
    if (!isPlain(effect, attempt, claim)) return false;
    claimed.delete(claim);
    const { next } = effect;
    const { owner, id: alarmId } = claim.alarm;
    this.#deliveries.push({ owner, alarmId, row, next, attempt });
    if (next !== null && next.dueAt !== null) this.due.push({ owner, dueAt: next.dueAt });
    return true;
  }

  /**
   * The statements that write them.
   *
   * @param isApart whether tables are distributed over servers
   */
  calls(bucket: number, isApart: boolean): Call[] {
    // One common order, so that batches that lock the same rows cannot deadlock.
    const all = this.#deliveries.sort((one, other) =>
      one.owner === other.owner ? (one.alarmId < other.alarmId ? -1 : 1) : one.owner < other.owner ? -1 : 1,
    );
    if (all.length === 0) return [];
    const values = (those: Delivery[], pick: (delivery: Delivery) => string | number | null | undefined) =>
      those.some((delivery) => (pick(delivery) ?? null) !== null) ? arrayLiteral('text', those, pick) : null;
    const keys = (those: Delivery[]) => [
      values(those, ({ row }) => row.location),
      values(those, ({ owner }) => owner),
      values(those, ({ alarmId }) => alarmId),
      values(those, ({ row }) => row.revision),
    ];
    const statements = isApart ? APART : ON_ONE_SERVER;
    const displaced = all.filter(({ row }) => row.hasAttempt);
    const written = [
      ...keys(all),
      values(all, ({ attempt }) => attempt.startedAt),
      values(all, ({ attempt }) => attempt.finishedAt),
      values(all, ({ attempt }) => attempt.httpStatus),
      values(all, ({ attempt }) => attempt.machineReadyMs),
      values(all, ({ attempt }) => attempt.lateBecause),
      values(all, ({ next }) => next?.scheduledFor),
      values(all, ({ next }) => next?.nominal),
      values(all, ({ next }) => next?.dueAt),
      values(all, ({ next }) => next?.missedCount),
    ];
    return [
      ...(displaced.length > 0 ? [{ statement: statements.displace, values: [bucket, ...keys(displaced)] }] : []),
      { statement: statements.deliver, values: [bucket, all.length, ...written] },
    ];
  }
}
