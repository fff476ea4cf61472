/**
 * A tool call on its way to chronosd: arguments checked, identity proved anew, nothing kept afterwards
 * (docs/contracts.md §7).
 */
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
import { ReveilleError, toReveilleError, wireErrorOf } from '../wire/errors.ts';
import { encodeJson } from '../wire/json.ts';
import type { Settings } from '../wire/settings.ts';
import { utf8Bytes } from '../wire/text.ts';
import { readArguments } from './arguments.ts';
import { type LocalDefaults, resolveMcpSettings } from './mcp-settings.ts';
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
 */
export type ToolForwarder = (tool: ToolDefinition, source: string, signal: AbortSignal) => Promise<CallToolResult>;

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
  const connect = async (): Promise<ChronosClient> => {
    const { url, token, userId, keyFile, timeoutMs } = resolveMcpSettings(settings, await localDefaults());
    const identity = agentIdentity(userId, readKeyFile(keyFile));
    return createChronosClient({ url, token, timeoutMs, identity, clock });
  };

  const forward = async (tool: ToolDefinition, source: string, signal: AbortSignal): Promise<CallToolResult> => {
    const to = FORWARDS[tool.name as ToolName];
    const fields = readArguments(tool, to.arguments, to.raw, source);
    return fitting(resultOf(await to.send(await connect(), fields, signal)), tool.name);
  };

  return async (tool, source, signal) => {
    try {
      return await forward(tool, source, signal);
    } catch (thrown) {
      const error = toReveilleError(thrown);
      log.warn({ tool: tool.name, code: error.code, reason: error.message, err: error.cause }, 'tool call failed');
      return { ...resultOf(wireErrorOf(error)), isError: true };
    }
  };
}
