/** News for notifications, from the fire ledger and the executor's intents. Pure. */
import { formatLateness } from '../kit/clock/duration.ts';
import { clip } from '../kit/text/excerpt.ts';
import { visible } from '../kit/text/visible.ts';
import type { AlarmView, FireView } from '../wire/alarm.ts';
import type { gateSchema } from '../wire/executor.ts';
import { eventsOf, type Fire, type FireEvent, firesOf } from '../wire/fire.ts';
import type { IntentView } from '../wire/intent-view.ts';
import { WAITS_FOR_ANSWER } from '../wire/turn-report.ts';
import { reportsNothing } from '../wire/wake.ts';

/**
 * Kinds of news. `approvals`: a question waits, of the executor or of an MCP server. `failures`: a turn or an intent failed, or a wake cannot be delivered.
 * `missed`: an occurrence was missed, or a fire replaces missed ones. `rings`: every fire, and the agent's reply.
 */
export const NOTIFICATION_KINDS = ['approvals', 'failures', 'missed', 'rings'] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

/** A question at the executor, with the fields that an answer needs. */
export type Question = {
  readonly intent_id: string;
  readonly node_id: string;
  readonly call_sha256: string;
  readonly displayed_sha256: string;
  /** RFC 3339. */
  readonly expires_at: string;
};

/** One event. Title and text show foreign text with hidden characters made visible. */
export type News = {
  /** Unique for this user, and the same whenever the event is found again. */
  readonly key: string;
  /** A channel gets the event if it has one of these kinds. */
  readonly kinds: readonly NotificationKind[];
  /** Time of the event, epoch milliseconds. */
  readonly at: number;
  /** One line. */
  readonly title: string;
  readonly text: string;
  /** The alarm, fire, conversation, turn or intent of the event. */
  readonly about: Readonly<Record<string, string>>;
  readonly question?: Question | undefined;
  /** Names of channels of the user that get the event too, whatever their kinds are. */
  readonly channels?: readonly string[] | undefined;
  /** It waits until then for an event that settles it, epoch milliseconds. */
  readonly waitsUntil?: number | undefined;
  /** The key of an event that waited for this one: it is sent now, or never. */
  readonly settles?: { readonly key: string; readonly isSent: boolean } | undefined;
};

const TITLE_CHARACTERS = 120;
/** Every channel has a lower limit of its own. */
const TEXT_CHARACTERS = 8000;
/** A wake is retried within seconds; a notification follows when that did not help. */
const TOLD_FROM_ATTEMPT = 3;
/** The fire of a running turn is notified after this time: until then, the turn may end with nothing to report. */
const TURN_WAIT_MS = 30_000;
const NO_REASON = 'no reason is recorded';

const shownText = (text: string) =>
  visible(clip(text, TEXT_CHARACTERS).replaceAll('\r\n', '\n')).replaceAll('\r', '\\r');
const shownLine = (text: string) => visible(clip(text, TITLE_CHARACTERS).replaceAll(/[\r\n\t]+/g, ' '));

/** Label and message of an alarm. */
type NamedAlarm = Pick<AlarmView, 'id' | 'label' | 'wake_message'>;
const nameOf = ({ label, wake_message }: NamedAlarm) => shownLine(label || wake_message);

const firedKey = (fireId: string) => `rang ${fireId}`;

function deliveryNews(
  alarm: AlarmView,
  { next, turn, state, machineReadyAt }: Fire,
  { kind, at, attempt, error }: FireEvent,
): News | undefined {
  const { fire_id, lateness_ms, late_because, missed_count = 0 } = attempt;
  const name = nameOf(alarm);
  const common = { about: { alarm_id: alarm.id, fire_id }, at };
  if (kind === 'fired') {
    const stands = missed_count > 0 ? `, for ${missed_count} missed` : '';
    const isAbsence = alarm.expect !== undefined;
    const kinds: NotificationKind[] = missed_count > 0 || isAbsence ? ['rings', 'missed'] : ['rings'];
    const expected = isAbsence && alarm.waits_for !== undefined ? `\nIt fires after ${alarm.waits_for}.` : '';
    const text = `${formatLateness(lateness_ms, late_because)}${stands}${expected}\n${alarm.wake_message}`;
    // Other targets may report no turn, or only its end.
    const isReported = machineReadyAt !== undefined || turn !== undefined;
    // An absence is notified whatever the turn reports.
    const isOpen = isReported && !isAbsence && (state === 'accepted' || state === 'turn_running');
    const title = `${isAbsence ? 'Expected' : 'Rang'}: ${name}`;
    return {
      ...{ ...common, key: firedKey(fire_id), kinds, title, text: shownText(text) },
      ...(isOpen ? { waitsUntil: at + TURN_WAIT_MS } : {}),
    };
  }
  // The owner asked for it with a policy.
  if (kind === 'skipped') return undefined;
  const why = shownText(error ?? NO_REASON);
  if (kind === 'missed')
    return { ...common, key: `missed ${fire_id}`, kinds: ['missed'], title: `Missed: ${name}`, text: why };
  const isAbandoned = turn === undefined && next.step === 'redrive';
  if (attempt.attempt < TOLD_FROM_ATTEMPT && !isAbandoned) return undefined;
  const title = kind === 'delivery_unknown' ? 'Delivery unknown' : 'Not delivered';
  return {
    ...{ ...common, key: `wake ${fire_id}`, kinds: ['failures'], title: `${title}: ${name}` },
    text: `${why}\n${isAbandoned ? 'It was abandoned' : 'It is retried'}; see: reveille alarm show ${alarm.id}`,
  };
}

