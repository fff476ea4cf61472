/** Forwards a tool call to chronosd: checks the arguments, proves the identity again, and keeps nothing afterwards. */
import { join } from 'node:path';
import type { CallToolResult } from '@modelcontextprotocol/server';
import {
  type AlarmCreateBody,
  type AlarmPage,
  type AlarmPatchBody,
  type AlarmPreviewBody,
  alarmIdOf,
  type ChronosClient,
  createChronosClient,
  holdPrincipal,
} from '../chronos/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import { readKeyFile } from '../kit/identity/keys.ts';
import { fileIdentity } from '../kit/identity/rotation.ts';
import type { Logger } from '../kit/log/log.ts';
import { scheduleText } from '../kit/phrase/schedule-text.ts';
import { continueTrace, failSpan } from '../kit/trace/trace.ts';
import type { AlarmEdited, AlarmView } from '../wire/alarm.ts';
import { labelSchema, ownerOf } from '../wire/did.ts';
import { ReveilleError, toReveilleError, wireErrorOf } from '../wire/errors.ts';
import { encodeJson } from '../wire/json.ts';
import { USER_META } from '../wire/manifest.ts';
import type { Settings } from '../wire/settings.ts';
import { utf8Bytes } from '../wire/text.ts';
import { showValue } from '../wire/validate.ts';
import {
  type AlarmAction,
  type AlarmListArguments,
  type AlarmSetCall,
  readCancel,
  readList,
  readSet,
} from './arguments.ts';
import { boundedAlarm, briefAlarm, fittingRows } from './brief.ts';
import { helpPage } from './help.ts';
import { type KeyFolder, type LocalDefaults, resolveKeyFolder, resolveMcpSettings } from './mcp-settings.ts';
import { type Conversation, NEW_CONVERSATION } from './sessions.ts';
import type { ToolDefinition, ToolName } from './tools.ts';

/** Clients close the connection on a message of more than 10 MiB. */
const MAX_RESULT_BYTES = 9 * 1024 * 1024;

/** Occurrences in the answer to `dry_run`, and days that it leaves out. */
const PREVIEWED = 5;
/** Alarms of an answer by default. */
const LISTED = 20;

/** The answer to a set alarm waits so long for the totals. */
const TOTALS_MS = 3_000;

const FINDS = 'alarm_list shows your alarms';

const ACTIONS: Readonly<Record<AlarmAction, 'pauseAlarm' | 'resumeAlarm' | 'triggerAlarm'>> = {
  pause: 'pauseAlarm',
  resume: 'resumeAlarm',
  trigger: 'triggerAlarm',
};

/** The members of a changed alarm that the model needs to check the change. */
const CHANGE_ANSWER = [
  ...['id', 'next_fire_at', 'status', 'timezone', 'reading', 'conversation_id', 'held_back', 'hook', 'fire_id'],
] as const;

/** Edits an alarm, then acts on it. An error of the action says that the edit has been made. */
async function changeAlarm(
  client: ChronosClient,
  id: string,
  { action, fields }: Extract<AlarmSetCall, { asks: 'change' }>,
  signal: AbortSignal,
): Promise<object> {
  const isEdit = Object.keys(fields).length > 0 || action === undefined;
  const edited: Partial<AlarmEdited> = isEdit ? await client.patchAlarm(id, fields as AlarmPatchBody, { signal }) : {};
  const acted =
    action === undefined
      ? {}
      : await client[ACTIONS[action]](id, { signal }).catch((thrown) => {
          const { code, message, retryable } = toReveilleError(thrown);
          const done = isEdit ? `; the edit of its fields has been made, ${action} has not` : '';
          throw new ReveilleError(code, `${message}${done}`, { retryable, cause: thrown });
        });
  // Only the answer to the edit has the secret of a new hook.
  const answer: Record<string, unknown> = { ...edited, ...acted, ...(edited.hook && { hook: edited.hook }) };
  return Object.fromEntries(
    CHANGE_ANSWER.flatMap((name) => (answer[name] === undefined ? [] : [[name, answer[name]]])),
  );
}

