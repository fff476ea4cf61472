/** The event types, and the mapping from wakes and daemon events to them. */
import { z } from 'zod';
import type { ChronosEvent, ChronosEventType } from '../../wire/chronos-event.ts';
import { intentIdSchema } from '../../wire/executor.ts';
import type { IntentEvent } from '../../wire/intent-event.ts';
import { encodeJson, parseJsonObject } from '../../wire/json.ts';
import type { McpEndpoint, RemoteScope } from '../../wire/remote-caller.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { SetBy } from '../../wire/set-by.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { Wake } from '../../wire/wake.ts';

/** Daemons whose event streams are read. `alarm.due` has no stream: the router reports it with each wake. */
export type Source = 'chronosd' | 'executor';

/** Members of an event by which subscriptions select. */
export type Facts = {
  readonly alarm_id?: string | undefined;
  readonly label?: string | undefined;
  /** The client that set the alarm. */
  readonly client_id?: string | undefined;
  readonly intent_id?: string | undefined;
};

/** An event before it is stored. `eventId` is derived from its cause, so repeated reports have the same. */
export type NewEvent = {
  readonly eventId: string;
  readonly name: string;
  readonly at: number;
  readonly facts: Facts;
  /** JSON. */
  readonly data: string;
};

const alarmArguments = z.strictObject({
  alarm_id: z.string().min(1).max(64).optional().describe('Only events of this alarm.'),
  label: z.string().min(1).max(200).optional().describe('Only events of alarms with exactly this label.'),
  own: z.boolean().optional().describe('Only events of alarms that this client set.'),
});
const intentArguments = z.strictObject({
  intent_id: intentIdSchema.optional().describe('Only events of this intent.'),
});

const instant = z.iso.datetime({ offset: true });
const ofAlarm = {
  alarm_id: z.string().optional(),
  fire_id: z.string().describe('The id of one occurrence of the alarm.'),
  label: z.string().optional(),
};
const ofTurn = { ...ofAlarm, turn_id: z.string().optional(), conversation_id: z.string().optional() };
const payloads = {
  due: z.looseObject({
    ...ofAlarm,
    message: z.string().describe('The message of the alarm.'),
    payload: z.unknown().optional(),
    scheduled_for: instant,
    missed_count: z.int().optional(),
    late_because: z.string().optional(),
    conversation_id: z.string().optional(),
    set_by: z.unknown().optional(),
    text_by: z.unknown().optional(),
    omitted: z.array(z.string()).optional().describe('Members that were too large; read them with alarm_list.'),
  }),
  missed: z.looseObject(ofAlarm),
  finished: z.looseObject({ ...ofTurn, outcome: z.string(), reply: z.string().optional() }),
  failed: z.looseObject({ ...ofTurn, outcome: z.string().optional(), error: z.string().optional() }),
  waiting: z.looseObject({ intent_id: z.string(), node_id: z.string() }),
};

export type EventType = {
  readonly endpoint: McpEndpoint;
  readonly scope: RemoteScope;
  /** `undefined`: the router reports it with each wake. */
  readonly source: Source | undefined;
  readonly description: string;
  readonly arguments: z.ZodType<Arguments>;
  readonly payload: z.ZodType;
};
/** Arguments of a subscription. Absent members select everything. */
export type Arguments = { readonly [Name in keyof Facts]?: Facts[Name] } & { readonly own?: boolean | undefined };

const ofChronos = (source: Source | undefined, description: string, payload: z.ZodType): EventType => ({
  ...{ endpoint: 'chronos', scope: 'alarms:read', source, description, payload },
  arguments: alarmArguments,
});

export const EVENT_TYPES: ReadonlyMap<string, EventType> = new Map([
  [
    'alarm.due',
    ofChronos(
      undefined,
      "An alarm of the user is due. If the user has no machine here, this event is the alarm's delivery: act on its message.",
      payloads.due,
    ),
  ],
  [
    'alarm.missed',
    ofChronos('chronosd', 'An alarm did not fire within its grace period, and will not be delivered.', payloads.missed),
  ],
  ['turn.finished', ofChronos('chronosd', "A turn of the user's agent for an alarm has finished.", payloads.finished)],
  ['turn.failed', ofChronos('chronosd', 'The turn of an alarm has failed, and is not tried again.', payloads.failed)],
  [
    'intent.waiting',
    {
      ...{ endpoint: 'intents', scope: 'intents:read', source: 'executor', payload: payloads.waiting },
      description: 'A step of an intent waits for the approval of the user. Only the user can answer.',
      arguments: intentArguments,
    } satisfies EventType,
  ],
]);

/** The types of an endpoint, as `events/list` shows them. */
export function catalogueOf(endpoint: McpEndpoint): object[] {
  return [...EVENT_TYPES]
    .filter(([, type]) => type.endpoint === endpoint)
    .map(([name, { description, arguments: given, payload }]) => ({
      ...{ name, description, delivery: ['poll', 'push', 'webhook'] },
      inputSchema: z.toJSONSchema(given, { io: 'input' }),
      payloadSchema: z.toJSONSchema(payload, { io: 'input' }),
    }));
}

/** @throws ReveilleError `invalid_request` naming the argument */
export const parseArguments = (type: EventType, given: unknown): Arguments => parseOrThrow(type.arguments, given ?? {});

