/**
 * The stdio MCP server of `reveille mcp channel`: a channel of Claude Code (code.claude.com/docs, channels reference)
 * through which alarms reach an open session. An event only announces a wake. The tool `wake_take` returns its message:
 * Claude Code does not acknowledge events, so the tool call is the acknowledgement.
 */
import type { Readable, Writable } from 'node:stream';
import { type CallToolResult, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server';
import { type Clock, systemClock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { type ServedConnection, serveUntilDisconnect } from '../../kit/mcp/serve.ts';
import type { ClientProcess } from '../../kit/process/process-info.ts';
import { VERSION } from '../../wire/version.ts';
import { SessionChannel } from './open-sessions.ts';

const TOOL = 'wake_take';
const LOOK_MS = 500;

const INSTRUCTIONS =
  `An event of this channel means that an alarm of this session has fired. Call ${TOOL} with the wake_id of the event ` +
  'at once, before anything else. The answer is the message of the alarm: carry it out. Without the call, the message ' +
  'is delivered in another way after a few seconds. If the answer says that this has happened, do nothing.';

const TAKE_TOOL = {
  name: TOOL,
  title: 'Take a wake',
  description: 'Returns the message of an alarm that has fired for this session, once.',
  inputSchema: {
    type: 'object' as const,
    properties: { wake_id: { type: 'string', description: 'The wake_id of the event.' } },
    required: ['wake_id'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
};

export type ChannelOptions = {
  /** The folder that the router shares with channels. */
  readonly folder: string;
  /** The process that has the session open. */
  readonly client: ClientProcess;
  /** The open session, if known; read twice per second. */
  readonly session: () => string | undefined;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly input?: Readable;
  readonly output?: Writable;
};

export function startChannel(options: ChannelOptions): ServedConnection {
  const { folder, client, session, log, clock = systemClock, input, output } = options;
  const channel = new SessionChannel(folder, client);
  let cancel = () => {};

  function createServer(): Server {
    const server = new Server(
      { name: 'reveille-channel', title: 'Reveille: alarms of this session', version: VERSION },
      { capabilities: { tools: {}, experimental: { 'claude/channel': {} } }, instructions: INSTRUCTIONS },
    );
    server.setRequestHandler('tools/list', () => ({ tools: [TAKE_TOOL] }));
    server.setRequestHandler('tools/call', ({ params }): CallToolResult => {
      if (params.name !== TOOL)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `unknown tool; the tool is ${TOOL}`);
      const id = params.arguments?.wake_id;
      const text = typeof id === 'string' ? channel.take(id) : undefined;
      if (text !== undefined) return { content: [{ type: 'text', text }] };
      return { content: [{ type: 'text', text: 'This wake was delivered in another way. Do nothing.' }] };
    });
    // Events before the end of the handshake would be lost.
    server.oninitialized = () => look(server);
    return server;
  }

  function look(server: Server): void {
    try {
      for (const id of channel.look(session())) announce(server, id);
    } catch (err) {
      log.warn({ err }, 'the folder of the channel cannot be used');
    }
    cancel = clock.after(LOOK_MS, () => look(server));
  }

  function announce(server: Server, id: string): void {
    const content = `An alarm of this session has fired. Call ${TOOL} with wake_id ${id}.`;
    const event = { method: 'notifications/claude/channel', params: { content, meta: { wake_id: id } } };
    // The wake of a lost event is not taken, so the router delivers it in another way.
    server.notification(event).catch((err: unknown) => log.warn({ err, wake_id: id }, 'an event could not be sent'));
  }

  return serveUntilDisconnect({
    factory: createServer,
    onerror: (error) => log.warn({ reason: error.message }, 'MCP connection'),
    onEnd: () => {
      cancel();
      channel.close();
    },
    ...{ input, output },
  });
}
