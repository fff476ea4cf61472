/**
 * Converts crons of LangGraph's client (`CronsClient` of `@langchain/langgraph-sdk`) to alarms and back. Pure.
 *
 * A cron is a series. The payload of the alarm contains its input and its other members below `langgraph`. The presence
 * of that member distinguishes crons from the user's other alarms. A thread is a conversation.
 */
import { z } from 'zod';
import type { AlarmCreateBody, AlarmPatchBody } from '../chronos/client.ts';
import { type AlarmView, conversationIdSchema } from '../wire/alarm.ts';
import { ReveilleError } from '../wire/errors.ts';
import { encodeJson, parseJsonObject, RawJson } from '../wire/json.ts';
import { formatInstant } from '../wire/rfc3339.ts';

/** Members whose source text is kept, so that numbers keep their digits. */
const RAW = ['input', 'config', 'context', 'metadata'] as const;
const MARK = 'langgraph';

const raw = z.instanceof(RawJson);
const assistant = z.string().min(1).max(200);
const shared = {
  timezone: z.string().min(1).max(64).nullish(),
  input: raw.optional(),
  config: raw.optional(),
  context: raw.optional(),
  metadata: raw.optional(),
  enabled: z.boolean().nullish(),
  end_time: z.iso.datetime({ offset: true, local: true }).nullish(),
  on_run_completed: z.enum(['keep', 'delete']).nullish(),
  multitask_strategy: z.enum(['reject', 'enqueue', 'interrupt', 'rollback']).nullish(),
};
/** Members of runs without an equivalent in Reveille, each with the reason. */
const UNMAPPED: Readonly<Record<string, string>> = {
  interrupt_before: 'the agent asks for approval itself',
  interrupt_after: 'the agent asks for approval itself',
  webhook: 'add a channel with "reveille notify add webhook" instead',
  checkpoint_during: 'the turn of an alarm is always durable',
  durability: 'the turn of an alarm is always durable',
  stream_mode: 'an alarm runs without a stream',
  stream_subgraphs: 'an alarm runs without a stream',
  stream_resumable: 'an alarm runs without a stream',
};
const createSchema = z.strictObject({ schedule: z.string().min(1).max(200), assistant_id: assistant, ...shared });
const { multitask_strategy: _, ...editable } = shared;
const updateSchema = z.strictObject({ schedule: z.string().min(1).max(200).optional(), ...editable });

const SELECTED = [
  ...(['cron_id', 'assistant_id', 'thread_id', 'on_run_completed', 'end_time', 'schedule', 'timezone'] as const),
  ...(['created_at', 'updated_at', 'payload', 'user_id', 'next_run_date', 'metadata', 'enabled', 'now'] as const),
] as const;
const SORTED = ['cron_id', 'assistant_id', 'thread_id', 'created_at', 'updated_at', 'next_run_date'] as const;

const filters = {
  assistant_id: assistant.nullish(),
  thread_id: z.string().max(200).nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
};
const searchSchema = z.strictObject({
  ...filters,
  enabled: z.boolean().nullish(),
  limit: z.int().min(1).max(1000).default(10),
  offset: z.int().min(0).max(100_000).default(0),
  sort_by: z.enum(SORTED).nullish(),
  sort_order: z.enum(['asc', 'desc']).nullish(),
  select: z.array(z.enum(SELECTED)).max(SELECTED.length).nullish(),
});
export type CronSearch = z.output<typeof searchSchema>;
const countSchema = z.strictObject(filters);
export type CronFilter = z.output<typeof countSchema> & { enabled?: boolean | null | undefined };

/** The member of a payload that contains a cron. */
type Kept = { assistant_id: string; updated_at?: string } & { [N in (typeof RAW)[number]]?: RawJson | undefined };

/** A cron as the client reads it. */
export type Cron = Readonly<{
  cron_id: string;
  assistant_id: string;
  thread_id: string | null;
  user_id: string;
  schedule: string;
  timezone: string | null;
  next_run_date: string | null;
  end_time: string | null;
  created_at: string;
  updated_at: string;
  enabled: boolean;
  on_run_completed: 'keep';
  metadata: Readonly<Record<string, unknown>>;
  payload: RawJson;
}>;

/** A sentence for the first wrong member. */
function read<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  const name = unknown ?? issue?.path.join('.') ?? '';
  const why = unknown === undefined ? issue?.message : (UNMAPPED[unknown] ?? 'is not supported');
  throw new ReveilleError('invalid_request', unknown === undefined ? `${name}: ${why}` : refusal(unknown, why ?? ''), {
    status: 422,
  });
}

