/** Forwards a tool call to chronosd: checks the arguments, proves the identity again, and keeps nothing afterwards. */
import { join } from 'node:path';
import type { CallToolResult } from '@modelcontextprotocol/server';
import { z } from 'zod';
import {
  type AlarmCreateBody,
  type AlarmPatchBody,
  type AlarmPreviewBody,
  type AlarmQuery,
  type ChronosClient,
  createChronosClient,
  holdPrincipal,
} from '../chronos/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import { readKeyFile } from '../kit/identity/keys.ts';
import { fileIdentity } from '../kit/identity/rotation.ts';
import type { Logger } from '../kit/log/log.ts';
import { continueTrace, failSpan } from '../kit/trace/trace.ts';
import {
  type AlarmEdited,
  alarmCreateSchema,
  alarmIdSchema,
  alarmPatchSchema,
  LIST_LIMIT_MAX,
  RAW_ALARM_FIELDS,
} from '../wire/alarm.ts';
import { ALARM_KINDS, ALARM_STATUSES } from '../wire/alarm-fields.ts';
import { labelSchema, ownerOf } from '../wire/did.ts';
import { ReveilleError, toReveilleError, wireErrorOf } from '../wire/errors.ts';
import {
  encodeJson,
  isExact,
  isNumberLiteral,
  isObject,
  parseJsonObject,
  refuseDeepNesting,
  sliceAt,
} from '../wire/json.ts';
import { USER_META } from '../wire/manifest.ts';
import type { Settings } from '../wire/settings.ts';
import { utf8Bytes } from '../wire/text.ts';
import { parseOrThrow, showValue } from '../wire/validate.ts';
import { type KeyFolder, type LocalDefaults, resolveKeyFolder, resolveMcpSettings } from './mcp-settings.ts';
import { type Conversation, NEW_CONVERSATION } from './sessions.ts';
import type { ToolDefinition, ToolName } from './tools.ts';

function inexact(name: string, literal: string): ReveilleError {
  const shown = literal.length > 60 ? `${literal.slice(0, 60)}…` : literal;
  return new ReveilleError(
    'invalid_request',
    `${name} must be a number of at most 15 digits; ${shown} cannot be read exactly`,
  );
}

/** A list or an object that a model wrote as a string. */
function jsonIn(text: string, isIt: (value: unknown) => boolean): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isIt(value) ? value : text;
  } catch {
    return text;
  }
}

/**
 * Reads a number, boolean, list or object that a model wrote as a string, by the tool's schema. Other values stay, and the schema
 * rejects them.
 */
function readString(name: string, type: string | readonly string[] | undefined, text: string): unknown {
  const types = [type].flat();
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  if ((types.includes('number') || types.includes('integer')) && isNumberLiteral(text)) {
    if (!isExact(text)) throw inexact(name, text);
    return Number(text);
  }
  if (types.includes('object')) return jsonIn(text, isObject);
  return types.includes('array') ? jsonIn(text, Array.isArray) : text;
}

function parseArguments(source: string, raw: readonly string[]): Record<string, unknown> {
  refuseDeepNesting(source, 'arguments');
  if (!source.startsWith('{')) {
    throw new ReveilleError(
      'invalid_request',
      `arguments must be a JSON object (got ${showValue(JSON.parse(source))})`,
    );
  }
  return parseJsonObject(source, raw);
}

/**
 * Reads a call's arguments.
 *
 * @param tool its input schema names number and boolean fields
 * @param schemaOf the requirements of the fields
 * @param raw fields of any JSON; they are returned as source text and not interpreted
 * @param source well-formed JSON, as the client sent it
 * @returns the fields to send, without the transformations of the schema
 * @throws ReveilleError `invalid_request` naming field, value and remedy
 */
export function readArguments(
  tool: ToolDefinition,
  schemaOf: (fields: Record<string, unknown>) => z.ZodType,
  raw: readonly string[],
  source: string,
): Record<string, unknown> {
  const fields = parseArguments(source, raw);
  for (const [name, { type }] of Object.entries(tool.inputSchema.properties)) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (typeof value === 'string') fields[name] = readString(name, type, value);
    if (typeof value === 'number') {
      const literal = sliceAt(source, [name])!;
      if (!isExact(literal)) throw inexact(name, literal);
    }
  }
  parseOrThrow(schemaOf(fields), fields);
  return fields;
}

/** Clients close the connection on a message of more than 10 MiB. */
const MAX_RESULT_BYTES = 9 * 1024 * 1024;

