/** The activity of an agent as entries in time, from the fire ledger and the executor's intents. Pure. */
import type { AlarmView, FireView } from '../../wire/alarm.ts';
import { eventsOf, type FireEvent, firesOf } from '../../wire/fire.ts';
import type { IntentView } from '../../wire/intent-view.ts';
import { formatInstant } from '../../wire/rfc3339.ts';

/**
 * `rang`: a wake was accepted. `reply`, `turn_failed`, `turn_unknown`: how its turn ended. `turn_waits`: it failed with
 * a temporary error and is retried. `wake_failed`: an attempt was not accepted. `missed`: it was never delivered. `skipped`: a policy dropped it.
 * `task`: an intent. `approval`: a question about one of its steps was answered.
 */
export type LogKind =
  | 'rang'
  | 'reply'
  | 'turn_failed'
  | 'turn_unknown'
  | 'turn_waits'
  | 'wake_failed'
  | 'missed'
  | 'skipped'
  | 'task'
  | 'approval';

type Undefinable<T> = { [Name in keyof T]?: T[Name] | undefined };
type DeliveryFields = Undefinable<
  Pick<FireView, 'fire_id' | 'lateness_ms' | 'late_because' | 'missed_count' | 'error'>
>;
type TurnFields = Undefinable<Pick<NonNullable<FireView['turn']>, 'turn_id' | 'conversation_id' | 'usage'>>;

/** One line of `reveille log --json`. Fields that do not apply are absent there. */
export type LogEntry = DeliveryFields &
  TurnFields & {
    /** Time of the event, RFC 3339. */
    at: string;
    kind: LogKind;
    alarm_id?: string | undefined;
    /** The alarm's label, or the beginning of its message. */
    label?: string | undefined;
    /** Milliseconds until its machine was ready, where known. */
    machine_ready_ms?: number | undefined;
    /** The agent's reply, as far as chronosd stores it, or the text of the intent. */
    text?: string | undefined;
    /** Time of the next attempt of the turn, RFC 3339. */
    retry_at?: string | undefined;
    intent_id?: string | undefined;
    /**
     * Status of an intent, `approved` or `denied` of an answer, or `unknown` of a wake that may have been accepted.
     */
    status?: string | undefined;
    /** The step of an answer, and the name of the approver's key in the executor's roster. */
    node_id?: string | undefined;
    by?: string | undefined;
  };

/** Identifies an entry. */
export const keyOf = ({ kind, fire_id, intent_id, node_id, retry_at, status, at }: LogEntry) =>
  JSON.stringify([
    kind,
    fire_id,
    intent_id,
    node_id,
    retry_at,
    status,
    kind === 'wake_failed' || kind === 'missed' ? at : null,
  ]);

export const inOrder = (one: LogEntry, other: LogEntry) => Date.parse(one.at) - Date.parse(other.at);

const LABEL_CHARACTERS = 60;

/** Label and message of an alarm. */
export type NamedAlarm = Pick<AlarmView, 'id' | 'label' | 'wake_message'>;

const nameOf = ({ label, wake_message }: NamedAlarm) => label || wake_message.slice(0, LABEL_CHARACTERS).toWellFormed();

const KINDS: Readonly<Record<FireEvent['kind'], LogKind>> = {
  fired: 'rang',
  missed: 'missed',
  skipped: 'skipped',
  not_delivered: 'wake_failed',
  delivery_unknown: 'wake_failed',
  turn_waits: 'turn_waits',
  turn_done: 'reply',
  turn_failed: 'turn_failed',
  turn_unknown: 'turn_unknown',
};

/** Fields about the delivery of a fire. */
function deliveryFields({ kind, attempt }: FireEvent): Partial<LogEntry> {
  const { lateness_ms, late_because, missed_count, machine_ready_at, started_at, error } = attempt;
  if (kind === 'missed' || kind === 'skipped') return { late_because, error, missed_count };
  if (kind !== 'fired') return { late_because, error, status: kind === 'delivery_unknown' ? 'unknown' : undefined };
  const machine_ready_ms =
    machine_ready_at === undefined ? undefined : Date.parse(machine_ready_at) - Date.parse(started_at);
  return { lateness_ms, late_because, missed_count, machine_ready_ms };
}

/** Fields about the turn of a fire. */
function turnFields({ kind, attempt: { turn } }: FireEvent): Partial<LogEntry> {
  const { turn_id, conversation_id, waits, reply, usage, error } = turn!;
  const rest =
    kind === 'turn_waits' ? { retry_at: waits!.retry_at, error: waits!.error } : { text: reply, usage, error };
  return { turn_id, conversation_id, ...rest };
}

/**
 * The history of an alarm.
 *
 * @param attempts entries of its ledger, latest first
 */
export function entriesOf(alarm: NamedAlarm, attempts: readonly FireView[]): LogEntry[] {
  const label = nameOf(alarm);
  const entries = firesOf(attempts).flatMap((fire) =>
    eventsOf(fire).map((event): LogEntry => {
      const isTurn = event.kind.startsWith('turn_');
      return {
        ...{ at: formatInstant(event.at), kind: KINDS[event.kind] },
        ...{ alarm_id: alarm.id, label, fire_id: fire.fireId },
        ...(isTurn ? turnFields(event) : deliveryFields(event)),
      };
    }),
  );
  return entries.sort(inOrder);
}

/** The history of an intent: approvals, waiting, and its end. */
export function entriesOfIntent(intent: IntentView): LogEntry[] {
  const { intent_id, status, created_at, ended_at, prose, conversation_id, error, nodes } = intent;
  const about = { intent_id, conversation_id, text: prose };
  const approvals = nodes.flatMap(({ node_id, answered }): LogEntry[] => {
    if (!answered) return [];
    const { at, approved, name: by } = answered;
    return [{ at, kind: 'approval', ...about, node_id, status: approved ? 'approved' : 'denied', by }];
  });
  return [...approvals, { at: ended_at ?? created_at, kind: 'task', ...about, status, error: error?.message }];
}
