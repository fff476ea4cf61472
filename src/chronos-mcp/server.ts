/** The stdio MCP server of `reveille mcp`: lists three tools and forwards calls to chronosd. */
import type { Readable, Writable } from 'node:stream';
import {
  type CallToolRequest,
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerCapabilities,
  type Tool,
} from '@modelcontextprotocol/server';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { argumentsSource } from '../kit/mcp/message.ts';
import { type ServedConnection, serveUntilDisconnect } from '../kit/mcp/serve.ts';
import { TRACEPARENT } from '../kit/trace/trace.ts';
import { CONVERSATION_CAPABILITY, USER_META } from '../wire/manifest.ts';
import type { Settings } from '../wire/settings.ts';
import { checkMcpSettings, type LocalDefaults } from './mcp-settings.ts';
import type { ForwarderOptions, ToolForwarder } from './proxy.ts';
import { type Conversation, conversationOf } from './sessions.ts';
import { CHRONOS_ALIAS, readChronosTools, TOOL_SET_VERSION, TOOLS_FILE, type ToolDefinition } from './tools.ts';

const INSTRUCTIONS =
  'These tools set alarms that start a new turn of yours at a later time, even when this process is gone by then. ' +
  'Put everything that the turn will need into wake_message and payload.';

export type ChronosMcpOptions = {
  /** The `MATRIX_*` variables. */
  settings: Settings;
  /** Values of a local `reveille up` for missing settings; read at every call. */
  localDefaults?: () => LocalDefaults | Promise<LocalDefaults>;
  /** The zone of this computer's user; read for a time in words that names none. */
  zone?: () => Promise<string | undefined>;
  log: Logger;
  clock?: Clock;
  /** The open conversation of this server's client, if known; read at every call. */
  session?: () => Conversation | undefined;
  /** Replaces the built-in definitions. */
  toolsFile?: string | URL;
  input?: Readable;
  output?: Writable;
};

/** Forwards calls with code that is loaded on the first call or shortly after the client's first message: the handshake does not wait for it. */
function lazyForwarder(options: ForwarderOptions): { forward: ToolForwarder; load: () => Promise<ToolForwarder> } {
  let loaded: Promise<ToolForwarder> | undefined;
  const load = () => {
    loaded ??= import('./proxy.ts').then(({ createForwarder }) => createForwarder(options));
    return loaded;
  };
  return { load, forward: async (...call) => (await load())(...call) };
}

export type AlarmServerOptions = {
  tools: ReadonlyMap<string, ToolDefinition>;
  instructions: string;
  capabilities?: ServerCapabilities;
  call(
    tool: ToolDefinition,
    params: CallToolRequest['params'],
    signal: AbortSignal,
    server: Server,
  ): Promise<CallToolResult>;
};

/**
 * The server of the three tools, for one connection or one request. The low-level class, because the arguments must not
 * be parsed before this code reads them.
 */
export function createAlarmServer({ tools, instructions, capabilities, call }: AlarmServerOptions): Server {
  const server = new Server(
    { name: CHRONOS_ALIAS, title: 'Chronos: alarms', version: TOOL_SET_VERSION },
    { capabilities: { tools: {}, ...capabilities }, instructions },
  );
  server.setRequestHandler('tools/list', () => ({ tools: [...tools.values()] as unknown as Tool[] }));
  server.setRequestHandler('tools/call', ({ params }, context) => {
    const tool = tools.get(params.name);
    if (tool) return call(tool, params, context.mcpReq.signal, server);
    const message = `unknown tool ${JSON.stringify(params.name)}; the tools are ${[...tools.keys()].join(', ')}`;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  });
  return server;
}

/** The server of one connection on stdin and stdout. */
function createServer(
  tools: ReadonlyMap<string, ToolDefinition>,
  forward: ToolForwarder,
  session: () => Conversation | undefined,
): Server {
  return createAlarmServer({
    tools,
    instructions: INSTRUCTIONS,
    capabilities: { experimental: { [CONVERSATION_CAPABILITY]: {} } },
    call(tool, params, signal, server) {
      const meta: Readonly<Record<string, unknown>> = params._meta ?? {};
      return forward(tool, argumentsSource(params.arguments), signal, {
        user: meta[USER_META],
        conversation: () => conversationOf(meta, server.getClientVersion()?.name, session),
        traceparent: meta[TRACEPARENT],
      });
    },
  });
}

/**
 * Serves MCP on stdin and stdout. Needs no chronosd until a tool is called.
 *
 * @throws ReveilleError `invalid_request` for a wrong setting or invalid tool definitions
 */
export function startChronosMcp(options: ChronosMcpOptions): ServedConnection {
  const { settings, log, localDefaults = () => ({}), clock = systemClock, session = () => undefined } = options;
  const { zone = async () => undefined } = options;
  const { timeoutMs } = checkMcpSettings(settings);
  const tools = readChronosTools(options.toolsFile ?? TOOLS_FILE);
  const { forward, load } = lazyForwarder({ settings, localDefaults, zone, clock, log });
  const factory = () => {
    setImmediate(() => load().catch((thrown) => log.error({ err: thrown }, 'the forwarding code could not be loaded')));
    return createServer(tools, forward, session);
  };
  const onerror = (error: Error) => log.warn({ reason: error.message }, 'MCP connection');
  return serveUntilDisconnect({
    factory,
    onerror,
    keepsArguments: true,
    callLimitMs: timeoutMs,
    input: options.input,
    output: options.output,
  });
}
