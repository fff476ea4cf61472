/** The MCP server of `/mcp/intents`: two read-only tools for the user's intents. */
import { type CallToolResult, ProtocolError, ProtocolErrorCode, Server, type Tool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError, toReveilleError, wireErrorOf } from '../wire/errors.ts';
import { INTENT_STATUSES, intentIdSchema } from '../wire/executor.ts';
import { INTENT_LIST_LIMIT } from '../wire/intent-view.ts';
import { encodeJson, exactJson } from '../wire/json.ts';
import { parseOrThrow } from '../wire/validate.ts';
import type { IntentReader } from './backends.ts';

const INSTRUCTIONS =
  'These tools show the tasks (intents) that the user or an agent has submitted to Reveille: their plans, their state, and ' +
  'the questions that wait for the user. They change nothing. Only the user can answer a question.';

const listArguments = z.strictObject({
  limit: z.int().min(1).max(INTENT_LIST_LIMIT).optional().describe('Maximum number of intents, newest first.'),
  status: z.enum(INTENT_STATUSES).optional().describe('Only intents with this status.'),
});
const showArguments = z.strictObject({ intent_id: intentIdSchema.describe('The id of an intent.') });

const TOOLS = {
  intent_list: {
    title: 'List intents',
    description: "The user's intents, newest first, each with its plan and the state of its steps.",
    schema: listArguments,
  },
  intent_show: {
    title: 'Show an intent',
    description: 'One intent with its plan, the state of its steps, and the questions that wait for the user.',
    schema: showArguments,
  },
} as const;
type ToolName = keyof typeof TOOLS;
const isTool = (name: string): name is ToolName => Object.hasOwn(TOOLS, name);

const DEFINITIONS: readonly Tool[] = Object.entries(TOOLS).map(([name, { title, description, schema }]) => ({
  ...{ name, title, description },
  inputSchema: z.toJSONSchema(schema, { io: 'input' }) as Tool['inputSchema'],
  annotations: { readOnlyHint: true, openWorldHint: false },
}));

function resultOf(value: object): CallToolResult {
  const text = encodeJson(value);
  return { content: [{ type: 'text', text }], structuredContent: exactJson(text) as Record<string, unknown> };
}

async function show(reader: IntentReader, id: string, signal: AbortSignal): Promise<object> {
  const view = await reader.view(id, signal);
  const waiting = view.value.status === 'awaiting_approval' ? await reader.gates(id, signal) : [];
  return { intent: view.text, waiting: waiting.map(({ text }) => text) };
}

async function call(reader: IntentReader, name: ToolName, given: unknown, signal: AbortSignal): Promise<object> {
  if (name === 'intent_show') return show(reader, parseOrThrow(showArguments, given).intent_id, signal);
  const { limit = INTENT_LIST_LIMIT, status } = parseOrThrow(listArguments, given);
  const found = await reader.list({ limit, status }, signal);
  return { intents: found.map(({ text }) => text) };
}

/** @param open called by each tool call */
export function createIntentsServer(open: () => IntentReader | Promise<IntentReader>, log: Logger): Server {
  const server = new Server(
    { name: 'intents', title: 'Intents: tasks and their state', version: '0.1.0' },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler('tools/list', () => ({ tools: [...DEFINITIONS] }));
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: given = {} } }, context) => {
    if (!isTool(name)) {
      const message = `unknown tool ${JSON.stringify(name)}; the tools are ${Object.keys(TOOLS).join(', ')}`;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
    }
    try {
      return resultOf(await call(await open(), name, given, context.mcpReq.signal));
    } catch (thrown) {
      const error = toReveilleError(thrown);
      if (!(thrown instanceof ReveilleError)) log.error({ tool: name, err: thrown }, 'tool call failed');
      return { ...resultOf(wireErrorOf(error)), isError: true };
    }
  });
  return server;
}
