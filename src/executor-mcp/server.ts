/**
 * The stdio MCP server of `reveille executor mcp`: `core_execute` for MCP clients. A client with the Tasks extension
 * (`io.modelcontextprotocol/tasks`, 2026-07-28) gets a task and polls it with `tasks/get`. Other clients use the tools
 * `task_status` and `task_cancel` with the same id.
 */
import type { Readable, Writable } from 'node:stream';
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { type ServedConnection, serveUntilDisconnect } from '../kit/mcp/serve.ts';
import { toReveilleError, wireErrorOf } from '../wire/errors.ts';
import { isObject } from '../wire/json.ts';
import { shortText, verbatimText } from '../wire/text.ts';
import { CORE_EXECUTE } from '../wire/tool-surface.ts';
import { parseOrThrow } from '../wire/validate.ts';
import { VERSION } from '../wire/version.ts';
import { createTasks, type TaskExecutor, type TaskState, type Tasks } from './tasks.ts';

const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
const EXTENSIONS = { [TASKS_EXTENSION]: {} };

const INSTRUCTIONS =
  'Use core_execute for a task that moves money, commits the user to something, or needs rigour. The user approves ' +
  'every step that cannot be undone, in the console or with a command; you cannot approve it. Submit a task once.';

/** Poll interval for clients. Approvals take seconds to hours. */
const POLL_MS = 2000;
/** Below one minute, after which clients give up a call. */
const WAIT_MAX_SECONDS = 50;
const WAIT_DEFAULT_SECONDS = 20;

const waitSeconds = z.int().min(0).max(WAIT_MAX_SECONDS).default(WAIT_DEFAULT_SECONDS);
const taskId = z.string().min(1).max(200);
const TOOL_ARGUMENTS = {
  [CORE_EXECUTE]: z.strictObject({
    intent: verbatimText(32 * 1024).refine((text) => text.trim() !== '', 'must describe the task'),
    idempotency_key: shortText(200).min(1).optional(),
    wait_seconds: waitSeconds,
  }),
  task_status: z.strictObject({ task_id: taskId, wait_seconds: waitSeconds }),
  task_cancel: z.strictObject({ task_id: taskId }),
};
type ToolName = keyof typeof TOOL_ARGUMENTS;

const TASK_ID = { type: 'string', description: 'The task_id in the answer of core_execute.' };
const WAIT_SECONDS = {
  type: 'integer',
  minimum: 0,
  maximum: WAIT_MAX_SECONDS,
  description: `How long to wait for the end of the task. Default ${WAIT_DEFAULT_SECONDS}.`,
};

