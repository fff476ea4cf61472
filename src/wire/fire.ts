/**
 * What happened to a fire: its stages, its state, its error in plain words, the reply and the next step, read from the
 * attempts of the fire ledger. Screens, log and notifications format this and interpret nothing themselves. Pure.
 */
import type { AbsenceReason, AlarmView, FireView } from './alarm.ts';

/**
 * How far a fire got. `skipped`: a policy of the alarm dropped it. `not_delivered`: no attempt was accepted. `delivery_unknown`: one may have been. `accepted`: no
 * turn report has arrived. `turn_waits`: the turn failed temporarily and is retried. `turn_unknown`: it ended, and its
 * outcome cannot be determined.
 */
export type FireState =
  | 'missed'
  | 'skipped'
  | 'not_delivered'
  | 'delivery_unknown'
  | 'accepted'
  | 'turn_running'
  | 'turn_waits'
  | 'turn_done'
  | 'turn_failed'
  | 'turn_unknown';

/**
 * `report`: the machine has to report. `retry`: chronosd delivers it again, or the machine repeats its turn. `redrive`: a
 * person has to decide on another attempt. `at`, where known, is in epoch milliseconds.
 */
export type NextStep =
  | { readonly step: 'nothing' | 'report' | 'redrive' }
  | { readonly step: 'retry'; readonly at: number | undefined };

/** An event in the life of a fire. An attempt that was accepted is `fired`. */
export type FireEvent = {
  readonly kind: 'fired' | Exclude<FireState, 'accepted' | 'turn_running'>;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The attempt of the event; for the turn, the latest one. */
  readonly attempt: FireView;
  /** In plain words. */
  readonly error: string | undefined;
};

/** A fire with all attempts at it. Instants are epoch milliseconds, `undefined` if not reached or not known. */
export type Fire = {
  readonly fireId: string;
  /** Latest first. */
  readonly attempts: readonly FireView[];
  readonly state: FireState;
  readonly next: NextStep;
  readonly dueAt: number;
  readonly machineReadyAt: number | undefined;
  readonly acceptedAt: number | undefined;
  readonly turnStartedAt: number | undefined;
  readonly turnFinishedAt: number | undefined;
  /** The lateness of the first attempt, if that is among the attempts. */
  readonly lateness: { readonly ms: number; readonly because: AbsenceReason | undefined } | undefined;
  /** Number of missed occurrences that it replaces. */
  readonly missedCount: number;
  /** The reason of the state, in plain words. */
  readonly error: string | undefined;
  readonly turn: FireView['turn'];
};

/** The state of the alarm that decides about its fires. */
export type AlarmNow = Pick<AlarmView, 'status' | 'next_fire_at' | 'failure_count'>;

const instantOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));

function stateOf(attempts: readonly FireView[]): FireState {
  const { turn, outcome } = attempts[0]!;
  if (turn?.finished_at !== undefined)
    return turn.ok === undefined ? 'turn_unknown' : turn.ok ? 'turn_done' : 'turn_failed';
  if (turn?.waits !== undefined) return 'turn_waits';
  if (turn !== undefined) return 'turn_running';
  if (attempts.some((attempt) => attempt.outcome === 'delivered')) return 'accepted';
  if (outcome === 'missed' || outcome === 'skipped') return outcome;
  return attempts.some((attempt) => attempt.outcome === 'unknown') ? 'delivery_unknown' : 'not_delivered';
}

function nextOf(state: FireState, { turn }: FireView, alarm: AlarmNow | undefined): NextStep {
  switch (state) {
    case 'missed':
    case 'skipped':
    case 'turn_done':
    case 'turn_unknown':
      return { step: 'nothing' };
    case 'turn_failed':
      return { step: 'redrive' };
    case 'turn_waits':
      return { step: 'retry', at: instantOf(turn?.waits?.retry_at) };
    case 'accepted':
    case 'turn_running':
      return { step: 'report' };
    default:
      if (alarm?.status === 'failed') return { step: 'redrive' };
      return { step: 'retry', at: alarm && alarm.failure_count > 0 ? instantOf(alarm.next_fire_at) : undefined };
  }
}