const refusal = (name: string, why: string) => `${name} cannot be mapped to an alarm: ${why}; omit it`;

/** The members of a body that are not `null`: the client sends `null` for absent members. */
function bodyOf(text: string): Record<string, unknown> {
  const body = parseJsonObject(text, RAW);
  const given = Object.entries(body).filter(([, value]) => !(value instanceof RawJson && value.text === 'null'));
  return Object.fromEntries(given.filter(([name, value]) => value !== null || !(name in UNMAPPED)));
}

const objectSchema = z.record(z.string(), z.unknown());

function checkObjects(members: { [N in (typeof RAW)[number]]?: RawJson | undefined }): void {
  for (const name of ['config', 'context', 'metadata'] as const) {
    const value = members[name];
    if (value === undefined || objectSchema.safeParse(value.value()).success) continue;
    throw new ReveilleError('invalid_request', `${name}: must be an object`, { status: 422 });
  }
}

const messageSchema = z.looseObject({
  role: z.string().optional(),
  type: z.string().optional(),
  content: z.union([z.string(), z.array(z.looseObject({ text: z.string().optional() }))]),
});
const inputSchema = z.looseObject({ messages: z.union([messageSchema, z.array(messageSchema)]) });

/** The message for the agent: the last message of the user in the input, or a reference to the payload. */
function messageOf(assistantId: string, input: RawJson | undefined): string {
  const value = input?.value();
  if (typeof value === 'string' && value.trim() !== '') return value;
  const messages = inputSchema.safeParse(value).data?.messages ?? [];
  const own = [messages]
    .flat()
    .filter(({ role, type }) => ['user', 'human'].includes(role ?? type ?? 'user'))
    .map(({ content }) => (typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('\n')))
    .findLast((text) => text.trim() !== '');
  const otherwise = `Run ${assistantId} for its LangGraph cron; the input is in the payload, below langgraph.input.`;
  return own ?? otherwise;
}

const payloadOf = (kept: Kept) => new RawJson(encodeJson({ [MARK]: kept }));

const OVERLAP = { reject: 'skip', enqueue: 'buffer_all' } as const;

function overlapOf(strategy: 'reject' | 'enqueue' | 'interrupt' | 'rollback' | null | undefined) {
  if (strategy === null || strategy === undefined) return {};
  if (strategy === 'reject' || strategy === 'enqueue') return { overlap: OVERLAP[strategy] };
  throw new ReveilleError(
    'invalid_request',
    refusal(`multitask_strategy "${strategy}"`, 'an alarm does not end a running turn; use reject or enqueue'),
    { status: 422 },
  );
}

function refuseDelete(value: 'keep' | 'delete' | null | undefined): void {
  if (value !== 'delete') return;
  const why = 'conversations are kept';
  throw new ReveilleError('invalid_request', refusal('on_run_completed "delete"', why), { status: 422 });
}

/** A time without an offset is UTC. */
const instantOf = (text: string) => (/(?:Z|[+-]\d\d:\d\d)$/i.test(text) ? text : `${text}Z`);

/**
 * The alarm of a new cron.
 *
 * @param threadId the conversation; without one, each run begins its own
 * @throws ReveilleError 422 with the member and the reason
 */
export function alarmOf(text: string, threadId: string | undefined): { alarm: AlarmCreateBody; enabled: boolean } {
  const body = read(createSchema, bodyOf(text));
  checkObjects(body);
  refuseDelete(body.on_run_completed);
  if (threadId !== undefined && !conversationIdSchema.safeParse(threadId).success)
    throw new ReveilleError('invalid_request', 'thread_id: must be 1 to 128 of A-Z a-z 0-9 . _ : -', { status: 422 });
  const { schedule, assistant_id, timezone, end_time, input, config, context, metadata, enabled } = body;
  return {
    alarm: {
      ...{ kind: 'cron', cron_expr: schedule, timezone: timezone ?? 'UTC', label: assistant_id },
      ...(end_time && { ends_at: instantOf(end_time) }),
      ...(threadId !== undefined && { conversation_id: threadId }),
      ...overlapOf(body.multitask_strategy),
      wake_message: messageOf(assistant_id, input),
      payload: payloadOf({ assistant_id, input, config, context, metadata }),
    },
    enabled: enabled ?? true,
  };
}

/**
 * The edit of a cron. Alarms do not show when they were edited, so the payload keeps it.
 *
 * @param now epoch milliseconds
 * @throws as {@link alarmOf}
 */