export const alarmListArguments = z.strictObject({
  limit: z.int().min(1).max(LIST_LIMIT_MAX).optional(),
  status: z.enum(ALARM_STATUSES).optional(),
  kind: z.enum(ALARM_KINDS).optional(),
  cursor: z.string().max(200).optional(),
});

export const alarmCancelArguments = z.strictObject({ alarm_id: alarmIdSchema });

/** What `alarm_set` does with an existing alarm, besides edits. */
export const ALARM_ACTIONS = ['pause', 'resume', 'trigger'] as const;
type AlarmAction = (typeof ALARM_ACTIONS)[number];

/** The arguments of `alarm_set` for an existing alarm: an edit, an action, or both. */
export const alarmChangeArguments = alarmPatchSchema.extend({
  alarm_id: alarmIdSchema,
  action: z.enum(ALARM_ACTIONS).optional(),
  dry_run: z.literal(false, { error: 'is only for a new alarm; omit alarm_id and give the whole time' }).optional(),
});

/** The arguments of `alarm_set` for a new alarm. */
const alarmNewArguments = alarmCreateSchema.extend({ dry_run: z.boolean().optional() });
/** With `dry_run`, which stores nothing, an alarm needs no message. */
const alarmPreviewArguments = alarmNewArguments.partial({ wake_message: true });

/**
 * The schema of the arguments of `alarm_set`: an alarm's id makes it an edit, in which `null` clears a field. In a new
 * alarm `null` is removed, because models write it for fields that they omit.
 */
export function alarmSetArguments(fields: Record<string, unknown>): z.ZodType {
  for (const name of ['action', 'dry_run']) if (fields[name] === null) delete fields[name];
  if (fields.alarm_id !== undefined && fields.alarm_id !== null) return alarmChangeArguments;
  if (fields.action !== undefined)
    throw new ReveilleError('invalid_request', 'action needs alarm_id, the alarm to act on; omit it for a new alarm');
  for (const [name, value] of Object.entries(fields)) if (value === null) delete fields[name];
  return fields.dry_run === true ? alarmPreviewArguments : alarmNewArguments;
}

/** Occurrences in the answer to `dry_run`. */
const PREVIEWED = 5;

const ACTIONS: Readonly<Record<AlarmAction, 'pauseAlarm' | 'resumeAlarm' | 'triggerAlarm'>> = {
  pause: 'pauseAlarm',
  resume: 'resumeAlarm',
  trigger: 'triggerAlarm',
};

/** The members of a changed alarm that the model needs to check the change. */
const CHANGE_ANSWER = [
  ...['id', 'next_fire_at', 'status', 'reading', 'conversation_id', 'held_back', 'hook', 'fire_id'],
] as const;

/** Edits an alarm, then acts on it. An error of the action says that the edit has been made. */
async function changeAlarm(
  client: ChronosClient,
  { alarm_id: alarmId, action, ...changes }: Record<string, unknown>,
  signal: AbortSignal,
): Promise<object> {
  const id = alarmId as string;
  const isEdit = Object.keys(changes).length > 0 || action === undefined;
  const edited: Partial<AlarmEdited> = isEdit ? await client.patchAlarm(id, changes as AlarmPatchBody, { signal }) : {};
  const acted =
    action === undefined
      ? {}
      : await client[ACTIONS[action as AlarmAction]](id, { signal }).catch((thrown) => {
          const { code, message, retryable } = toReveilleError(thrown);
          const done = isEdit ? `; the edit of its fields has been made, ${String(action)} has not` : '';
          throw new ReveilleError(code, `${message}${done}`, { retryable, cause: thrown });
        });
  // Only the answer to the edit has the secret of a new hook.
  const answer: Record<string, unknown> = { ...edited, ...acted, ...(edited.hook && { hook: edited.hook }) };
  return Object.fromEntries(
    CHANGE_ANSWER.flatMap((name) => (answer[name] === undefined ? [] : [[name, answer[name]]])),
  );
}

type Forward = {
  arguments: (fields: Record<string, unknown>) => z.ZodType;
  raw: readonly string[];
  /** `fields` were checked against `arguments`. */
  send(client: ChronosClient, fields: Record<string, unknown>, signal: AbortSignal): Promise<object>;
};

