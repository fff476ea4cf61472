/** Makes events from stored changes. Pure. */
import { formatEvent } from '../../kit/http/sse.ts';
import type { ChronosEvent, ChronosEventType } from '../../wire/chronos-event.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Attempt } from '../alarm/alarm.ts';
import type { StoredTurnReport } from '../alarm/fire-history.ts';
import type { StoredChange } from '../store/stored-change.ts';

/** The whole error is in the ledger. */
const ERROR_CHARACTERS = 500;

const orAbsent = <Name extends string, Value>(name: Name, value: Value | null) =>
  (value === null ? {} : { [name]: value }) as { [name in Name]?: Value };

const FIRE_TYPES = {
  delivered: 'fire.delivered',
  failed: 'fire.failed',
  unknown: 'fire.failed',
  missed: 'fire.missed',
} as const;

function attemptEvent({ alarmId, fireId, attempt, finishedAt, outcome, httpStatus, error }: Attempt): ChronosEvent {
  return {
    type: FIRE_TYPES[outcome],
    at: formatInstant(finishedAt),
    alarm_id: alarmId,
    fire_id: fireId,
    attempt,
    outcome,
    ...orAbsent('http_status', httpStatus),
    ...orAbsent('error', error === null ? null : error.slice(0, ERROR_CHARACTERS)),
  };
}

function reportEvent(report: StoredTurnReport): ChronosEvent {
  const { alarmId, fireId, at, outcome, error, turnId, conversationId, retryAt, reply } = report;
  return {
    type: reportType(report),
    at: formatInstant(at),
    alarm_id: alarmId,
    fire_id: fireId,
    ...orAbsent('outcome', outcome),
    ...orAbsent('error', error),
    ...orAbsent('turn_id', turnId),
    ...orAbsent('conversation_id', conversationId),
    ...orAbsent('retry_at', retryAt === null ? null : formatInstant(retryAt)),
    ...orAbsent('reply', reply),
  };
}

function reportType({ stage, outcome }: StoredTurnReport): ChronosEventType {
  if (stage === 'turn_started') return 'turn.started';
  return outcome === 'ok' ? 'turn.finished' : 'turn.failed';
}

const TYPES = {
  created: 'alarm.created',
  edited: 'alarm.updated',
  cancelled: 'alarm.cancelled',
  deferred: 'alarm.deferred',
  claimed: 'fire.started',
  lost: 'reset',
} as const;

/** The type of a change's event. */
export function typeOf(change: StoredChange): ChronosEventType {
  if (change.kind === 'attempt') return FIRE_TYPES[change.attempt.outcome];
  return change.kind === 'report' ? reportType(change.report) : TYPES[change.kind];
}

/** The event of a change. */
export function eventOf(change: StoredChange): ChronosEvent {
  const [type, at] = [typeOf(change), formatInstant(change.at)];
  switch (change.kind) {
    case 'attempt':
      return attemptEvent(change.attempt);
    case 'report':
      return reportEvent(change.report);
    case 'claimed':
      return { type, at, alarm_id: change.alarmId, fire_id: change.fireId, attempt: change.attempt };
    case 'deferred': {
      const { alarmId, fireId, until, reason } = change;
      return { type, at, alarm_id: alarmId, fire_id: fireId, until: formatInstant(until), reason };
    }
    case 'lost':
      return { type, at };
    default:
      return { type, at, alarm_id: change.alarmId };
  }
}

/** An event as `text/event-stream`. @param id its cursor, the `Last-Event-ID` */
export const eventText = (id: string, event: ChronosEvent): string =>
  formatEvent({ id, event: event.type, data: JSON.stringify(event) });