function fireOf(attempts: readonly FireView[], alarm: AlarmNow | undefined): Fire {
  const latest = attempts[0]!;
  const first = attempts.at(-1)!;
  const { turn } = latest;
  const state = stateOf(attempts);
  // Its machine may have been ready for an earlier attempt too, which was not accepted.
  const accepted = attempts.findLast(({ outcome }) => outcome === 'delivered');
  const ready = accepted ?? attempts.find(({ machine_ready_at }) => machine_ready_at !== undefined);
  const error = turn === undefined ? latest.error : (turn.error ?? (turn.finished_at ? undefined : turn.waits?.error));
  return {
    ...{ fireId: latest.fire_id, attempts, state, next: nextOf(state, latest, alarm) },
    dueAt: Date.parse(latest.scheduled_for),
    machineReadyAt: instantOf(ready?.machine_ready_at),
    acceptedAt: instantOf(accepted?.accepted_at),
    turnStartedAt: instantOf(turn?.started_at),
    turnFinishedAt: instantOf(turn?.finished_at),
    lateness: first.attempt === 1 ? { ms: first.lateness_ms, because: first.late_because } : undefined,
    missedCount: latest.missed_count ?? 0,
    error: error === undefined ? undefined : plainError(error),
    turn,
  };
}

/**
 * The fires of an alarm, latest first.
 *
 * @param attempts entries of its fire ledger, latest first
 * @param alarm without it, a fire that was not delivered counts as retried
 */
export function firesOf(attempts: readonly FireView[], alarm?: AlarmNow): Fire[] {
  const byFire = Map.groupBy(attempts, ({ fire_id }) => fire_id);
  return [...byFire.values()].map((ofFire) => fireOf(ofFire, alarm));
}

const ATTEMPT_EVENTS = {
  delivered: 'fired',
  failed: 'not_delivered',
  unknown: 'delivery_unknown',
  missed: 'missed',
  skipped: 'skipped',
} as const;

function attemptEvent(attempt: FireView, fire: Fire): FireEvent {
  const { outcome, error, accepted_at, finished_at } = attempt;
  const ended = Date.parse(accepted_at ?? finished_at);
  // A short turn may end before chronosd records that its wake was accepted.
  const turn = [fire.turnStartedAt, instantOf(fire.turn?.waits?.at), fire.turnFinishedAt];
  const at = outcome === 'delivered' ? Math.min(ended, ...turn.filter((one) => one !== undefined)) : ended;
  return { kind: ATTEMPT_EVENTS[outcome], at, attempt, error: error === undefined ? undefined : plainError(error) };
}

/** The events of a fire, oldest first: every attempt, a temporary failure of its turn, and the end of the turn. */
export function eventsOf(fire: Fire): FireEvent[] {
  const { attempts, turn, state, turnFinishedAt } = fire;
  const events = attempts.map((attempt) => attemptEvent(attempt, fire));
  const attempt = attempts[0]!;
  if (turn?.waits) {
    const { at, error } = turn.waits;
    events.push({ kind: 'turn_waits', at: Date.parse(at), attempt, error: error && plainError(error) });
  }
  if (turnFinishedAt !== undefined)
    events.push({ kind: state as FireEvent['kind'], at: turnFinishedAt, attempt, error: fire.error });
  return events.sort((one, other) => one.at - other.at);
}

/** An envelope's message, whole or cut: errors keep the first 300 characters of an answer. */
const ENVELOPE = /\{"ok":false,"error":\{.*?"message":"((?:[^"\\]|\\.)*)/;

/**
 * An error for people: the message of an envelope instead of the envelope; stores keep the whole answer.
 * `the router answered 503: {"ok":false,"error":{"message":"it sleeps"…` becomes `the router answered 503: it sleeps`.
 */
export function plainError(error: string): string {
  const match = ENVELOPE.exec(error);
  if (!match) return error;
  let message: string;
  try {
    message = JSON.parse(`"${match[1]}"`);
  } catch {
    return error;
  }
  return `${error.slice(0, match.index)}${plainError(message)}`;
}
