/**
 * A2A over HTTP: the agent card, JSON-RPC (1.0 and 0.3) at `/a2a`, and HTTP+JSON (1.0) below it. Every request needs a
 * bearer token, except for the public card and the resource metadata.
 */
import {
  A2A_CONTENT_TYPE,
  A2A_VERSION_HEADER,
  AgentCard,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
  taskStateFromJSON,
} from '@a2a-js/sdk';
import { LegacyJsonRpcTransportHandler, LegacyRestTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import {
  RequestMalformedError,
  restStatusFor,
  toRestErrorBody,
  UnsupportedOperationError,
  VersionNotSupportedError,
} from '@a2a-js/sdk/errors';
import { JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';
import type { Clock } from '../kit/clock/clock.ts';
import { bearerOf } from '../kit/http/bearer.ts';
import { markProved } from '../kit/http/body.ts';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import { elementsOf, refuseDeepNesting, sliceAt } from '../wire/json.ts';
import { metadataPath, REMOTE_RESOURCES } from '../wire/remote-caller.ts';
import { A2A_PATH, CARD_PATH, LEGACY_VERSION, VERSION } from './agent-card.ts';
import type { Authenticate, Authorized } from './caller.ts';
import { callerKey } from './caller.ts';
import { eventStream } from './event-stream.ts';
import type { CallerLimits } from './limits.ts';
import { Caller, MissingScope, type RequestHandler } from './request-handler.ts';

/** The client of a request. */
export type RequestInfo = { readonly remoteAddress: string; readonly closing: AbortSignal };

/** Outcomes of requests, for the metrics. */
export const OUTCOMES = ['answered', 'refused', 'unauthorized', 'limited', 'failed'] as const;
export type Outcome = (typeof OUTCOMES)[number];

function outcomeOf(status: number): Outcome {
  if (status < 400) return 'answered';
  if (status === 401) return 'unauthorized';
  if (status === 429) return 'limited';
  return status >= 500 ? 'failed' : 'refused';
}

export type A2aHttpOptions = {
  handler: RequestHandler;
  authenticate: Authenticate;
  /** The trusted authorization servers. If there are none, the resource metadata are not served. */
  issuers: () => readonly string[];
  publicUrl: () => string;
  limits: CallerLimits;
  clock: Clock;
  log: Logger;
  /** Counts a request by its outcome. */
  count: (outcome: Outcome) => void;
};

/** The metadata of the OAuth resource (RFC 9728). */
const METADATA_PATH = metadataPath(A2A_PATH);

const pathOf = (target: string) => target.split('?', 1)[0]!;

/** Whether a request target is one of A2A. */
export function isA2a(target: string): boolean {
  const path = pathOf(target);
  return path === CARD_PATH || path === METADATA_PATH || path === A2A_PATH || path.startsWith(`${A2A_PATH}/`);
}

const JSON_TYPES = new Set(['application/json', A2A_CONTENT_TYPE]);
const decoder = new TextDecoder('utf-8', { fatal: true });

function json(value: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json', ...headers } });
}

function retryHeaders({ retryAfterSeconds }: ReveilleError): Record<string, string> {
  return retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(retryAfterSeconds))) };
}

/** A refusal before any operation. It reveals nothing about users. */
function refusal(status: number, message: string, headers: Record<string, string> = {}): Response {
  return json({ error: { code: status, message } }, status, headers);
}

/** @throws ReveilleError `invalid_request` */
async function bodyOf(request: Request): Promise<string> {
  const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const bytes = new Uint8Array(await request.arrayBuffer());
  if (bytes.length > 0 && !JSON_TYPES.has(type))
    throw new ReveilleError('invalid_request', 'the content type must be application/json', { status: 415 });
  try {
    const text = decoder.decode(bytes);
    refuseDeepNesting(text);
    return text;
  } catch (cause) {
    if (cause instanceof ReveilleError) throw cause;
    throw new ReveilleError('invalid_request', 'the body must be UTF-8', { cause });
  }
}

/** The source texts of the data parts of a message. @param path members from the body to the message */
function dataIn(body: string, path: readonly string[]): string[] {
  const parts = elementsOf(sliceAt(body, [...path, 'parts']) ?? 'null') ?? [];
  return parts.flatMap((part) => sliceAt(part, ['data']) ?? []);
}

/** @throws RequestMalformedError */
function objectOf(body: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(body === '' ? '{}' : body);
  } catch {
    throw new RequestMalformedError('the body must be JSON');
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new RequestMalformedError('the body must be a JSON object');
}