function turnNews(alarm: AlarmView, { fireId, missedCount, turn = {} }: Fire, { kind, at, error }: FireEvent): News {
  const { turn_id, conversation_id, waits, reply = '' } = turn;
  const name = nameOf(alarm);
  const about = {
    ...{ alarm_id: alarm.id, fire_id: fireId },
    ...(turn_id === undefined ? {} : { turn_id }),
    ...(conversation_id === undefined ? {} : { conversation_id }),
  };
  const isResult = kind !== 'turn_waits';
  const told = (title: string, text: string): News => ({
    ...{ key: `${isResult ? 'turn' : 'waits'} ${fireId}`, about, at },
    ...{ kinds: [kind === 'turn_done' ? 'rings' : 'failures'], title: `${title}: ${name}`, text: shownText(text) },
    ...(isResult && alarm.deliver !== undefined ? { channels: alarm.deliver } : {}),
    settles: { key: firedKey(fireId), isSent: true },
  });
  if (kind === 'turn_done' && reportsNothing(reply)) {
    const { key, title, text } = told('Nothing to report', reply);
    // The agent has nothing to say; that other occurrences were missed is not for it to silence.
    return { key, about, at, kinds: [], title, text, settles: { key: firedKey(fireId), isSent: missedCount > 0 } };
  }
  if (kind === 'turn_done') return told('Done', reply);
  if (kind === 'turn_failed') return told('Turn failed', error ?? NO_REASON);
  if (kind === 'turn_unknown') return told('Outcome unknown', error ?? 'the outcome of the turn is not known');
  if (error?.startsWith(WAITS_FOR_ANSWER)) {
    const text = shownText(`The turn ${error}\nWithout an answer it goes on at ${waits!.retry_at}.`);
    // One for each question: its text ends with its id.
    const key = `asks ${fireId} ${error.slice(-24)}`;
    return {
      ...{ key, about, at, kinds: ['approvals'], title: `Asks you: ${name}`, text },
      settles: { key: firedKey(fireId), isSent: true },
    };
  }
  const why = error ?? 'it failed with a temporary error';
  return told('Turn failed, is retried', `${why}\nIt is retried at ${waits!.retry_at}.`);
}

/** The alarm names channels that the user does not have. The same names of an alarm are news once. */
export function unknownChannels(news: News, known: readonly string[]): News | undefined {
  const { channels = [], about, at } = news;
  const unknown = channels.filter((name) => !known.includes(name));
  if (unknown.length === 0) return undefined;
  const names = unknown.map((name) => JSON.stringify(name)).join(', ');
  const has = known.length === 0 ? 'you have none' : `you have ${known.join(', ')}`;
  return {
    ...{ key: `channels ${about.alarm_id} ${names}`, kinds: ['failures'], at, about },
    title: shownLine(`No channel ${names}`),
    text: shownText(`The result of a turn went to the other channels.
The alarm names ${names} in deliver, and ${has}.
Change it with: reveille alarm edit ${about.alarm_id} --deliver NAMES`),
  };
}

/**
 * The news of an alarm, oldest first.
 *
 * @param attempts entries of its ledger, latest first
 */
export function alarmNews(alarm: AlarmView, attempts: readonly FireView[]): News[] {
  return firesOf(attempts, alarm)
    .flatMap((fire) =>
      eventsOf(fire).map((event) =>
        event.kind.startsWith('turn_') ? turnNews(alarm, fire, event) : deliveryNews(alarm, fire, event),
      ),
    )
    .filter((news) => news !== undefined)
    .sort((one, other) => one.at - other.at);
}

type Gate = ReturnType<(typeof gateSchema)['parse']>;

/** A waiting question. The executor's text starts with the effect and marks foreign text. */
export function questionNews(intent: IntentView, gate: Gate, foundAt: number): News {
  const { intent_id } = intent;
  const { node_id, displayed_sha256, expires_at, call } = gate;
  return {
    key: `asked ${intent_id} ${node_id} ${displayed_sha256}`,
    kinds: ['approvals'],
    at: foundAt,
    title: shownLine(`Approve? ${call.tool}`),
    text: `${clip(gate.question, TEXT_CHARACTERS)}\nAnswer with: reveille intent approve ${intent_id} ${node_id}`,
    about: { intent_id, node_id },
    question: { intent_id, node_id, call_sha256: call.call_sha256, displayed_sha256, expires_at },
  };
}

/** An intent that failed or whose outcome is unknown; `undefined` for any other. */
export function taskNews(intent: IntentView): News | undefined {
  const { intent_id, status, ended_at, created_at, error, prose } = intent;
  if (status !== 'failed' && status !== 'unknown') return undefined;
  const task = prose ?? intent.intent?.verb ?? 'a task';
  const why = shownText(error?.message ?? NO_REASON);
  return {
    key: `task ${intent_id} ${status}`,
    kinds: ['failures'],
    at: Date.parse(ended_at ?? created_at),
    title: `${status === 'failed' ? 'Intent failed' : 'Outcome of an intent unknown'}: ${shownLine(task)}`,
    text: `${why}\nSee: reveille intent show ${intent_id}`,
    about: { intent_id },
  };
}