const TOOLS: readonly (Tool & { name: ToolName })[] = [
  {
    name: CORE_EXECUTE,
    title: 'Execute a task',
    description:
      'Submits a task to the secure executor. It compiles the task into a plan, asks the user to approve every step ' +
      'that cannot be undone, executes the plan and signs a receipt. It can take hours, because the user may have to ' +
      'answer. Submit a task once: "working" means that it is in progress. Then use task_status.',
    inputSchema: {
      type: 'object',
      properties: {
        intent: {
          type: 'string',
          description: 'A self-contained description of the task, with every amount, address, id and limit in full.',
        },
        idempotency_key: {
          type: 'string',
          description: 'Repeat a failed call with the same key: the task is then submitted only once.',
        },
        wait_seconds: {
          ...WAIT_SECONDS,
          description: `${WAIT_SECONDS.description} Ignored if the answer is an MCP task.`,
        },
      },
      required: ['intent'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
  {
    name: 'task_status',
    title: 'Status of a task',
    description:
      'Returns the status of a task that core_execute submitted, and after its end the outcome and the signed receipt.',
    inputSchema: {
      type: 'object',
      properties: { task_id: TASK_ID, wait_seconds: WAIT_SECONDS },
      required: ['task_id'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'task_cancel',
    title: 'Cancel a task',
    description:
      'Cancels a task that core_execute submitted. After the first step that cannot be undone, the task continues to ' +
      'its end, and the answer says so.',
    inputSchema: {
      type: 'object',
      properties: { task_id: TASK_ID },
      required: ['task_id'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
];

/** Whether this request declares the Tasks extension. Each request must declare it. */
function declaresTasks({ mcpReq }: ServerContext): boolean {
  const envelope: Readonly<Record<string, unknown>> = mcpReq.envelope ?? {};
  const declared = envelope[CLIENT_CAPABILITIES_META_KEY];
  const extensions = isObject(declared) ? declared.extensions : undefined;
  return isObject(extensions) && Object.hasOwn(extensions, TASKS_EXTENSION);
}

/** @throws MissingRequiredClientCapabilityError for a request without the extension */
function requireTasks(context: ServerContext): void {
  if (declaresTasks(context)) return;
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: EXTENSIONS } });
}

function taskOf({ taskId, status, message, createdAt, lastUpdatedAt }: TaskState) {
  return { taskId, status, statusMessage: message, createdAt, lastUpdatedAt, ttlMs: null, pollIntervalMs: POLL_MS };
}

/** The outcome for the model, and the receipt, byte for byte, for a verifier. */
async function resultOf(tasks: Tasks, state: TaskState): Promise<CallToolResult> {
  const { taskId, intentId, status, intentStatus, message, result, receipt, succeeded } = state;
  const isWorking = status === 'working';
  const source = isWorking ? undefined : await tasks.receipt(state);
  const text = [
    message,
    ...(isWorking ? [`task_id: ${taskId}. Look again with task_status.`] : []),
    ...(result === undefined ? [] : ['Result:', result]),
    ...(receipt === undefined ? [] : [`Receipt: sha256 ${receipt.sha256}, ${receipt.envelopes} envelopes.`]),
    ...(receipt !== undefined && source === undefined
      ? [`It is too long for this answer; the user gets it with: reveille intent receipt ${intentId}`]
      : []),
  ];
  const facts = { task_id: taskId, intent_id: intentId, status, intent_status: intentStatus, message };
  const uri = `reveille://intents/${intentId}/receipt`;
  return {
    content: [
      { type: 'text', text: text.join('\n') },
      ...(source === undefined
        ? []
        : [{ type: 'resource' as const, resource: { uri, mimeType: 'application/json', text: source } }]),
    ],
    structuredContent: {
      ...facts,
      // The source text, so that numbers keep their digits.
      ...(result !== undefined && { result_json: result }),
      ...(receipt && { receipt: { sha256: receipt.sha256, envelopes: receipt.envelopes } }),
    },
    ...(!isWorking && !succeeded && { isError: true }),
  };
}

/** The JSON-RPC error of a `tasks/…` request. */
function protocolError(thrown: unknown, log: Logger): ProtocolError {
  const error = toReveilleError(thrown);
  if (error.code === 'not_found') return new ProtocolError(ProtocolErrorCode.InvalidParams, error.message);
  if (error.code === 'internal') log.error({ err: error.cause ?? error }, 'a task request failed');
  // A refused cancellation must be an error: clients treat an acknowledged one as cancelled.
  const code = error.code === 'conflict' ? ProtocolErrorCode.InvalidRequest : ProtocolErrorCode.InternalError;
  return new ProtocolError(code, error.message, wireErrorOf(error));
}

export type TaskServerOptions = {
  /** A client of the executor with the submitter's credential, for the user who owns the tasks. */
  readonly executor: TaskExecutor;
  /** Binds the ids of tasks to the submitter: `taskKey` of `tasks.ts`. */
  readonly key: Buffer;
  readonly clock: Clock;
  readonly log: Logger;
};

/**
 * A server for one submitter. It uses the SDK's low-level class, because the result of `core_execute` may be a task. It
 * keeps no state, so a client may use another instance for each request.
 */
export function createTaskServer({ log, ...options }: TaskServerOptions): Server {
  const tasks = createTasks(options);
  const server = new Server(
    { name: 'executor', title: 'Reveille: tasks with approval', version: VERSION },
    { capabilities: { tools: {}, extensions: EXTENSIONS }, instructions: INSTRUCTIONS },
  );
  const answering = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (thrown) {
      throw protocolError(thrown, log);
    }
  };
  const detailed = async (state: TaskState) => ({
    ...taskOf(state),
    // Clients validate the included result as an answer to tools/call.
    ...(state.status === 'completed' && { result: { ...(await resultOf(tasks, state)), resultType: 'complete' } }),
  });

  const callTool: { readonly [Name in ToolName]: (args: never, context: ServerContext) => Promise<object> } = {
    async [CORE_EXECUTE](args: z.output<(typeof TOOL_ARGUMENTS)['core_execute']>, context) {
      const { signal } = context.mcpReq;
      const state = await tasks.submit(args.intent, args.idempotency_key, signal);
      log.info({ intent_id: state.intentId }, 'a task was submitted');
      if (declaresTasks(context)) return { resultType: 'task', ...taskOf(state) };
      return resultOf(tasks, await tasks.readWithin(state.taskId, args.wait_seconds * 1000, signal));
    },
    async task_status(args: z.output<(typeof TOOL_ARGUMENTS)['task_status']>, { mcpReq: { signal } }) {
      return resultOf(tasks, await tasks.readWithin(args.task_id, args.wait_seconds * 1000, signal));
    },
    async task_cancel(args: z.output<(typeof TOOL_ARGUMENTS)['task_cancel']>) {
      const state = await tasks.cancel(args.task_id);
      const isCancelled = state.status === 'cancelled';
      const message = isCancelled
        ? state.message
        : `The task had already ended and was not cancelled. ${state.message}`;
      return { ...(await resultOf(tasks, { ...state, message })), isError: !isCancelled };
    },
  };

  server.setRequestHandler('tools/list', () => ({ tools: [...TOOLS] }));
  server.setRequestHandler('tools/call', async ({ params }, context): Promise<CallToolResult> => {
    const { name } = params;
    if (!Object.hasOwn(TOOL_ARGUMENTS, name)) {
      const known = Object.keys(TOOL_ARGUMENTS).join(', ');
      const message = `unknown tool ${JSON.stringify(name)}; the tools are ${known}`;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
    }
    try {
      const args = parseOrThrow(TOOL_ARGUMENTS[name as ToolName], params.arguments ?? {});
      return (await callTool[name as ToolName](args as never, context)) as CallToolResult;
    } catch (thrown) {
      const error = toReveilleError(thrown);
      log.warn({ tool: name, code: error.code, reason: error.message, err: error.cause }, 'tool call failed');
      const value = wireErrorOf(error);
      return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value, isError: true };
    }
  });

  const params = z.looseObject({ taskId: z.string() });
  server.setRequestHandler('tasks/get', { params }, async ({ taskId: id }, context) => {
    requireTasks(context);
    return answering(tasks.read(id, context.mcpReq.signal).then(detailed));
  });
  // No task asks its client for input: only the user can answer, with a signature.
  server.setRequestHandler('tasks/update', { params }, async ({ taskId: id }, context) => {
    requireTasks(context);
    await answering(tasks.read(id, context.mcpReq.signal));
    return {};
  });
  server.setRequestHandler('tasks/cancel', { params }, async ({ taskId: id }, context) => {
    requireTasks(context);
    const { status, intentStatus } = await answering(tasks.cancel(id));
    // The extension requires an acknowledgement also for an ended task. `_meta` says that it was not cancelled.
    return status === 'cancelled' ? {} : { _meta: { 'reveille/ended': intentStatus } };
  });
  return server;
}

export type TaskServerOnStdioOptions = Omit<TaskServerOptions, 'clock'> & {
  readonly clock?: Clock;
  readonly input?: Readable;
  readonly output?: Writable;
};

/** Serves MCP on stdin and stdout. Needs no executor until a tool is called. */
export function startTaskServer({
  clock = systemClock,
  input,
  output,
  ...options
}: TaskServerOnStdioOptions): ServedConnection {
  const onerror = (error: Error) => options.log.warn({ reason: error.message }, 'MCP connection');
  const factory = () => createTaskServer({ ...options, clock });
  return serveUntilDisconnect({ factory, onerror, input, output });
}
