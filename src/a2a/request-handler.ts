/**
 * The operations of the protocol, for both bindings. The SDK's transport handlers parse the requests and write the
 * answers. A caller sees only its own tasks: every other id is not found.
 */
import {
  type AgentCard,
  type CancelTaskRequest,
  type DeleteTaskPushNotificationConfigRequest,
  type GetExtendedAgentCardRequest,
  type GetTaskPushNotificationConfigRequest,
  type GetTaskRequest,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  type ListTasksRequest,
  type ListTasksResponse,
  Message,
  type SendMessageRequest,
  type StreamResponse,
  type SubscribeToTaskRequest,
  type Task,
  type TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import { A2AError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import type { A2ARequestHandler, ServerCallContext, User } from '@a2a-js/sdk/server';
import { v7 as uuidv7 } from 'uuid';
import { type Clock, within } from '../kit/clock/clock.ts';
import type { WebAccess } from '../kit/http/web-access.ts';
import type { Logger } from '../kit/log/log.ts';
import { conversationIdSchema } from '../wire/alarm.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import { extendedCard, LEGACY_VERSION } from './agent-card.ts';
import { alarmIn, setAlarm } from './alarm-skill.ts';
import { A2A_SCOPES, type Authorized, callerKey, contextFor, conversationOf, nameOf } from './caller.ts';
import { checkedId, checkedMessage, malformed, payloadOf, sameMessage, VISIBLE } from './message.ts';
import type { PushConfig, TaskStore } from './store.ts';
import {
  artifactOf,
  isFinal,
  REPLY_ARTIFACT,
  type StoredTask,
  statusOf,
  TASK_STATES,
  type TaskStateName,
  taskOf,
  textPart,
} from './task.ts';
import type { TaskEvent, Tasks } from './tasks.ts';

/** The caller of a request. The SDK passes this object through. */
export class Caller implements User {
  readonly isAuthenticated = true;
  readonly authorized: Authorized;
  /** Source texts of the message's data parts: the SDK parses them, and loses digits of numbers. */
  readonly data: readonly string[];
  /** Ends the answer. */
  readonly ending = new AbortController();
  /** The failure of the request, for the status of the answer. */
  failure: ReveilleError | undefined;

  /** @param gone aborts when the reader has left, or the listener closes */
  constructor(authorized: Authorized, data: readonly string[], gone: AbortSignal) {
    this.authorized = authorized;
    this.data = data;
    const end = () => this.ending.abort(gone.reason);
    if (gone.aborted) end();
    else gone.addEventListener('abort', end, { once: true });
  }

  get gone(): AbortSignal {
    return this.ending.signal;
  }

  get userName(): string {
    return this.authorized.caller.userId;
  }

  get key(): string {
    return callerKey(this.authorized.caller);
  }
}

export type RequestHandlerOptions = {
  store: TaskStore;
  tasks: Tasks;
  /** Checks the addresses of notifications. */
  web: WebAccess;
  card: () => AgentCard;
  clock: Clock;
  log: Logger;
};

/** How long a request waits for the end of its task before it answers with the unfinished task. */
const BLOCK_MS = 55_000;
const PAGE_DEFAULT = 50;
const PAGE_MAX = 100;
const CONFIGS_MAX = 4;
const NOT_FOUND = 'there is no such task';

/** Wraps the operations, so that no internal error reaches the caller. */
function guarded<T>(caller: Caller, log: Logger, thrown: unknown): T {
  if (thrown instanceof A2AError) throw thrown;
  const error = toReveilleError(thrown);
  if (error.code === 'internal') log.error({ err: thrown }, 'a request of another agent failed');
  caller.failure = error;
  if (error.code === 'invalid_request') throw malformed(error.message);
  if (error.code === 'rate_limited' || error.code === 'forbidden') throw new UnsupportedOperationError(error.message);
  throw new A2AErrorOfServer();
}

class A2AErrorOfServer extends A2AError {
  override readonly reason = 'INTERNAL_ERROR';

  constructor() {
    super({ message: 'the request failed; try again later' });
  }
}

function callerOf({ user }: ServerCallContext): Caller {
  if (user instanceof Caller) return user;
  throw new ReveilleError('internal', 'a request without a verified caller reached the tasks');
}

/** The error for a valid credential that lacks a scope. */
export class MissingScope extends ReveilleError {
  readonly scope: string;

  constructor(scope: string) {
    super('forbidden', `this credential does not have the scope ${scope}`);
    this.scope = scope;
  }
}

function requireScope({ authorized }: Caller, scope: string): void {
  if (authorized.caller.scopes.has(scope)) return;
  throw new MissingScope(scope);
}

/** The cursor after a page: the last change and the id of the page's last task. */
const cursorOf = ({ updatedAt, id }: StoredTask) => `${updatedAt}~${id}`;

function readCursor(text: string): { updatedAt: number; id: string } | undefined {
  if (text === '') return undefined;
  const [, at, id] = /^(\d{1,15})~([0-9a-f-]{36})$/.exec(text) ?? [];
  if (at === undefined || id === undefined) throw malformed('pageToken must be the nextPageToken of an earlier answer');
  return { updatedAt: Number(at), id };
}

function stateOf(state: number | undefined): TaskStateName | undefined | 'none' {
  if (state === undefined || state === 0) return undefined;
  const found = Object.entries(TASK_STATES).find(([, value]) => value === state);
  return found === undefined ? 'none' : (found[0] as TaskStateName);
}

/** A push configuration as the caller sees it, without the credentials. */
const shownConfig = ({ taskId, id, url, token, scheme }: PushConfig): TaskPushNotificationConfig => ({
  ...{ tenant: '', id, taskId, url, token },
  authentication: scheme === '' ? undefined : { scheme, credentials: '' },
});

export class RequestHandler implements A2ARequestHandler {
  readonly #options: RequestHandlerOptions;

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
  }

  getAgentCard(): Promise<AgentCard> {
    return Promise.resolve(this.#options.card());
  }

  getAuthenticatedExtendedAgentCard(_: GetExtendedAgentCardRequest, context: ServerCallContext): Promise<AgentCard> {
    return this.#guard(context, async ({ authorized }) => extendedCard(this.#options.card(), authorized.caller));
  }

  sendMessage(request: SendMessageRequest, context: ServerCallContext): Promise<Task> {
    return this.#guard(context, async (caller) => {
      const { returnImmediately = false, historyLength } = request.configuration ?? {};
      const task = await this.#accept(request, caller, context.requestedVersion);
      return taskOf(returnImmediately ? task : await this.#settled(task, caller.gone), historyLength);
    });
  }

  async *sendMessageStream(request: SendMessageRequest, context: ServerCallContext): AsyncGenerator<StreamResponse> {
    const { id } = await this.#guard(context, (caller) => this.#accept(request, caller, context.requestedVersion));
    yield* this.#events(id, context);
  }

  getTask({ id, historyLength }: GetTaskRequest, context: ServerCallContext): Promise<Task> {
    return this.#guard(context, async (caller) => taskOf(this.#own(id, caller), historyLength));
  }

  listTasks(request: ListTasksRequest, context: ServerCallContext): Promise<ListTasksResponse> {
    return this.#guard(context, async (caller) => {
      const {
        contextId,
        status,
        pageSize,
        pageToken,
        historyLength = 0,
        statusTimestampAfter,
        includeArtifacts,
      } = request;
      const limit = Math.min(pageSize || PAGE_DEFAULT, PAGE_MAX);
      if (limit < 1) throw malformed('pageSize must be at least 1');
      const since = statusTimestampAfter === undefined ? undefined : Date.parse(statusTimestampAfter);
      if (Number.isNaN(since)) throw malformed('statusTimestampAfter must be an RFC 3339 instant');
      const state = stateOf(status);
      const filter = { caller: caller.key, contextId: contextId || undefined, since, after: readCursor(pageToken) };
      const { tasks, total } =
        state === 'none' ? { tasks: [], total: 0 } : this.#options.store.list({ ...filter, state, limit: limit + 1 });
      const page = tasks.slice(0, limit);
      const shown = page.map((stored) => {
        const task = taskOf(stored, historyLength);
        return includeArtifacts ? task : { ...task, artifacts: [] };
      });
      return {
        tasks: shown,
        nextPageToken: tasks.length > limit ? cursorOf(page.at(-1)!) : '',
        ...{ pageSize: page.length, totalSize: total },
      };
    });
  }

  cancelTask({ id }: CancelTaskRequest, context: ServerCallContext): Promise<Task> {
    return this.#guard(context, async (caller) => {
      requireScope(caller, A2A_SCOPES.ask);
      const task = this.#own(id, caller);
      const canceled = await this.#options.tasks.cancel(task);
      if (canceled !== undefined) return taskOf(canceled);
      throw new TaskNotCancelableError(
        isFinal(this.#own(id, caller))
          ? 'the task has ended'
          : 'a step of the task waits for the approval of the user; only the user can deny it',
      );
    });
  }

  async *resubscribe({ id }: SubscribeToTaskRequest, context: ServerCallContext): AsyncGenerator<StreamResponse> {
    await this.#guard(context, async (caller) => {
      if (isFinal(this.#own(id, caller))) throw new UnsupportedOperationError('the task has ended; read it instead');
    });
    yield* this.#events(id, context);
  }

  createTaskPushNotificationConfig(
    given: TaskPushNotificationConfig,
    context: ServerCallContext,
  ): Promise<TaskPushNotificationConfig> {
    return this.#guard(context, async (caller) => {
      requireScope(caller, A2A_SCOPES.ask);
      const { id: taskId } = this.#own(given.taskId, caller);
      const config = this.#configOf(given, taskId, context.requestedVersion);
      await this.#options.store.putConfig(config, (known) => {
        if (known.length < CONFIGS_MAX || known.some(({ id }) => id === config.id)) return;
        throw new ReveilleError(
          'rate_limited',
          `the limit of ${CONFIGS_MAX} push configurations of a task is reached; delete one`,
        );
      });
      return shownConfig(config);
    });
  }

  getTaskPushNotificationConfig(
    { taskId, id }: GetTaskPushNotificationConfigRequest,
    context: ServerCallContext,
  ): Promise<TaskPushNotificationConfig> {
    return this.#guard(context, async (caller) => {
      const configs = this.#options.store.configsOf(this.#own(taskId, caller).id);
      const config = configs.find((one) => one.id === (id || taskId));
      if (config === undefined) throw new TaskNotFoundError('the task has no such push configuration');
      return shownConfig(config);
    });
  }

  listTaskPushNotificationConfigs(
    { taskId }: ListTaskPushNotificationConfigsRequest,
    context: ServerCallContext,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    return this.#guard(context, async (caller) => ({
      configs: this.#options.store.configsOf(this.#own(taskId, caller).id).map(shownConfig),
      nextPageToken: '',
    }));
  }

  deleteTaskPushNotificationConfig(
    { taskId, id }: DeleteTaskPushNotificationConfigRequest,
    context: ServerCallContext,
  ): Promise<void> {
    return this.#guard(context, async (caller) => {
      await this.#options.store.dropConfig(this.#own(taskId, caller).id, id || taskId);
    });
  }

  async #guard<T>(context: ServerCallContext, work: (caller: Caller) => Promise<T>): Promise<T> {
    const caller = callerOf(context);
    try {
      return await work(caller);
    } catch (thrown) {
      return guarded<T>(caller, this.#options.log, thrown);
    }
  }

  /** @throws TaskNotFoundError also for a task of another caller */
  #own(id: string, { key }: Caller): StoredTask {
    const task = this.#options.store.get(id);
    if (task?.caller === key) return task;
    throw new TaskNotFoundError(NOT_FOUND);
  }

  /** Stores the task of a message. A repeated message returns its existing task. */
  async #accept(request: SendMessageRequest, caller: Caller, version: string): Promise<StoredTask> {
    const message = checkedMessage(request.message);
    const payload = payloadOf(caller.data);
    const known = this.#options.store.ofMessage(caller.key, message.messageId);
    if (known !== undefined) return sameMessage(known, message, payload);
    if (message.taskId !== '') {
      const { contextId } = this.#own(message.taskId, caller);
      throw new UnsupportedOperationError(
        `a task takes no further messages; send this one without taskId, and with contextId ${JSON.stringify(contextId)}`,
      );
    }
    const { clock, tasks } = this.#options;
    const { caller: client } = caller.authorized;
    const now = clock.now();
    const id = uuidv7({ msecs: now });
    const contextId =
      message.contextId === ''
        ? contextFor(caller.key, message.messageId)
        : checkedId('message.contextId', message.contextId);
    const base: StoredTask = {
      ...{ id, userId: client.userId, caller: caller.key, callerName: nameOf(client), contextId },
      conversationId: conversationIdSchema.parse(conversationOf(caller.key, contextId)),
      ...{ messageId: message.messageId, message: JSON.stringify(Message.toJSON(message)), payload },
      ...{ state: 'submitted', turnId: undefined, waitsFor: [], note: undefined, reply: undefined, result: undefined },
      ...{ createdAt: now, updatedAt: now },
    };
    const given = request.configuration?.taskPushNotificationConfig;
    const config = given === undefined ? undefined : this.#configOf(given, id, version);
    const alarm = alarmIn(caller.data);
    const task = alarm === undefined ? this.#question(base, caller) : await this.#alarm(base, alarm, caller);
    const made = await tasks.create(task, config);
    return made.isNew ? made.task : sameMessage(made.task, message, payload);
  }

  #question(task: StoredTask, caller: Caller): StoredTask {
    requireScope(caller, A2A_SCOPES.ask);
    return task;
  }

  /** Sets the alarm of a message. The task is stored as completed. */
  async #alarm(task: StoredTask, alarm: string, caller: Caller): Promise<StoredTask> {
    requireScope(caller, A2A_SCOPES.setAlarm);
    const { callerName, conversationId, messageId } = task;
    const key = conversationOf(caller.key, `alarm ${messageId}`);
    const alarms = await caller.authorized.alarms();
    const result = await setAlarm(alarms, { alarm, callerName, conversationId, key });
    return { ...task, state: 'completed', result };
  }

  /** Waits until a task has ended or waits for an approval. */
  async #settled(task: StoredTask, gone: AbortSignal): Promise<StoredTask> {
    const { store, tasks, clock } = this.#options;
    const isSettled = (one: StoredTask) => isFinal(one) || one.state === 'auth_required';
    const read = () => store.get(task.id) ?? task;
    if (isSettled(task)) return task;
    await within(clock, BLOCK_MS, gone, async (signal) => {
      for await (const event of tasks.follow(task.id, signal)) if (isSettled(event.task)) return;
    });
    return read();
  }

  async *#events(id: string, context: ServerCallContext): AsyncGenerator<StreamResponse> {
    const caller = callerOf(context);
    let isFirst = true;
    try {
      for await (const event of this.#options.tasks.follow(id, caller.gone)) {
        yield* responsesTo(event, isFirst);
        isFirst = false;
      }
    } catch (thrown) {
      guarded(caller, this.#options.log, thrown);
    }
  }

  /** @throws RequestMalformedError for an address that must not be called */
  #configOf(given: TaskPushNotificationConfig, taskId: string, version: string): PushConfig {
    const { web } = this.#options;
    const { url, token, authentication } = given;
    const { scheme = '', credentials = '' } = authentication ?? {};
    const id = given.id === '' ? taskId : checkedId('id', given.id);
    for (const [name, value] of Object.entries({ token, credentials }))
      if (value !== '' && (value.length > 4096 || !VISIBLE.test(value)))
        throw malformed(`${name} must be at most 4096 visible ASCII characters`);
    if (scheme !== '' && !/^[A-Za-z][A-Za-z0-9-]{0,31}$/.test(scheme))
      throw malformed('authentication.scheme must be the name of a scheme, such as Bearer');
    try {
      web.refuse(url);
      if (!/^https:/i.test(url) && !web.isAllowed(url)) throw malformed('url must begin with https://');
    } catch (thrown) {
      if (thrown instanceof A2AError) throw thrown;
      // The reason could reveal which hosts the router reaches.
      throw malformed('url must be an https:// address on the internet');
    }
    return { taskId, id, url, token, scheme, credentials, version: version === LEGACY_VERSION ? version : '1.0' };
  }
}

/** The answers of a stream to one event; the first answer is the whole task. */
function* responsesTo(event: TaskEvent, isFirst: boolean): Generator<StreamResponse> {
  const { task } = event;
  const ids = { taskId: task.id, contextId: task.contextId, metadata: undefined };
  const reply = (text: string, append: boolean, lastChunk: boolean): StreamResponse => {
    const artifact = artifactOf(REPLY_ARTIFACT, [textPart(text)]);
    return { payload: { $case: 'artifactUpdate', value: { ...ids, artifact, append, lastChunk } } };
  };
  if (isFirst) return yield { payload: { $case: 'task', value: taskOf(task) } };
  if (event.kind === 'reply') {
    const { text, appended } = event;
    return yield reply(appended ?? text, appended !== undefined, false);
  }
  if (isFinal(task) && task.reply !== undefined) yield reply(task.reply, false, true);
  yield { payload: { $case: 'statusUpdate', value: { ...ids, status: statusOf(task) } } };
}
