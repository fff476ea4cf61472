/**
 * A tool call on its way to chronosd: arguments checked, identity proved anew, nothing kept afterwards
 * (docs/contracts.md §7).
 */
import { join } from 'node:path';
import type { CallToolResult } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type AlarmCreateBody, type AlarmQuery, type ChronosClient, createChronosClient } from '../chronos/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import { agentIdentity } from '../kit/identity/agent.ts';
import { readKeyFile } from '../kit/identity/keys.ts';
import type { Logger } from '../kit/log/log.ts';
import {
  ALARM_KINDS,
  ALARM_STATUSES,
  alarmCreateSchema,
  alarmIdSchema,
  LIST_LIMIT_MAX,
  RAW_ALARM_FIELDS,
} from '../wire/alarm.ts';
import { labelSchema, ownerOf } from '../wire/did.ts';
import { ReveilleError, toReveilleError, wireErrorOf } from '../wire/errors.ts';
import { encodeJson } from '../wire/json.ts';
import { USER_META } from '../wire/manifest.ts';
import type { Settings } from '../wire/settings.ts';
import { utf8Bytes } from '../wire/text.ts';
import { showValue } from '../wire/validate.ts';
import { readArguments } from './arguments.ts';
import { type KeyFolder, type LocalDefaults, resolveKeyFolder, resolveMcpSettings } from './mcp-settings.ts';
import type { ToolDefinition, ToolName } from './tools.ts';

/** Clients close the connection on a message of more than 10 MiB. */
const MAX_RESULT_BYTES = 9 * 1024 * 1024;

export const alarmListArguments = z.strictObject({
  limit: z.int().min(1).max(LIST_LIMIT_MAX).optional(),
  status: z.enum(ALARM_STATUSES).optional(),
  kind: z.enum(ALARM_KINDS).optional(),
  cursor: z.string().max(200).optional(),
});

export const alarmCancelArguments = z.strictObject({ alarm_id: alarmIdSchema });

type Forward = {
  arguments: z.ZodType;
  raw: readonly string[];
  /** `fields` have been checked against `arguments`. */
  send(client: ChronosClient, fields: Record<string, unknown>, signal: AbortSignal): Promise<object>;
};

const FORWARDS: Readonly<Record<ToolName, Forward>> = {
  alarm_set: {
    arguments: alarmCreateSchema,
    raw: RAW_ALARM_FIELDS,
    send: (client, fields, signal) => client.createAlarm(fields as AlarmCreateBody, { signal }),
  },
  alarm_list: {
    arguments: alarmListArguments,
    raw: [],
    send: (client, fields, signal) => client.listAlarms(fields as AlarmQuery, { signal }),
  },
  alarm_cancel: {
    arguments: alarmCancelArguments,
    raw: [],
    send: (client, fields, signal) => client.cancelAlarm(fields.alarm_id as string, { signal }),
  },
};

export type ForwarderOptions = {
  settings: Settings;
  /** Asked at every call: `reveille up` may have been started in the meantime. */
  localDefaults: () => LocalDefaults | Promise<LocalDefaults>;
  clock: Clock;
  log: Logger;
};

/**
 * Carries one call out. Never rejects: failures are results with `isError`.
 *
 * @param tool one of `TOOL_NAMES`
 * @param source the arguments' JSON text
 * @param signal aborts when the client cancels the call or goes away
 * @param user whom the call is made for, as its `_meta` says it
 */
export type ToolForwarder = (
  tool: ToolDefinition,
  source: string,
  signal: AbortSignal,
  user?: unknown,
) => Promise<CallToolResult>;

/** How an operator lets the key of a user in, where chronosd does not know it. */
function withRemedy(error: ReveilleError, settings: Settings, user: unknown): ReveilleError {
  const { MATRIX_AGENT_KEYS: keysDir } = settings;
  if (error.code !== 'forbidden' || !keysDir || typeof user !== 'string') return error;
  const { publicKeyHex } = readKeyFile(join(keysDir, `${ownerOf(user)}.key`));
  const remedy = `let it in with: reveille agent enroll --label ${user} --public-key ${publicKeyHex}`;
  return new ReveilleError('forbidden', `${error.message}; ${remedy}`, { cause: error });
}

/** The same JSON twice: for programs, and as text for models. Source text inside `value` stays as it is in both. */
function resultOf(value: object): CallToolResult {
  return { content: [{ type: 'text', text: encodeJson(value) }], structuredContent: { ...value } };
}

function fitting(result: CallToolResult, name: string): CallToolResult {
  const bytes = utf8Bytes(encodeJson(result));
  if (bytes <= MAX_RESULT_BYTES) return result;
  throw new ReveilleError(
    'invalid_request',
    `the answer of ${name} would have ${bytes} bytes, more than the ${MAX_RESULT_BYTES} that an MCP message may have; ask for fewer alarms with a smaller limit`,
  );
}

export function createForwarder({ settings, localDefaults, clock, log }: ForwarderOptions): ToolForwarder {
  /** As the user whom the call is made for, with their key alone. */
  const connectFor = (folder: KeyFolder, user: unknown): ChronosClient => {
    if (typeof user !== 'string' || !labelSchema.safeParse(user).success) {
      const message = `a call must say in _meta (${USER_META}) whom it is made for: 1 to 64 of A-Z a-z 0-9 . _ -, and not dots alone`;
      throw new ReveilleError('invalid_request', `${message} (got ${showValue(user)})`);
    }
    const { url, token, keysDir, timeoutMs } = folder;
    const identity = agentIdentity(user, readKeyFile(join(keysDir, `${ownerOf(user)}.key`)));
    // It acts beside the user's own agent, and must not take the place of that one's first key.
    return createChronosClient({ url, token, timeoutMs, identity, mayPin: false, clock });
  };

  const connect = async (user: unknown): Promise<ChronosClient> => {
    const folder = resolveKeyFolder(settings);
    if (folder) return connectFor(folder, user);
    const { url, token, userId, keyFile, timeoutMs } = resolveMcpSettings(settings, await localDefaults());
    if (user !== undefined && user !== userId) {
      const message = `this server sets alarms of ${userId} alone, and the call is made for ${showValue(user)}`;
      throw new ReveilleError('forbidden', message);
    }
    const identity = agentIdentity(userId, readKeyFile(keyFile));
    return createChronosClient({ url, token, timeoutMs, identity, clock });
  };

  const forward: ToolForwarder = async (tool, source, signal, user) => {
    const to = FORWARDS[tool.name as ToolName];
    const fields = readArguments(tool, to.arguments, to.raw, source);
    return fitting(resultOf(await to.send(await connect(user), fields, signal)), tool.name);
  };

  return async (tool, source, signal, user) => {
    try {
      return await forward(tool, source, signal, user);
    } catch (thrown) {
      const error = withRemedy(toReveilleError(thrown), settings, user);
      log.warn({ tool: tool.name, code: error.code, reason: error.message, err: error.cause }, 'tool call failed');
      return { ...resultOf(wireErrorOf(error)), isError: true };
    }
  };
}