/** Runs a parser of the SDK. @throws RequestMalformedError for any error of the parser */
function parsedBy<T>({ fromJSON }: { fromJSON(value: unknown): T }, value: object): T {
  try {
    return fromJSON(value);
  } catch {
    throw new RequestMalformedError('the body does not have the form of this operation');
  }
}

const INTERNAL = -32603;

/** Replaces internal errors: the SDK's handlers send the text of any error to the caller. */
function withoutInside(answer: object, { failure }: Caller): object {
  const { error } = answer as { error?: { code: number } };
  if (error?.code !== INTERNAL || failure !== undefined) return answer;
  const { code, message } = JsonRpcTransportHandler.mapToJSONRPCError(
    new RequestMalformedError('malformed parameters'),
  );
  return { ...answer, error: { code, message } };
}

/** A request with its verified caller. */
type Call = { caller: Caller; context: ServerCallContext; body: string; version: string };

export class A2aHttp {
  readonly #options: A2aHttpOptions;
  readonly #rpc: JsonRpcTransportHandler;
  readonly #legacyRpc: LegacyJsonRpcTransportHandler;

  constructor(options: A2aHttpOptions) {
    this.#options = options;
    this.#rpc = new JsonRpcTransportHandler(options.handler);
    this.#legacyRpc = new LegacyJsonRpcTransportHandler(options.handler);
  }

  /** Answers a request whose target {@link isA2a} accepts. Never rejects. */
  async answer(request: Request, info: RequestInfo): Promise<Response> {
    const { log, count } = this.#options;
    try {
      const response = await this.#route(request, info);
      count(outcomeOf(response.status));
      return response;
    } catch (thrown) {
      const error = toReveilleError(thrown);
      if (error.code === 'internal') log.error({ err: thrown }, 'a request of another agent failed');
      count(outcomeOf(error.status));
      const message = error.status >= 500 ? 'the request could not be answered' : error.message;
      return refusal(error.status, message, retryHeaders(error));
    }
  }

  async #route(request: Request, info: RequestInfo): Promise<Response> {
    // Only programs are callers: a web page of another origin must not use a token.
    if (request.headers.get('origin') !== null) return refusal(403, 'requests of web pages are not accepted');
    const { pathname } = new URL(request.url);
    if (pathname === CARD_PATH) return this.#card(request);
    if (pathname === METADATA_PATH) return this.#metadata(request);
    const authorized = await this.#authorize(request, info);
    if (authorized === undefined)
      return refusal(401, 'a valid bearer token is needed', { 'www-authenticate': this.#challenge() });
    markProved(request);
    const leave = this.#options.limits.enter(callerKey(authorized.caller), authorized.caller.userId);
    try {
      return await this.#dispatch(request, info, authorized, pathname.slice(A2A_PATH.length));
    } finally {
      // Open streams have a limit of their own.
      leave();
    }
  }

  async #authorize(request: Request, info: RequestInfo): Promise<Authorized | undefined> {
    const token = bearerOf(request.headers.get('authorization') ?? undefined);
    return token === undefined ? undefined : this.#options.authenticate(token, info.remoteAddress);
  }