/** When a new alarm would fire. */
async function previewOf(client: ChronosClient, fields: AlarmPreviewBody, signal: AbortSignal): Promise<object> {
  const preview = await client.previewAlarm({ ...fields, count: PREVIEWED }, { signal });
  const { kind, reading, occurrences, left_out: leftOut, notes } = preview;
  return {
    ...{ kind, reading, occurrences },
    ...(leftOut && { left_out: leftOut.slice(0, PREVIEWED) }),
    ...(notes.length > 0 && { notes }),
  };
}

/** A page of alarms with the soonest first, and the ones without a time last. */
const inOrder = ({ alarms, ...page }: AlarmPage): AlarmPage => {
  const instant = ({ next_fire_at: next }: AlarmView) => (next === undefined ? Number.MAX_VALUE : Date.parse(next));
  return { ...page, alarms: alarms.toSorted((one, other) => instant(one) - instant(other)) };
};

/** Lists alarms for a model: briefly, and within a bound of tokens, unless all of them is asked for. */
async function listAlarms(
  client: ChronosClient,
  { alarm_id: id, full = false, limit = LISTED, status = 'active', kind, text, cursor }: AlarmListArguments,
  agent: string | undefined,
  signal: AbortSignal,
): Promise<object> {
  if (id !== undefined) {
    const alarm = await client.getAlarm(await alarmIdOf(client, id, { remedy: FINDS, signal }), { signal });
    const whole = { ...alarm, schedule: scheduleText(alarm), ...(agent !== undefined && { agent }) };
    return { alarms: [full ? whole : boundedAlarm(whole)], count: 1 };
  }
  const isUpcoming = status === 'active' && kind === undefined && text === undefined;
  const filter = isUpcoming ? { sort: 'next' as const } : { status, kind, text };
  const read = (most: number) => client.listAlarms({ ...filter, limit: most, cursor }, { signal }).then(inOrder);
  const briefly = ({ alarms, count, ...rest }: AlarmPage) => ({
    alarms: alarms.map((alarm) => briefAlarm(alarm, scheduleText(alarm), agent)),
    count,
    ...rest,
  });
  const page = await read(limit);
  if (full) return page;
  const rows = briefly(page);
  const fit = fittingRows(rows.alarms);
  // Read anew, because the cursor of the shorter page is another one.
  return fit === rows.alarms.length ? rows : briefly(await read(fit));
}

/** How calls of one kind of callers are forwarded. */
export type Forwarding = {
  /** chronosd with the rights of the call's user. @throws ReveilleError */
  connect: (user: unknown) => ChronosClient | Promise<ChronosClient>;
  /** The agent that is woken. */
  agentOf: (user: unknown) => string | undefined | Promise<string | undefined>;
  /** The zone of that user, for a wall-clock time that names none; `undefined` when unknown. */
  zone: () => Promise<string | undefined>;
  /** Whether the caller is a program with an access token. */
  isRemote?: boolean;
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
   * The zone of this computer's user, for a wall-clock time that names none; `undefined` when unknown. It is not read
   * for a server of several users.
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
    async agentOf(user) {
      if (resolveKeyFolder(settings)) return user as string;
      return resolveMcpSettings(settings, await localDefaults()).userId;
    },
    zone: async () => (resolveKeyFolder(settings) ? undefined : zone()),
    explain: (error, user) => withRemedy(error, settings, user),
    log,
  });
}

/** Whether the times of a schedule depend on a zone that it does not name itself. */
const needsZone = ({ when, cron_expr: cron, rrule }: Record<string, unknown>): boolean =>
  when !== undefined ||
  (typeof cron === 'string' && !/^\s*@every/i.test(cron)) ||
  (typeof rrule === 'string' && !/TZID=|DTSTART:\d{8}T\d{6}Z/i.test(rrule));

