/**
 * The stdio MCP server of `reveille chronometric`: five tools and two resources about the user's time
 * (docs/reference/chronometric.md).
 */
import type { Readable, Writable } from 'node:stream';
import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type Tool,
} from '@modelcontextprotocol/server';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import { machineZone } from '../kit/clock/zone.ts';
import type { Logger } from '../kit/log/log.ts';
import { type ServedConnection, serveUntilDisconnect } from '../kit/mcp/serve.ts';
import { CHRONOMETRIC_TOOLS, type ChronometricTool } from '../wire/chronometric-vocabulary.ts';
import { ReveilleError } from '../wire/errors.ts';
import { ChronometricError } from './chronometric-error.ts';
import type { Chronometric, ChronometricParts, ViewName } from './daemon.ts';
import { InvalidArgument, toolDefinitions } from './tools/definitions.ts';

/** Part of the tools' URIs and of their schemas' addresses. */
export const CHRONOMETRIC_VERSION = '0.1.0';

const INSTRUCTIONS =
  'These tools report time to you and to the user. Begin with get_time_context. Call mark_session_start when the user states ' +
  'a purpose, and mark_session_end when they finish. In between, call request_break_if_needed from time to time.';

const RESOURCES: readonly { view: ViewName; uri: string; title: string; description: string }[] = [
  {
    view: 'today',
    uri: 'chronometric://sessions/today',
    title: 'Sessions of today',
    description:
      "The user's day so far: each session with intent and summary, and the times when they were active or away.",
  },
  {
    view: 'week',
    uri: 'chronometric://sessions/week',
    title: 'Sessions of the week',
    description: 'The same for each of the seven days up to today.',
  },
];
const MIME_TYPE = 'application/json';

export type ChronometricServerOptions = Pick<ChronometricParts, 'dataDir' | 'environment' | 'presence'> & {
  log: Logger;
  clock?: Clock;
  input?: Readable;
  output?: Writable;
};

const isTool = (name: string): name is ChronometricTool => CHRONOMETRIC_TOOLS.some((tool) => tool === name);

/** Errors have no structured content: it would have to match the tool's output schema. */
function failed({ code, message }: ChronometricError): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify({ code, message }) }], isError: true };
}

/** The stack of an error without its message: foreign text may quote private data. */
function traceOf(thrown: unknown): { type: string; at: string[] } {
  const { name, stack = '' } = thrown instanceof Error ? thrown : new Error();
  return { type: name, at: stack.split('\n').filter((line) => /^ {4}at /.test(line)) };
}

/** Errors outside the closed set of codes are protocol errors: invalid arguments, and a state that cannot be read or written. */
function protocolError(thrown: unknown, log: Logger, what: string): ProtocolError {
  if (thrown instanceof InvalidArgument) return new ProtocolError(ProtocolErrorCode.InvalidParams, thrown.message);
  if (thrown instanceof ReveilleError && thrown.code !== 'internal') {
    log.warn({ what, reason: thrown.message, trace: traceOf(thrown.cause) }, 'chronometric cannot answer');
    return new ProtocolError(ProtocolErrorCode.InternalError, thrown.message);
  }
  const cause = thrown instanceof ReveilleError ? thrown.cause : thrown;
  log.error({ what, trace: traceOf(cause) }, 'chronometric failed');
  return new ProtocolError(ProtocolErrorCode.InternalError, 'internal error; the log has the details');
}

/**
 * The server of the five tools, for one connection or one request. The low-level class: the high-level one would reject
 * arguments with its own messages.
 */
export function createTimeServer(load: () => Promise<Chronometric>, log: Logger): Server {
  const server = new Server(
    { name: 'chronometric', title: 'Chronometric: time and sessions', version: CHRONOMETRIC_VERSION },
    { capabilities: { tools: {}, resources: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler('tools/list', () => ({ tools: toolDefinitions() as unknown as Tool[] }));
  server.setRequestHandler('tools/call', async ({ params }, context): Promise<CallToolResult> => {
    const { name } = params;
    if (!isTool(name)) {
      const message = `unknown tool ${JSON.stringify(name)}; the tools are ${CHRONOMETRIC_TOOLS.join(', ')}`;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
    }
    try {
      const { call } = await load();
      const { structured, text } = await call(name, params.arguments ?? {}, context.mcpReq.signal);
      return { content: [{ type: 'text', text: JSON.stringify(text) }], structuredContent: { ...structured } };
    } catch (thrown) {
      if (thrown instanceof ChronometricError) return failed(thrown);
      throw protocolError(thrown, log, name);
    }
  });
  server.setRequestHandler('resources/list', () => ({
    resources: RESOURCES.map(({ view: _, uri, ...description }) => ({
      uri,
      name: uri,
      mimeType: MIME_TYPE,
      ...description,
    })),
  }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const resource = RESOURCES.find((each) => each.uri === uri);
    if (!resource) throw new ResourceNotFoundError(uri);
    try {
      const text = JSON.stringify(await (await load()).view(resource.view));
      return { contents: [{ uri, mimeType: MIME_TYPE, text }] };
    } catch (thrown) {
      if (thrown instanceof ChronometricError)
        throw new ProtocolError(ProtocolErrorCode.InternalError, `${thrown.code}: ${thrown.message}`);
      throw protocolError(thrown, log, uri);
    }
  });
  return server;
}

/** Serves MCP on stdin and stdout until the client disconnects. The tools' code is loaded with the client's first message. */
export function startChronometric(options: ChronometricServerOptions): ServedConnection {
  const { dataDir, environment, presence = 'running', log, clock = systemClock, input, output } = options;
  let loaded: Promise<Chronometric> | undefined;
  const load = () => {
    loaded ??= import('./daemon.ts').then(({ openChronometric }) =>
      openChronometric({ dataDir, environment, clock, machineZone: () => machineZone(environment.TZ), log, presence }),
    );
    return loaded;
  };
  const factory = () => {
    setImmediate(() =>
      load().catch((thrown) => log.error({ trace: traceOf(thrown) }, 'the tools could not be loaded')),
    );
    return createTimeServer(load, log);
  };
  return serveUntilDisconnect({
    factory,
    // Without its message: an error about a message may quote it.
    onerror: ({ name }) => log.warn({ kind: name }, 'MCP connection'),
    async onEnd() {
      try {
        await (await loaded)?.close();
      } catch (thrown) {
        log.error({ trace: traceOf(thrown) }, 'chronometric did not close');
      }
    },
    input,
    output,
  });
}