  #challenge(...more: readonly string[]): string {
    const { issuers, publicUrl } = this.#options;
    const parts = [...more, ...(issuers().length === 0 ? [] : [`resource_metadata="${publicUrl()}${METADATA_PATH}"`])];
    return ['Bearer', parts.join(', ')].join(' ').trim();
  }

  #metadata(request: Request): Response {
    const { issuers, publicUrl } = this.#options;
    if (issuers().length === 0) return refusal(404, 'access tokens are not accepted here');
    if (request.method !== 'GET') return refusal(405, 'the metadata is read with GET', { allow: 'GET' });
    const resource = `${publicUrl()}${A2A_PATH}`;
    const about = { resource, authorization_servers: issuers(), scopes_supported: REMOTE_RESOURCES.a2a };
    return json({ ...about, bearer_methods_supported: ['header'] });
  }

  /** The headers of a failed request: the retry time or the missing scope. */
  #headersOf({ failure }: Caller): Record<string, string> {
    if (failure instanceof MissingScope)
      return { 'www-authenticate': this.#challenge('error="insufficient_scope"', `scope="${failure.scope}"`) };
    return failure === undefined ? {} : retryHeaders(failure);
  }

  /** The public card. Clients of the old version send no version header; their card also lists the new interfaces. */
  async #card(request: Request): Promise<Response> {
    if (request.method !== 'GET') return refusal(405, 'the agent card is read with GET', { allow: 'GET' });
    const card = await this.#options.handler.getAgentCard();
    const current = AgentCard.toJSON(card) as object;
    const headers = { vary: A2A_VERSION_HEADER };
    if ((request.headers.get(A2A_VERSION_HEADER) ?? LEGACY_VERSION) !== LEGACY_VERSION)
      return json(current, 200, headers);
    const provider = { getAuthenticatedExtendedAgentCard: () => Promise.resolve(card) } as unknown as RequestHandler;
    const old = await new LegacyRestTransportHandler(provider).getAuthenticatedExtendedAgentCard(
      new ServerCallContext(),
    );
    return json({ ...old, supportedInterfaces: card.supportedInterfaces }, 200, headers);
  }

  async #dispatch(request: Request, { closing }: RequestInfo, authorized: Authorized, path: string): Promise<Response> {
    const isRpc = path === '' || path === '/';
    if (isRpc && request.method !== 'POST') return refusal(405, 'JSON-RPC is sent with POST', { allow: 'POST' });
    const body = await bodyOf(request);
    const version = request.headers.get(A2A_VERSION_HEADER) ?? LEGACY_VERSION;
    const readData = () => dataIn(body, isRpc ? ['params', 'message'] : ['message']);
    const data = isJson(body) ? readData() : [];
    const caller = new Caller(authorized, data, AbortSignal.any([request.signal, closing]));
    const context = new ServerCallContext({ user: caller, requestedVersion: version });
    const call = { caller, context, body, version };
    return isRpc ? this.#jsonRpc(call) : this.#rest(request, path, call);
  }

  async #jsonRpc(call: Call): Promise<Response> {
    const { caller, context, body, version } = call;
    if (version !== VERSION && version !== LEGACY_VERSION) {
      const error = JsonRpcTransportHandler.mapToJSONRPCError(unsupported(version));
      return json({ jsonrpc: '2.0', id: null, error });
    }
    const isLegacy = version === LEGACY_VERSION;
    const answer = await (isLegacy ? this.#legacyRpc : this.#rpc).handle(body, context);
    if (!(Symbol.asyncIterator in answer))
      return json(withoutInside(answer, caller), statusOf(caller), this.#headersOf(caller));
    const idOf = () => objectOf(body).id ?? null;
    const map = isLegacy
      ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError
      : JsonRpcTransportHandler.mapToJSONRPCError;
    const failed = (thrown: unknown) => withoutInside({ jsonrpc: '2.0', id: idOf(), error: map(thrown) }, caller);
    return this.#stream(answer, call, (event) => event, {
      before: (thrown) => json(failed(thrown), statusOf(caller), this.#headersOf(caller)),
      inside: failed,
    });
  }

  async #rest(request: Request, path: string, call: Call): Promise<Response> {
    const { caller, version } = call;
    try {
      if (version !== VERSION) throw unsupported(version);
      return await this.#operation(request.method, path, new URL(request.url).searchParams, call);
    } catch (thrown) {
      return this.#restFailure(thrown, caller);
    }
  }

  #restFailure(thrown: unknown, caller: Caller): Response {
    const inside = statusOf(caller);
    const status = inside === 200 ? restStatusFor(thrown) : inside;
    const headers = { ...this.#headersOf(caller), 'content-type': A2A_CONTENT_TYPE };
    return json(toRestErrorBody(thrown, status), status, headers);
  }

  /** The operations of HTTP+JSON (A2A 1.0 §11.3). */
  async #operation(method: string, path: string, query: URLSearchParams, call: Call): Promise<Response> {
    const { handler } = this.#options;
    const { caller, context, body } = call;
    const rest = (value: unknown, status = 200) => json(value, status, { 'content-type': A2A_CONTENT_TYPE });
    const stream = (events: AsyncGenerator<StreamResponse>) =>
      this.#stream(events, call, (event) => StreamResponse.toJSON(event), {
        before: (thrown) => this.#restFailure(thrown, caller),
        inside: (thrown) => toRestErrorBody(thrown, restStatusFor(thrown)),
      });
    const message = () => parsedBy(SendMessageRequest, objectOf(body));
    const tenant = '';
    const at = `${method} ${path}`;
    if (at === 'POST /message:send') return rest(sent(await handler.sendMessage(message(), context)));
    if (at === 'POST /message:stream') return stream(handler.sendMessageStream(message(), context));
    if (at === 'GET /extendedAgentCard')
      return rest(AgentCard.toJSON(await handler.getAuthenticatedExtendedAgentCard({ tenant }, context)));
    if (at === 'GET /tasks') {
      const answer = await handler.listTasks(listRequest(query), context);
      // The protocol requires these members even if empty; the SDK omits them.
      const { tasks: _, ...counts } = answer;
      return rest({ tasks: [], ...counts, ...(ListTasksResponse.toJSON(answer) as object) });
    }
    const [, id = '', action] = /^\/tasks\/([^/:]+)(?::(\w+))?$/.exec(path) ?? [];
    if (id !== '' && action === undefined && method === 'GET')
      return rest(Task.toJSON(await handler.getTask({ tenant, id, historyLength: lengthIn(query) }, context)));
    if (id !== '' && action === 'cancel' && method === 'POST')
      return rest(Task.toJSON(await handler.cancelTask({ tenant, id, metadata: {} }, context)));
    if (id !== '' && action === 'subscribe' && (method === 'GET' || method === 'POST'))
      return stream(handler.resubscribe({ tenant, id }, context));
    const [, taskId, configId] = /^\/tasks\/([^/:]+)\/pushNotificationConfigs(?:\/([^/:]+))?$/.exec(path) ?? [];
    if (taskId === undefined) throw new UnsupportedOperationError('there is no such operation');
    if (configId === undefined && method === 'POST') {
      const given = parsedBy(TaskPushNotificationConfig, { ...objectOf(body), taskId });
      const config = await handler.createTaskPushNotificationConfig(given, context);
      return rest(TaskPushNotificationConfig.toJSON(config), 201);
    }
    if (configId === undefined && method === 'GET') {
      const page = { tenant, taskId, pageSize: 0, pageToken: '' };
      const { configs } = await handler.listTaskPushNotificationConfigs(page, context);
      return rest({ configs: configs.map((config) => TaskPushNotificationConfig.toJSON(config)) });
    }
    const one = { tenant, taskId, id: configId ?? '' };
    if (method === 'GET')
      return rest(TaskPushNotificationConfig.toJSON(await handler.getTaskPushNotificationConfig(one, context)));
    if (method !== 'DELETE') throw new UnsupportedOperationError('there is no such operation');
    await handler.deleteTaskPushNotificationConfig(one, context);
    return new Response(null, { status: 204 });
  }

  /** Answers with a stream; a failure before the first event is a plain answer. */
  async #stream<T>(
    events: AsyncGenerator<T>,
    { caller }: Call,
    format: (event: T) => unknown,
    failed: { before: (thrown: unknown) => Response; inside: (thrown: unknown) => unknown },
  ): Promise<Response> {
    const { clock, limits } = this.#options;
    let first: IteratorResult<T>;
    const leave = limits.enterStream(caller.key);
    try {
      first = await events.next();
    } catch (thrown) {
      leave();
      return failed.before(thrown);
    }
    return eventStream({
      ...{ first, events, format, clock },
      formatError: failed.inside,
      isValid: caller.authorized.isValid,
      ending: caller.ending,
      onEnd: leave,
    });
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const unsupported = (version: string) =>
  new VersionNotSupportedError(`the version ${JSON.stringify(version.slice(0, 20))} is not supported; use ${VERSION}`);

/** An internal failure has its HTTP status also in JSON-RPC, so that clients retry later. */
const statusOf = ({ failure }: Caller) =>
  failure === undefined || failure.code === 'invalid_request' ? 200 : failure.status;

const sent = (task: Parameters<typeof Task.toJSON>[0]) => ({ task: Task.toJSON(task) });

/** @throws RequestMalformedError */
function wholeNumberIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new RequestMalformedError(`${name} must be a whole number`);
}

const lengthIn = (query: URLSearchParams) => wholeNumberIn(query, 'historyLength');

function listRequest(query: URLSearchParams): ListTasksRequest {
  const status = query.get('status') ?? '';
  return ListTasksRequest.fromJSON({
    ...{ tenant: '', contextId: query.get('contextId') ?? '', pageToken: query.get('pageToken') ?? '' },
    status: status === '' ? undefined : taskStateFromJSON(/^\d+$/.test(status) ? Number(status) : status),
    ...{ pageSize: wholeNumberIn(query, 'pageSize'), historyLength: lengthIn(query) },
    statusTimestampAfter: query.get('statusTimestampAfter') ?? undefined,
    includeArtifacts: query.get('includeArtifacts') === 'true',
  });
}
