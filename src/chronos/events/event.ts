/** Makes events from stored changes. */
import type { FeedSource } from '../../kit/http/feed-source.ts';
import type { ChronosEvent, ChronosEventType } from '../../wire/chronos-event.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { readUsage } from '../../wire/usage.ts';
import type { Attempt } from '../alarm/alarm.ts';
import type { StoredTurnReport } from '../alarm/fire-history.ts';
import type { AlarmStore } from '../store/store.ts';
import { changeKey, type StoredChange } from '../store/stored-change.ts';

/** The whole error is in the ledger. */
const ERROR_CHARACTERS = 500;

const orAbsent = <Name extends string, Value>(name: Name, value: Value | null) =>
  (value === null ? {} : { [name]: value }) as { [name in Name]?: Value };

const FIRE_TYPES = {
  delivered: 'fire.delivered',
  failed: 'fire.failed',
  unknown: 'fire.failed',
  missed: 'fire.missed',
  skipped: 'fire.skipped',
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
  const { alarmId, fireId, at, outcome, error, turnId, conversationId, retryAt, reply, usage } = report;
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
    ...orAbsent('usage', readUsage(usage) ?? null),
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
function typeOf(change: StoredChange): ChronosEventType {
  if (change.kind === 'attempt') return FIRE_TYPES[change.attempt.outcome];
  return change.kind === 'report' ? reportType(change.report) : TYPES[change.kind];
}

/** The event of a change. */
function eventOf(change: StoredChange): ChronosEvent {
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

/** Attempts whose start is remembered, until their end. */
const STARTS_MAX = 1000;

/** Adds the start of an attempt before its end, unless it was reported. */
function withStarts(): (change: StoredChange) => StoredChange[] {
  const started = new Set<string>();
  return (change) => {
    if (started.size > STARTS_MAX) started.clear();
    if (change.kind === 'claimed') {
      started.add(`${change.fireId} ${change.attempt}`);
      return [change];
    }
    if (change.kind !== 'attempt') return [change];
    const { owner, alarmId, fireId, attempt, startedAt, outcome } = change.attempt;
    if (outcome === 'missed' || outcome === 'skipped') return [change];
    if (started.delete(`${fireId} ${attempt}`)) return [change];
    return [{ kind: 'claimed', owner, alarmId, at: startedAt, fireId, attempt }, change];
  };
}

/** The changes of a store, for an event feed. */
export const alarmFeedSource = (
  store: Pick<AlarmStore, 'follow' | 'changesSince'>,
): FeedSource<StoredChange, ChronosEvent> => ({
  follow: (follower) => store.follow(follower),
  changesSince: (owner, since) => store.changesSince(owner, since),
  lost: (owner, at) => ({ kind: 'lost', owner, at }),
  keyOf: changeKey,
  eventOf,
  typeOf,
  mergedEventOf: (types, at) => ({ type: 'changed', at: formatInstant(at), types: types as ChronosEventType[] }),
  // The end of an attempt usually follows its start soon.
  isPrelude: ({ kind }) => kind === 'claimed',
  completer: withStarts,
});