export function forwarderOf(forwarding: Forwarding): ToolForwarder {
  const { connect, agentOf, zone, isRemote = false } = forwarding;
  const { explain = (error) => error, newConversation = NEW_CONVERSATION, log } = forwarding;

  /**
   * The zone of a wall-clock time that names none: of the changed alarm, else of the user. Without any, chronosd refuses
   * words that need one, and takes UTC for expressions.
   */
  const zoneFor = async (client: ChronosClient, id: string | undefined, signal: AbortSignal) => {
    const alarm = id === undefined ? undefined : await client.getAlarm(id, { signal });
    return alarm?.timezone ?? (await zone());
  };

  /** What the answer to a change says besides the alarm. The alarm is set already, so that no error may hide it. */
  const beside = async (client: ChronosClient, user: unknown, signal: AbortSignal): Promise<object> => {
    const agent = await agentOf(user);
    const soon = AbortSignal.any([signal, AbortSignal.timeout(TOTALS_MS)]);
    const totals = await client.alarmTotals({ signal: soon }).catch((thrown) => {
      log.warn({ err: thrown }, 'the alarms could not be counted');
      return undefined;
    });
    return { ...(agent !== undefined && { agent }), ...(totals && { totals }) };
  };

  const setAlarm = async (
    call: AlarmSetCall,
    signal: AbortSignal,
    { user, conversation }: CallAbout,
  ): Promise<object> => {
    if (call.asks === 'help') return helpPage(call.topic, isRemote);
    const client = await connect(user);
    const id = call.asks === 'change' ? await alarmIdOf(client, call.id, { remedy: FINDS, signal }) : undefined;
    const { fields } = call;
    if (needsZone(fields) && fields.timezone === undefined) {
      const timezone = await zoneFor(client, id, signal);
      if (timezone !== undefined) fields.timezone = timezone;
    }
    if (call.asks === 'preview') return previewOf(client, fields as AlarmPreviewBody, signal);
    if (call.asks === 'change') {
      const changed = await changeAlarm(client, id!, call, signal);
      const { empty } = call;
      const note = `${empty.join(', ')} stays as it is: to empty a field, name it in clear`;
      return { ...changed, ...(await beside(client, user, signal)), ...(empty.length > 0 && { note }) };
    }
    const isDefault = fields.conversation_id === undefined;
    const own = isDefault ? conversation?.() : undefined;
    if (own) fields.conversation_id = own.id;
    const sent = client.createAlarm(fields as AlarmCreateBody, { signal });
    const answer = await (isDefault ? sent.catch((thrown) => refuseOtherConversation(thrown, fields)) : sent);
    return { ...answer, ...wakes(fields, own?.note, newConversation), ...(await beside(client, user, signal)) };
  };

  const answerOf = async (
    tool: ToolDefinition,
    source: string,
    signal: AbortSignal,
    about: CallAbout,
  ): Promise<object> => {
    const { user } = about;
    switch (tool.name as ToolName) {
      case 'alarm_set':
        return setAlarm(readSet(source, new Set(Object.keys(tool.inputSchema.properties))), signal, about);
      case 'alarm_list': {
        const asked = readList(source);
        return listAlarms(await connect(user), asked, await agentOf(user), signal);
      }
      case 'alarm_cancel': {
        const { alarm_id: given } = readCancel(source);
        const client = await connect(user);
        const id = await alarmIdOf(client, given, { remedy: FINDS, signal });
        // Not the whole alarm: a client may be allowed to write, and not to read.
        const { label, status, in_flight } = await client.cancelAlarm(id, { signal });
        return { id, ...(label !== '' && { label }), status, ...(in_flight && { in_flight }) };
      }
    }
  };

  const forward: ToolForwarder = async (tool, source, signal, about = {}) =>
    fitting(resultOf(await answerOf(tool, source, signal, about)), tool.name);

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