/** Whether a subscription selects an event. @param clientId the client that subscribed */
export function selects(given: Arguments, facts: Facts, clientId: string): boolean {
  return (
    (given.alarm_id === undefined || given.alarm_id === facts.alarm_id) &&
    (given.label === undefined || given.label === facts.label) &&
    (given.intent_id === undefined || given.intent_id === facts.intent_id) &&
    (given.own !== true || facts.client_id === clientId)
  );
}

/** An event id without dots: it becomes `webhook-id`, which is signed without them. */
const idOf = (...parts: readonly string[]) => parts.join(':').replaceAll('.', '%2E');

/** Maximum size of an event's data: with the other members it stays below 256 KiB, the limit of a webhook. */
const DATA_MAX_BYTES = 240 * 1024;

const clientOf = (by: SetBy | undefined) => (by?.kind === 'client' ? by.client_id : undefined);

/** The beginning of a text, short enough for the data of an event. */
function beginningOf(text: string): string {
  let part = text;
  while (Buffer.byteLength(JSON.stringify(part)) > DATA_MAX_BYTES - 2048) part = part.slice(0, part.length >> 1);
  return part.toWellFormed();
}

/** The event `alarm.due` of a wake. Each attempt of a fire gives the same event id. */
export function dueEvent(wake: Wake): NewEvent {
  const { alarm_id, fire_id, label, message, payload, scheduled_for, missed_count, set_by, text_by } = wake;
  const { late_because, conversation_id } = wake;
  const rest = {
    ...{ alarm_id, fire_id, label, scheduled_for: formatInstant(scheduled_for) },
    ...(missed_count > 0 && { missed_count }),
    ...{ late_because, conversation_id, set_by, text_by },
  };
  const fits = (data: string) => Buffer.byteLength(data) <= DATA_MAX_BYTES;
  let data = encodeJson({ ...rest, message, payload });
  if (!fits(data)) data = encodeJson({ ...rest, message, omitted: ['payload'] });
  if (!fits(data)) {
    const omitted = payload === undefined ? ['message'] : ['message', 'payload'];
    data = encodeJson({ ...rest, message: beginningOf(message), omitted });
  }
  const facts = { alarm_id, label, client_id: clientOf(set_by) };
  return { eventId: idOf(fire_id, 'due'), name: 'alarm.due', at: scheduled_for, facts, data };
}

/** The events that are read from chronosd. */
export const CHRONOS_TYPES: readonly ChronosEventType[] = ['fire.missed', 'turn.finished', 'turn.failed'];
const ENDINGS: { readonly [Type in ChronosEventType]?: readonly [string, string] } = {
  'fire.missed': ['alarm.missed', 'missed'],
  'turn.finished': ['turn.finished', 'finished'],
  'turn.failed': ['turn.failed', 'failed'],
};

/** The members of an alarm that its events need. */
export type AlarmFacts = {
  readonly label?: string | undefined;
  readonly made_by?: { readonly client_id: string } | undefined;
};

/** @returns `undefined` for a chronosd event without an event type here, such as a turn that is tried again */
export function ofChronosEvent(event: ChronosEvent, alarm: AlarmFacts): NewEvent | undefined {
  const [name, ending] = ENDINGS[event.type] ?? [];
  const { alarm_id, fire_id, outcome, turn_id, conversation_id, reply, error, retry_at } = event;
  if (name === undefined || ending === undefined || fire_id === undefined || retry_at !== undefined) return undefined;
  const { label, made_by } = alarm;
  const ofFire = { alarm_id, fire_id, label };
  const data = name === 'alarm.missed' ? ofFire : { ...ofFire, outcome, turn_id, conversation_id, reply, error };
  const facts = { alarm_id, label, client_id: made_by?.client_id };
  return { eventId: idOf(fire_id, ending), name, at: Date.parse(event.at), facts, data: encodeJson(data) };
}

/** @returns `undefined` for an executor event without an event type here */
export function ofIntentEvent({ type, at, intent_id, node_id }: IntentEvent): NewEvent | undefined {
  if (type !== 'gate.invoked' || at === undefined || intent_id === undefined || node_id === undefined) return undefined;
  const instantMs = Date.parse(at);
  return {
    // A step can wait again later.
    ...{ eventId: idOf(intent_id, node_id, String(instantMs), 'waiting'), name: 'intent.waiting', at: instantMs },
    facts: { intent_id },
    data: encodeJson({ intent_id, node_id }),
  };
}

/** Members of an event about the conversation of a turn. */
const OF_CONVERSATION = ['reply', 'conversation_id', 'turn_id'] as const;

/** The data of an event for a client: answers and conversations of alarms of others need a scope of their own. */
export function dataFor(
  { data, facts }: Pick<NewEvent, 'data' | 'facts'>,
  { clientId, scopes }: { readonly clientId: string; readonly scopes: readonly RemoteScope[] },
): string {
  if (facts.client_id === clientId || scopes.includes('conversations:read')) return data;
  const members = parseJsonObject(data, ['payload']);
  if (OF_CONVERSATION.every((name) => members[name] === undefined)) return data;
  for (const name of OF_CONVERSATION) delete members[name];
  return encodeJson(members);
}