const FORWARDS: Readonly<Record<ToolName, Forward>> = {
  alarm_set: {
    arguments: alarmSetArguments,
    raw: RAW_ALARM_FIELDS,
    send(client, { dry_run: isDry, ...fields }, signal) {
      if (isDry === true) return client.previewAlarm({ ...(fields as AlarmPreviewBody), count: PREVIEWED }, { signal });
      if (fields.alarm_id !== undefined) return changeAlarm(client, fields, signal);
      return client.createAlarm(fields as AlarmCreateBody, { signal });
    },
  },
  alarm_list: {
    arguments: () => alarmListArguments,
    raw: [],
    send: (client, fields, signal) => client.listAlarms(fields as AlarmQuery, { signal }),
  },
  alarm_cancel: {
    arguments: () => alarmCancelArguments,
    raw: [],
    send: (client, fields, signal) => client.cancelAlarm(fields.alarm_id as string, { signal }),
  },
};

/** How calls of one kind of callers are forwarded. */
export type Forwarding = {
  /** chronosd with the rights of the call's user. @throws ReveilleError */
  connect: (user: unknown) => ChronosClient | Promise<ChronosClient>;
  /** The zone of that user, for a time in words that names none; `undefined` when unknown. */
  zone: () => Promise<string | undefined>;
  /** Adds a remedy to an error. */
  explain?: (error: ReveilleError, user: unknown) => ReveilleError;
  /** The remark for an alarm of an unknown conversation. */
  newConversation?: string;
  log: Logger;
};

export type ForwarderOptions = {
  settings: Settings;
  /** Read at every call: `reveille up` may have been started meanwhile. */
  localDefaults: () => LocalDefaults | Promise<LocalDefaults>;
  /**
   * The zone of this computer's user, for a time in words that names none; `undefined` when unknown. It is not read for
   * a server of several users.
   */
  zone: () => Promise<string | undefined>;
  clock: Clock;
  log: Logger;
};

/**
 * Executes one call. Never rejects: failures are results with `isError`.
 *
 * @param tool one of `TOOL_NAMES`
 * @param source the arguments' JSON text
 * @param signal aborts when the client cancels the call or disconnects
 */
export type ToolForwarder = (
  tool: ToolDefinition,
  source: string,
  signal: AbortSignal,
  about?: CallAbout,
) => Promise<CallToolResult>;

/** Facts about a call besides its arguments. */
export type CallAbout = {
  /** The user of the call, from its `_meta`. */
  user?: unknown;
  /** The conversation of the call; read when an alarm names none. */
  conversation?: () => Conversation | undefined;
  /** The `traceparent` of the program that started this server, from the call's `_meta`. */
  traceparent?: unknown;
  /** The `traceparent` of a remote client: the call only links to it, so that the client cannot control the recording. */
  remoteTrace?: unknown;
  transport?: 'pipe' | 'tcp';
};

/** The remedy for a user's key that chronosd does not know. */
function withRemedy(error: ReveilleError, settings: Settings, user: unknown): ReveilleError {
  const { MATRIX_AGENT_KEYS: keysDir } = settings;
  if (error.code !== 'forbidden' || !keysDir || typeof user !== 'string') return error;
  const { publicKeyHex } = readKeyFile(join(keysDir, `${ownerOf(user)}.key`));
  const remedy = `enroll it with: reveille agent enroll --label ${user} --public-key ${publicKeyHex}`;
  return new ReveilleError('forbidden', `${error.message}; ${remedy}`, { cause: error });
}

/** The same JSON twice: for programs, and as text for models. Source text in `value` is unchanged in both. */
function resultOf(value: object): CallToolResult {
  return { content: [{ type: 'text', text: encodeJson(value) }], structuredContent: { ...value } };
}

function fitting(result: CallToolResult, name: string): CallToolResult {
  const bytes = utf8Bytes(encodeJson(result));
  if (bytes <= MAX_RESULT_BYTES) return result;
  throw new ReveilleError(
    'invalid_request',
    `the answer of ${name} has ${bytes} bytes, more than the limit of ${MAX_RESULT_BYTES} for an MCP message; use a smaller limit`,
  );
}

function wakes(
  { conversation_id: conversation }: Record<string, unknown>,
  note: string | undefined,
  newConversation: string,
): object {
  if (conversation === undefined) return { note: newConversation };
  return { conversation_id: conversation, ...(note !== undefined && { note }) };
}

/** Explains the conflict of an idempotency key of another conversation, when the caller named no conversation. */
function refuseOtherConversation(thrown: unknown, { conversation_id: own }: Record<string, unknown>): never {
  const error = toReveilleError(thrown);
  if (error.code !== 'conflict' || own === undefined) throw thrown;
  const why = `conversation_id is omitted, so it is ${String(own)}, the conversation of this call`;
  throw new ReveilleError('conflict', `${error.message} (${why})`, { cause: error, retryable: false });
}

