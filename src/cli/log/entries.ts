/** What an agent did, as entries in time: made of the fire ledger and of the executor's intents. Pure. */
import type { AbsenceReason, AlarmView, FireView } from '../../wire/alarm.ts';
import type { IntentView } from '../../wire/intent-view.ts';

/**
 * `rang`: a wake was accepted. `reply`, `turn_failed`, `turn_unknown`: how its turn ended. `turn_waits`: it failed for a
 * reason that passes and is tried again. `wake_failed`: an attempt was not accepted. `missed`: it was never delivered.
 * `task`: what cannot be undone, at the executor. `approval`: a question about a step of it was answered.
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

/** One line of `reveille log --json`. Members that do not apply are absent. */
export type LogEntry = {
  /** When it happened, RFC 3339. */
  at: string;
  kind: LogKind;
  alarm_id?: string;
  /** The alarm's label, or the beginning of its message. */
  label?: string;
  fire_id?: string;
  lateness_ms?: number;
  /** Why it is late, where that is known. */
  late_because?: AbsenceReason;
  missed_count?: number;
  /** How long its machine took to be ready, in milliseconds, where that is known. */
  machine_ready_ms?: number;
  conversation_id?: string;
  turn_id?: string;
  /** What the agent answered, as far as chronosd keeps it; what the task is. */
  text?: string;
  error?: string;
  /** When the turn is tried again, RFC 3339. */
  retry_at?: string;
  intent_id?: string;
  /** Of a task, how it stands; of an answer, `approved` or `denied`. */
  status?: string;
  /** The step that an answer is about, and whose key it is, as the executor's roster calls it. */
  node_id?: string;
  by?: string;
};

/** What makes an entry another one than those before it. */
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

/** What names an alarm. */
export type NamedAlarm = Pick<AlarmView, 'id' | 'label' | 'wake_message'>;

const nameOf = ({ label, wake_message }: NamedAlarm) => label || wake_message.slice(0, LABEL_CHARACTERS).toWellFormed();

const failed = (error: string | undefined) => (error === undefined ? {} : { error });

/** That a turn failed for a reason that passes, and how it ended. */
function turnEntry(about: Pick<LogEntry, 'alarm_id' | 'label' | 'fire_id'>, turn: FireView['turn']): LogEntry[] {
  if (!turn) return [];
  const { turn_id, conversation_id, finished_at, ok, error, waits, reply } = turn;
  const told = {
    ...about,
    ...(turn_id === undefined ? {} : { turn_id }),
    ...(conversation_id === undefined ? {} : { conversation_id }),
  };
  const entries: LogEntry[] = waits
    ? [{ ...told, kind: 'turn_waits', at: waits.at, retry_at: waits.retry_at, ...failed(waits.error) }]
    : [];
  if (finished_at === undefined) return entries;
  const kind = ok === undefined ? 'turn_unknown' : ok ? 'reply' : 'turn_failed';
  const said = reply === undefined ? {} : { text: reply };
  return [...entries, { at: finished_at, kind, ...told, ...said, ...failed(error) }];
}

const earliest = (...instants: readonly (string | undefined)[]) =>
  instants.filter((at) => at !== undefined).reduce((one, other) => (Date.parse(other) < Date.parse(one) ? other : one));

/**
 * What has become of an alarm.
 *
 * @param fires attempts at it, latest first
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
        // A short turn may be over before chronosd has read that its wake was taken.
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

/** What has become of a task: whose answers let it go on, and that it waits for somebody, or how it ended. */
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