export function changesOf(
  text: string,
  alarm: AlarmView,
  now: number,
): { changes: AlarmPatchBody; enabled: boolean | undefined } {
  const body = read(updateSchema, bodyOf(text));
  checkObjects(body);
  refuseDelete(body.on_run_completed);
  const kept = keptOf(alarm)!;
  const given = RAW.filter((name) => body[name] !== undefined);
  const members = Object.fromEntries(given.map((name) => [name, body[name]]));
  const merged: Kept = { ...kept, ...members, updated_at: formatInstant(now) };
  const { schedule, timezone, end_time } = body;
  return {
    changes: {
      ...(schedule !== undefined && { cron_expr: schedule }),
      ...(timezone != null && { timezone }),
      ...(end_time !== undefined && { ends_at: end_time === null ? null : instantOf(end_time) }),
      ...(body.input !== undefined && { wake_message: messageOf(kept.assistant_id, body.input) }),
      ...(Object.keys(body).length > 0 && { payload: payloadOf(merged) }),
    },
    enabled: body.enabled ?? undefined,
  };
}

/** The cron in an alarm's payload; `undefined` for any other alarm. */
function keptOf({ kind, payload }: Pick<AlarmView, 'kind' | 'payload'>): Kept | undefined {
  if (kind !== 'cron' || !(payload instanceof RawJson) || !payload.text.startsWith(`{"${MARK}":`)) return undefined;
  const { [MARK]: inside } = parseJsonObject(payload.text, [MARK]);
  if (!(inside instanceof RawJson) || !inside.text.startsWith('{')) return undefined;
  const kept = parseJsonObject(inside.text, RAW);
  return typeof kept.assistant_id === 'string' ? (kept as Kept) : undefined;
}

/** The cron of an alarm; `undefined` for an ended alarm, or one that is not a cron. */
export function cronOf(alarm: AlarmView, userId: string): Cron | undefined {
  const kept = keptOf(alarm);
  if (kept === undefined || (alarm.status !== 'active' && alarm.status !== 'paused')) return undefined;
  const { assistant_id, updated_at, input, config, context, metadata } = kept;
  return {
    cron_id: alarm.id,
    assistant_id,
    thread_id: alarm.conversation_id ?? null,
    user_id: userId,
    schedule: alarm.cron_expr ?? '',
    timezone: alarm.timezone ?? null,
    next_run_date: alarm.next_fire_at ?? null,
    end_time: alarm.ends_at ?? null,
    created_at: alarm.created_at,
    updated_at: updated_at ?? alarm.created_at,
    enabled: alarm.status === 'active',
    on_run_completed: 'keep',
    metadata: (metadata?.value() as Record<string, unknown> | undefined) ?? {},
    payload: new RawJson(encodeJson({ assistant_id, input, config, context })),
  };
}

/** Each key must have an equal value. */
function hasMetadata(cron: Cron, wanted: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(wanted).every(([key, value]) => {
    const own = Object.hasOwn(cron.metadata, key) ? cron.metadata[key] : undefined;
    return JSON.stringify(own) === JSON.stringify(value);
  });
}

export function isWanted(cron: Cron, { assistant_id, thread_id, metadata, enabled }: CronFilter): boolean {
  if (assistant_id != null && cron.assistant_id !== assistant_id) return false;
  if (thread_id != null && cron.thread_id !== thread_id) return false;
  if (enabled != null && cron.enabled !== enabled) return false;
  return metadata == null || hasMetadata(cron, metadata);
}

/** A cron's place in a sorted search. */
export type CronKey = { readonly id: string; readonly by: string };

export const keyOf = (cron: Cron, { sort_by }: CronSearch): CronKey => ({
  id: cron.cron_id,
  by: cron[sort_by ?? 'created_at'] ?? '',
});

/** One page of the crons that match a search. */
export function pageOf(keys: readonly CronKey[], { limit, offset, sort_order }: CronSearch): readonly CronKey[] {
  const sign = sort_order === 'asc' ? 1 : -1;
  const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);
  const sorted = keys.toSorted((one, other) => sign * (compare(one.by, other.by) || compare(one.id, other.id)));
  return sorted.slice(offset, offset + limit);
}

/** The selected members of a cron. */
export function selectedOf(cron: Cron, { select }: CronSearch): object {
  if (!select) return cron;
  const names: readonly string[] = select;
  return Object.fromEntries(Object.entries(cron).filter(([name]) => names.includes(name)));
}

/** @throws as {@link alarmOf} */
export const readSearch = (text: string): CronSearch => read(searchSchema, JSON.parse(text));
/** @throws as {@link alarmOf} */
export const readFilter = (text: string): CronFilter => read(countSchema, JSON.parse(text));