/** Forwards the calls of clients on this computer. */
export function createForwarder({ settings, localDefaults, zone, clock, log }: ForwarderOptions): ToolForwarder {
  /** For the user of the call, with that user's key alone. */
  const connectFor = (folder: KeyFolder, user: unknown): ChronosClient => {
    if (typeof user !== 'string' || !labelSchema.safeParse(user).success) {
      const message = `a call must name its user in _meta (${USER_META}): 1 to 64 of A-Z a-z 0-9 . _ -, and not dots alone`;
      throw new ReveilleError('invalid_request', `${message} (got ${showValue(user)})`);
    }
    const { url, token, keysDir, timeoutMs } = folder;
    const identity = fileIdentity(user, join(keysDir, `${ownerOf(user)}.key`));
    // The server must not register the first key of the user's own agent.
    return createChronosClient({ url, token, timeoutMs, identity, mayPin: false, principal: holdPrincipal(), clock });
  };

  const connect = async (user: unknown): Promise<ChronosClient> => {
    const folder = resolveKeyFolder(settings);
    if (folder) return connectFor(folder, user);
    const { url, token, userId, keyFile, timeoutMs } = resolveMcpSettings(settings, await localDefaults());
    if (user !== undefined && user !== userId) {
      const message = `this server sets alarms of ${userId} only; the call is for ${showValue(user)}`;
      throw new ReveilleError('forbidden', message);
    }
    const identity = fileIdentity(userId, keyFile);
    return createChronosClient({ url, token, timeoutMs, identity, principal: holdPrincipal(), clock });
  };

  return forwarderOf({
    connect,
    zone: async () => (resolveKeyFolder(settings) ? undefined : zone()),
    explain: (error, user) => withRemedy(error, settings, user),
    log,
  });
}

export function forwarderOf(forwarding: Forwarding): ToolForwarder {
  const { connect, zone, explain = (error) => error, newConversation = NEW_CONVERSATION, log } = forwarding;

  /**
   * The zone of a time in words that names none: of the changed alarm, else of the user. Without any, chronosd refuses
   * words that need one.
   */
  const zoneFor = async (client: ChronosClient, id: unknown, signal: AbortSignal): Promise<string | undefined> => {
    const alarm = id === undefined ? undefined : await client.getAlarm(id as string, { signal });
    return alarm?.timezone ?? (await zone());
  };

  const forward: ToolForwarder = async (tool, source, signal, { user, conversation } = {}) => {
    const to = FORWARDS[tool.name as ToolName];
    const fields = readArguments(tool, to.arguments, to.raw, source);
    const client = await connect(user);
    if (tool.name !== 'alarm_set') return fitting(resultOf(await to.send(client, fields, signal)), tool.name);
    if (fields.when !== undefined && fields.timezone === undefined) {
      const timezone = await zoneFor(client, fields.alarm_id, signal);
      if (timezone !== undefined) fields.timezone = timezone;
    }
    const setsNew = fields.alarm_id === undefined && fields.dry_run !== true;
    if (!setsNew) return fitting(resultOf(await to.send(client, fields, signal)), tool.name);
    const isDefault = fields.conversation_id === undefined;
    const own = isDefault ? conversation?.() : undefined;
    if (own) fields.conversation_id = own.id;
    const sent = to.send(client, fields, signal);
    const answer = await (isDefault ? sent.catch((thrown) => refuseOtherConversation(thrown, fields)) : sent);
    return fitting(resultOf({ ...answer, ...wakes(fields, own?.note, newConversation) }), tool.name);
  };

  const handle: ToolForwarder = async (tool, source, signal, about) => {
    try {
      return await forward(tool, source, signal, about);
    } catch (thrown) {
      const error = explain(toReveilleError(thrown), about?.user);
      log.warn({ tool: tool.name, code: error.code, reason: error.message, err: error.cause }, 'tool call failed');
      return { ...resultOf(wireErrorOf(error)), isError: true };
    }
  };

  return (tool, source, signal, about) => {
    const { traceparent: caller, remoteTrace: remote, transport = 'pipe' } = about ?? {};
    const facts = () => ({
      kind: 'server' as const,
      links: [typeof remote === 'string' ? remote : undefined],
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': tool.name,
        'network.transport': transport,
      },
    });
    return continueTrace(
      typeof caller === 'string' ? caller : undefined,
      `tools/call ${tool.name}`,
      facts,
      async (span) => {
        const result = await handle(tool, source, signal, about);
        if (result.isError) failSpan(span, 'tool_error');
        return result;
      },
    );
  };
}
