/**
 * Writes deliveries that change nothing but the row of their alarm: one statement per batch and bucket, without reading
 * and comparing states. The revision of a claimed row proves that nothing of the alarm has changed since the claim.
 */
import type { Attempt, Occurrence } from '../../alarm/alarm.ts';
import type { DeliveryEffect, Progress } from '../../alarm/settlement.ts';
import type { Claim, Completion } from '../store.ts';
import type { ClaimedRow } from './claim-query.ts';
import { arrayLiteral, LAST, RECORD } from './rows.ts';
import { type Call, statement } from './statement.ts';
import { OR_FAIL } from './write.ts';

/** The last attempts of rows enter the ledger before {@link DELIVER} replaces them. */
const DISPLACE = statement(
  'displace',
  `
  INSERT INTO ledger (bucket, owner, alarm_id, ${RECORD.list()})
  SELECT p.bucket, p.owner, p.alarm_id, ${LAST.list('p')}
  FROM unnest($2::text[], $3::text[], $4::bigint[]) AS d (owner, alarm_id, revision)
  JOIN progress AS p ON p.bucket = $1 AND p.owner = d.owner AND p.alarm_id = d.alarm_id AND p.trigger_at = 0
    AND p.revision = d.revision`,
);

/** What the row has of the claimed occurrence becomes its last attempt; the next occurrence, if any, takes its place. */
const DELIVER = statement(
  'deliver',
  `
  WITH written AS (
    UPDATE progress AS p SET revision = p.revision + 1, status = w.status, failure_count = 0, last_error = NULL,
      updated_at = w.updated_at, last_fired_at = w.last_fired_at, fire_count = w.fire_count,
      scheduled_fires = w.scheduled_fires,
      last_scheduled_for = p.scheduled_for, last_attempt = p.attempt, last_missed_count = p.missed_count,
      last_started_at = w.started_at, last_finished_at = w.finished_at, last_outcome = 'delivered',
      last_http_status = w.http_status, last_attempt_error = NULL, last_machine_ready_ms = w.machine_ready_ms,
      last_late_because = w.late_because,
      scheduled_for = w.scheduled_for, nominal = w.nominal, due_at = w.due_at, missed_count = w.missed_count,
      attempt = CASE WHEN w.nominal IS NOT NULL THEN 0 END, fence = CASE WHEN w.nominal IS NOT NULL THEN 0 END,
      holder = NULL, claimed_at = NULL, held_reason = NULL, held_until = NULL
    FROM unnest($3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
        $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[],
        $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[])
      AS w (owner, alarm_id, revision, status, updated_at, last_fired_at, fire_count, scheduled_fires,
        started_at, finished_at, http_status, machine_ready_ms, late_because,
        scheduled_for, nominal, due_at, missed_count)
    WHERE p.bucket = $1 AND p.owner = w.owner AND p.alarm_id = w.alarm_id AND p.trigger_at = 0
      AND p.revision = w.revision
    RETURNING 1
  )${OR_FAIL}`,
);

type Delivery = {
  owner: string;
  alarmId: string;
  row: ClaimedRow;
  progress: Progress;
  next: Occurrence | null;
  attempt: Attempt;
};

const isFirst = ({ attempt, fence, heldReason, heldUntil }: Occurrence) =>
  attempt === 0 && fence === 0 && heldReason === null && heldUntil === null;

/** Whether {@link DELIVER} writes this effect and this attempt. */
function isPlain({ progress, next }: DeliveryEffect, attempt: Attempt, { occurrence }: Claim): boolean {
  return (
    progress.failureCount === 0 &&
    progress.lastError === null &&
    (next === null || isFirst(next)) &&
    attempt.outcome === 'delivered' &&
    attempt.error === null &&
    attempt.fireId === occurrence.fireId &&
    attempt.scheduledFor === occurrence.scheduledFor &&
    attempt.attempt === occurrence.attempt &&
    attempt.missedCount === occurrence.missedCount
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
    const { progress, next } = effect;
    const { owner, id: alarmId } = claim.alarm;
    this.#deliveries.push({ owner, alarmId, row, progress, next, attempt });
    if (next !== null && next.dueAt !== null) this.due.push({ owner, dueAt: next.dueAt });
    return true;
  }

  /** The statements that write them. */
  calls(bucket: number): Call[] {
    // One common order, so that batches that lock the same rows cannot deadlock.
    const all = this.#deliveries.sort((one, other) =>
      one.owner === other.owner ? (one.alarmId < other.alarmId ? -1 : 1) : one.owner < other.owner ? -1 : 1,
    );
    if (all.length === 0) return [];
    const text = (pick: (delivery: Delivery) => string | null, those = all) => arrayLiteral('text', those, pick);
    const number = (pick: (delivery: Delivery) => number | null | undefined, those = all) =>
      arrayLiteral('bigint', those, pick);
    const displaced = all.filter(({ row }) => row.hasAttempt);
    const keys = (those: Delivery[]) => [
      text(({ owner }) => owner, those),
      text(({ alarmId }) => alarmId, those),
      number(({ row }) => row.revision, those),
    ];
    const values = [
      bucket,
      all.length,
      ...keys(all),
      text(({ progress }) => progress.status),
      number(({ progress }) => progress.updatedAt),
      number(({ progress }) => progress.lastFiredAt),
      number(({ progress }) => progress.fireCount),
      number(({ progress }) => progress.scheduledFires),
      number(({ attempt }) => attempt.startedAt),
      number(({ attempt }) => attempt.finishedAt),
      number(({ attempt }) => attempt.httpStatus),
      number(({ attempt }) => attempt.machineReadyMs),
      text(({ attempt }) => attempt.lateBecause),
      number(({ next }) => next?.scheduledFor),
      number(({ next }) => next?.nominal),
      number(({ next }) => next?.dueAt),
      number(({ next }) => next?.missedCount),
    ];
    const calls: Call[] = displaced.length > 0 ? [{ statement: DISPLACE, values: [bucket, ...keys(displaced)] }] : [];
    return [...calls, { statement: DELIVER, values }];
  }
}
