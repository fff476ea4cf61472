/** The activity of an agent as entries in time, from the fire ledger and the executor's intents. Pure. */
import type { AbsenceReason, AlarmView, FireView } from '../../wire/alarm.ts';
import type { IntentView } from '../../wire/intent-view.ts';

/**
 * `rang`: a wake was accepted. `reply`, `turn_failed`, `turn_unknown`: how its turn ended. `turn_waits`: it failed with
 * a temporary error and is retried. `wake_failed`: an attempt was not accepted. `missed`: it was never delivered.
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
  | 'task'
  | 'approval';

/** One line of `reveille log --json`. Fields that do not apply are absent. */
export type LogEntry = {
  /** Time of the event, RFC 3339. */
  at: string;
  kind: LogKind;
  alarm_id?: string;
  /** The alarm's label, or the beginning of its message. */
  label?: string;
  fire_id?: string;
  lateness_ms?: number;
  /** The reason of the lateness, where known. */
  late_because?: AbsenceReason;
  missed_count?: number;
  /** Milliseconds until its machine was ready, where known. */
  machine_ready_ms?: number;
  conversation_id?: string;
  turn_id?: string;
  /** The agent's reply, as far as chronosd stores it, or the text of the intent. */
  text?: string;
  error?: string;
  /** Time of the next attempt of the turn, RFC 3339. */
  retry_at?: string;
  intent_id?: string;
  /** Status of an intent, or `approved` or `denied` of an answer. */
  status?: string;
  /** The step of an answer, and the name of the approver's key in the executor's roster. */
  node_id?: string;
  by?: string;
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

const failed = (error: string | undefined) => (error === undefined ? {} : { error });

/** Turn reports as entries: a temporary failure, and the end. */
function turnEntry(about: Pick<LogEntry, 'alarm_id' | 'label' | 'fire_id'>, turn: FireView['turn']): LogEntry[] {
  if (!turn) return [];
  const { turn_id, conversation_id, finished_at, ok, error, waits, reply } = turn;
  const turnFields = {
    ...about,
    ...(turn_id === undefined ? {} : { turn_id }),
    ...(conversation_id === undefined ? {} : { conversation_id }),
  };
  const entries: LogEntry[] = waits
    ? [{ ...turnFields, kind: 'turn_waits', at: waits.at, retry_at: waits.retry_at, ...failed(waits.error) }]
    : [];
  if (finished_at === undefined) return entries;
  const kind = ok === undefined ? 'turn_unknown' : ok ? 'reply' : 'turn_failed';
  const replyText = reply === undefined ? {} : { text: reply };
  return [...entries, { at: finished_at, kind, ...turnFields, ...replyText, ...failed(error) }];
}

const earliest = (...instants: readonly (string | undefined)[]) =>
  instants.filter((at) => at !== undefined).reduce((one, other) => (Date.parse(other) < Date.parse(one) ? other : one));

/**
 * The history of an alarm.
 *
 * @param fires its attempts, latest first
 */
export function entriesOf(alarm: NamedAlarm, fires: readonly FireView[]): LogEntry[] {
  const label = nameOf(alarm);
  const entries: LogEntry[] = [];
  const turns = new Set<string>();
  for (const fire of fires) {
    const {
      fire_id,
      outcome,
      lateness_ms,
      late_because,
      missed_count,
      started_at,
      machine_ready_at,
      accepted_at,
      finished_at,
      error,
      turn,
    } = fire;
    const about = { alarm_id: alarm.id, label, fire_id };
    const missed = missed_count === undefined ? {} : { missed_count };
    const ready =
      machine_ready_at === undefined ? {} : { machine_ready_ms: Date.parse(machine_ready_at) - Date.parse(started_at) };
    const late = late_because === undefined ? {} : { late_because };
    if (outcome === 'delivered')
      entries.push({
        // A short turn may end before chronosd records that its wake was accepted.
        at: earliest(accepted_at ?? finished_at, turn?.started_at, turn?.waits?.at, turn?.finished_at),
        kind: 'rang',
        ...about,
        lateness_ms,
        ...late,
        ...missed,
        ...ready,
      });
    else {
      const kind = outcome === 'missed' ? 'missed' : 'wake_failed';
      entries.push({ at: finished_at, kind, ...about, ...late, ...(error === undefined ? {} : { error }) });
    }
    if (turns.has(fire_id)) continue;
    turns.add(fire_id);
    entries.push(...turnEntry(about, turn));
  }
  return entries.sort(inOrder);
}

/** The history of an intent: approvals, waiting, and its end. */
export function entriesOfIntent(intent: IntentView): LogEntry[] {
  const { intent_id, status, created_at, ended_at, prose, conversation_id, error, nodes } = intent;
  const about = {
    intent_id,
    ...(conversation_id === undefined ? {} : { conversation_id }),
    ...(prose === undefined ? {} : { text: prose }),
  };
  const approvals = nodes.flatMap(({ node_id, answered }): LogEntry[] => {
    if (!answered) return [];
    const { at, approved, name } = answered;
    const by = name === undefined ? {} : { by: name };
    return [{ at, kind: 'approval', ...about, node_id, status: approved ? 'approved' : 'denied', ...by }];
  });
  const failed = error === undefined ? {} : { error: error.message };
  return [...approvals, { at: ended_at ?? created_at, kind: 'task', ...about, status, ...failed }];
}
