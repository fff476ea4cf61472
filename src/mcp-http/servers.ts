/**
 * The MCP server of one request. Each request has its own server: no state is kept between requests, and no caller sees
 * data of another caller.
 */
import type { CallToolResult, Server } from '@modelcontextprotocol/server';
import { createTimeServer } from '../chronometric/server.ts';
import type { ChronosClient } from '../chronos/client.ts';
import { forwarderOf } from '../chronos-mcp/proxy.ts';
import { createAlarmServer } from '../chronos-mcp/server.ts';
import { readChronosTools, TOOLS_FILE, type ToolDefinition } from '../chronos-mcp/tools.ts';
import type { Logger } from '../kit/log/log.ts';
import { TRACEPARENT } from '../kit/trace/trace.ts';
import type { AlarmView } from '../wire/alarm.ts';
import { encodeJson, exactJson } from '../wire/json.ts';
import {
  type GrantedToken,
  MCP_ENDPOINTS,
  type McpEndpoint,
  type RemoteCaller,
  type RemoteScope,
} from '../wire/remote-caller.ts';
import type { RemoteBackends } from './backends.ts';
import { createIntentsServer } from './intents-server.ts';

/** One message of a verified caller. */
export type RemoteMessage = {
  readonly endpoint: McpEndpoint;
  readonly caller: RemoteCaller;
  /** The verified claims, by which the issuer can check later whether the access was revoked. */
  readonly grant: GrantedToken;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The source text of `params.arguments`, so that numbers keep all digits; `{}` without arguments. */
  readonly argumentsText: string;
  /** Set by an extension that refuses the message because of a limit: the answer is then 429. */
  exhausted?: {
    readonly code: number;
    readonly message: string;
    readonly data?: unknown;
    /** Absent when time alone does not help. */
    readonly retryAfterSeconds?: number | undefined;
  };
};

/** Further methods and capabilities of the servers, such as events. */
export type ServerExtension = {
  /** The scopes that a message needs; `undefined` if it is not one of this extension. */
  scopesOf(message: RemoteMessage): readonly RemoteScope[] | undefined;
  /** Whether the answer to a message stays open, like a stream of events. */
  isStream?(message: RemoteMessage): boolean;
  /** Adds handlers and capabilities (`registerCapabilities`) to the server of a request. */
  extend(server: Server, message: RemoteMessage): void;
};

const INSTRUCTIONS =
  "These tools set alarms in the user's Reveille. When an alarm is due, it starts a turn of the user's agent with " +
  'your message, marked as set by you. Put everything that the turn needs into wake_message and payload. Your alarms ' +
  "cannot run commands, and cannot read the user's computer.";
const NEW_CONVERSATION =
  "The alarm starts a new conversation of the user's agent. Pass conversation_id to continue one of an alarm of yours.";

const WRITING_TOOLS: ReadonlySet<unknown> = new Set(['alarm_set', 'alarm_cancel']);

/** The scopes that a message needs, besides any scope of its endpoint. */
export function scopesFor(message: RemoteMessage, extensions: readonly ServerExtension[]): readonly RemoteScope[] {
  for (const extension of extensions) {
    const scopes = extension.scopesOf(message);
    if (scopes) return scopes;
  }
  const { endpoint, method, params } = message;
  if (method !== 'tools/call' || endpoint !== 'chronos') return [];
  return WRITING_TOOLS.has(params.name) ? ['alarms:write'] : ['alarms:read'];
}

/**
 * An alarm without what the scopes of a client exclude; chronosd has removed what no client sees. The address of a hook
 * wakes the agent, as only a writing client may. The conversations of others need a scope of their own.
 */
function seenAlarm<A extends AlarmView>(view: A, { scopes, clientId }: RemoteCaller): A {
  const { hook, conversation_id, ...alarm } = view;
  const isSeen = scopes.has('conversations:read') || view.made_by?.client_id === clientId;
  return {
    ...alarm,
    ...(hook && scopes.has('alarms:write') && { hook }),
    ...(isSeen && conversation_id !== undefined && { conversation_id }),
  } as A;
}

/** What a remote client sees of the user's alarms. */
const seenBy = (caller: RemoteCaller, client: ChronosClient): ChronosClient => ({
  ...client,
  async listAlarms(query, options) {
    const page = await client.listAlarms(query, options);
    return { ...page, alarms: page.alarms.map((alarm) => seenAlarm(alarm, caller)) };
  },
  getAlarm: async (...given) => seenAlarm(await client.getAlarm(...given), caller),
  patchAlarm: async (...given) => seenAlarm(await client.patchAlarm(...given), caller),
  cancelAlarm: async (...given) => seenAlarm(await client.cancelAlarm(...given), caller),
  pauseAlarm: async (...given) => seenAlarm(await client.pauseAlarm(...given), caller),
  resumeAlarm: async (...given) => seenAlarm(await client.resumeAlarm(...given), caller),
  triggerAlarm: async (...given) => seenAlarm(await client.triggerAlarm(...given), caller),
});

/** The same result for `JSON.stringify`: numbers of payloads keep their digits. */
function exactResult(result: CallToolResult): CallToolResult {
  const { structuredContent } = result;
  if (structuredContent === undefined) return result;
  return { ...result, structuredContent: exactJson(encodeJson(structuredContent)) as Record<string, unknown> };
}

export type ServersOptions = {
  backends: RemoteBackends;
  extensions: readonly ServerExtension[];
  log: Logger;
};

/** The endpoints with a backend. */
export const endpointsOf = ({ alarms, time, intents }: RemoteBackends): readonly McpEndpoint[] => {
  const parts: Readonly<Record<McpEndpoint, unknown>> = { chronos: alarms, chronometric: time, intents };
  return (Object.keys(MCP_ENDPOINTS) as McpEndpoint[]).filter((endpoint) => parts[endpoint] !== undefined);
};

/** Makes the server of a message, with its extensions. */
export function serverFactory({ backends, extensions, log }: ServersOptions): (message: RemoteMessage) => Server {
  let tools: ReadonlyMap<string, ToolDefinition> | undefined;

  const alarmServer = ({ caller, argumentsText }: RemoteMessage): Server => {
    tools ??= readChronosTools(TOOLS_FILE);
    const forward = forwarderOf({
      connect: async () => seenBy(caller, await backends.alarms!(caller)),
      agentOf: () => caller.userId,
      zone: async () => backends.zone?.(caller),
      isRemote: true,
      newConversation: NEW_CONVERSATION,
      log,
    });
    return createAlarmServer({
      tools,
      instructions: INSTRUCTIONS,
      async call(tool, { _meta = {} }, signal) {
        const about = { remoteTrace: _meta[TRACEPARENT], transport: 'tcp' as const };
        return exactResult(await forward(tool, argumentsText, signal, about));
      },
    });
  };

  const make: Readonly<Record<McpEndpoint, (message: RemoteMessage) => Server>> = {
    chronos: alarmServer,
    chronometric: ({ caller }) => createTimeServer(() => backends.time!(caller), log),
    intents: ({ caller }) => createIntentsServer(() => backends.intents!(caller), log),
  };

  return (message) => {
    const server = make[message.endpoint](message);
    for (const extension of extensions) extension.extend(server, message);
    return server;
  };
}
