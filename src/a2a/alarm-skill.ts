/** The skill with which another agent sets an alarm for the user: a message with one data part, `{"alarm": {…}}`. */
import { z } from 'zod';
import type { AlarmCreateBody, ChronosClient } from '../chronos/client.ts';
import { alarmCreateSchema } from '../wire/alarm.ts';
import { encodeJson, parseJsonObject, sliceAt } from '../wire/json.ts';
import { parseOrThrow } from '../wire/validate.ts';

/**
 * The fields that another agent may set. They exclude commands, checks, chains, tools, channels and the user's
 * conversations.
 */
const FIELDS = {
  kind: true,
  wake_message: true,
  label: true,
  when: true,
  delay_seconds: true,
  fire_at: true,
  cron_expr: true,
  rrule: true,
  timezone: true,
  payload: true,
  max_lateness_seconds: true,
} as const;

export const ALARM_FIELDS_OF_AGENTS = Object.keys(FIELDS) as readonly (keyof typeof FIELDS)[];

const alarmSchema = alarmCreateSchema.pick(FIELDS);

/** The source text of the alarm in a message; `undefined` for any other message. */
export function alarmIn(data: readonly string[]): string | undefined {
  const [only] = data;
  return data.length === 1 && only !== undefined ? sliceAt(only, ['alarm']) : undefined;
}

export type AlarmSetter = Pick<ChronosClient, 'createAlarm'>;

export type AlarmRequest = {
  /** Source text. */
  readonly alarm: string;
  readonly callerName: string;
  /** The conversation in which the alarm wakes the agent. */
  readonly conversationId: string;
  /** The same for a repeated message. */
  readonly key: string;
};

/** Instants keep the text of the caller: chronosd parses them. */
const instants = z.looseObject({ fire_at: z.string().optional() });

/**
 * Sets the alarm with the caller as its author.
 *
 * @returns the alarm for the answer
 * @throws ReveilleError `invalid_request` naming the field
 */
export async function setAlarm(alarms: AlarmSetter, request: AlarmRequest) {
  const { alarm, callerName, conversationId, key } = request;
  const given = parseJsonObject(alarm, ['payload']);
  const { wake_message, ...fields } = parseOrThrow(alarmSchema, given);
  const { fire_at: fireAt } = instants.parse(given);
  const body = {
    ...fields,
    ...(fireAt === undefined ? {} : { fire_at: fireAt }),
    wake_message,
    label: fields.label ?? `set by ${callerName}`.slice(0, 200).toWellFormed(),
    conversation_id: conversationId,
    idempotency_key: key,
  } as AlarmCreateBody;
  const { id, status, next_fire_at, reading } = await alarms.createAlarm(body);
  return encodeJson({ alarm: { id, status, next_fire_at, reading } });
}
