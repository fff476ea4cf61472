/** Makes events from stored changes. Pure. */
import type { ChronosEvent } from '../../wire/chronos-event.ts';
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
  const { alarmId, fireId, stage, at, outcome, error, turnId, conversationId, retryAt, reply } = report;
  const ended = outcome === 'ok' ? 'turn.finished' : 'turn.failed';
  return {
    type: stage === 'turn_started' ? 'turn.started' : ended,
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

const ALARM_TYPES = { created: 'alarm.created', edited: 'alarm.updated', cancelled: 'alarm.cancelled' } as const;

/** The event of a change. */
export function eventOf(change: StoredChange): ChronosEvent {
  const at = formatInstant(change.at);
  switch (change.kind) {
    case 'attempt':
      return attemptEvent(change.attempt);
    case 'report':
      return reportEvent(change.report);
    case 'claimed':
      return { type: 'fire.started', at, alarm_id: change.alarmId, fire_id: change.fireId, attempt: change.attempt };
    case 'deferred': {
      const { alarmId, fireId, until, reason } = change;
      return { type: 'alarm.deferred', at, alarm_id: alarmId, fire_id: fireId, until: formatInstant(until), reason };
    }
    case 'lost':
      return { type: 'reset', at };
    default:
      return { type: ALARM_TYPES[change.kind], at, alarm_id: change.alarmId };
  }
}
