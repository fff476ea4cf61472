/** An alarm and its attempts as their owner gets to see them (contracts §2). */
import type { AlarmView, FireView } from '../../wire/alarm.ts';
import { formatInstant } from '../../wire/instant.ts';
import { RawJson } from '../../wire/json.ts';
import { type AlarmState, type Attempt, isLeased, scheduledOccurrence } from './alarm.ts';

/** Leaves out what is absent, so that the JSON does too. */
function present<T extends object>(members: { [K in keyof T]: T[K] | null | undefined }): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null && value !== undefined)) as T;
}

const instantOrNull = (epochMs: number | null | undefined) =>
  epochMs === null || epochMs === undefined ? null : formatInstant(epochMs);

/** The instant of the next attempt of an active alarm's own schedule. */
export function nextFireAt(state: AlarmState): number | undefined {
  if (state.alarm.status !== 'active') return undefined;
  return scheduledOccurrence(state)?.dueAt ?? undefined;
}

/** @param now decides whether an attempt is under way */
export function viewAlarm(state: AlarmState, now: number): AlarmView {
  const { alarm } = state;
  return present<AlarmView>({
    id: alarm.id,
    label: alarm.label,
    kind: alarm.kind,
    cron_expr: alarm.cronExpr,
    timezone: alarm.timezone,
    fire_at: instantOrNull(alarm.fireAt),
    next_fire_at: instantOrNull(nextFireAt(state)),
    conversation_id: alarm.conversationId,
    wake_message: alarm.wakeMessage,
    payload: alarm.payload === null ? null : new RawJson(alarm.payload),
    status: alarm.status,
    idempotency_key: alarm.idempotencyKey,
    max_failures: alarm.maxFailures,
    failure_count: alarm.failureCount,
    last_error: alarm.lastError,
    created_at: formatInstant(alarm.createdAt),
    last_fired_at: instantOrNull(alarm.lastFiredAt),
    fire_count: alarm.fireCount,
    in_flight: state.occurrences.some((occurrence) => isLeased(occurrence, now)),
    max_lateness_seconds: alarm.maxLatenessSeconds,
    jitter_seconds: alarm.jitterSeconds || null,
    ends_at: instantOrNull(alarm.endsAt),
    max_fires: alarm.maxFires,
  });
}

/** One line of the fire ledger. Lateness counts from the instant the occurrence was due to the start of this attempt. */
export function viewAttempt(attempt: Attempt): FireView {
  return present<FireView>({
    fire_id: attempt.fireId,
    scheduled_for: formatInstant(attempt.scheduledFor),
    attempt: attempt.attempt,
    started_at: formatInstant(attempt.startedAt),
    finished_at: formatInstant(attempt.finishedAt),
    lateness_ms: attempt.startedAt - attempt.scheduledFor,
    outcome: attempt.outcome,
    http_status: attempt.httpStatus,
    error: attempt.error,
    missed_count: attempt.missedCount || null,
  });
}
