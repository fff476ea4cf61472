/**
 * Answers one request to an MCP endpoint. It checks the token, the scopes, the session and the user's share of
 * requests, then calls the SDK's handler for each message. A refusal of a token has the header that the client needs,
 * and no detail.
 */
import { randomUUID } from 'node:crypto';
import { createMcpHandler, type McpHttpHandler, type Server } from '@modelcontextprotocol/server';
import type { Clock } from '../kit/clock/clock.ts';
import { bearerOf } from '../kit/http/bearer.ts';
import { markProved } from '../kit/http/body.ts';
import type { Logger } from '../kit/log/log.ts';
import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  isRefusal,
  type Message,
  type Received,
  type Refusal as RefusedMessage,
  readMessages,
  refusalJson,
} from '../kit/mcp/message.ts';
import { toReveilleError } from '../wire/errors.ts';
import { type RawJson, sliceAt } from '../wire/json.ts';
import {
  isOptional,
  MCP_ENDPOINTS,
  type McpEndpoint,
  mcpPath,
  metadataPath,
  type RemoteCaller,
  type RemoteScope,
} from '../wire/remote-caller.ts';
import type { Refusal, TokenVerifier } from './oauth/verifier.ts';
import { type RemoteMessage, type ServerExtension, scopesFor } from './servers.ts';

/** Outcomes of requests, for the metrics. */
export const OUTCOMES = [
  ...(['answered', 'insufficient_scope', 'unknown_session', 'over_share', 'foreign_origin', 'bad_request'] as const),
] as const;
export type Outcome = (typeof OUTCOMES)[number] | Refusal;

export type EndpointOptions = {
  endpoint: McpEndpoint;
  verifier: TokenVerifier;
  publicUrl: () => string;
  serverFor: (message: RemoteMessage) => Server;
  extensions: readonly ServerExtension[];
  enter: (userId: string, kind: 'streams' | 'requests') => () => void;
  count: (outcome: Outcome) => void;
  clock: Clock;
  log: Logger;
};

export type McpHttpEndpoint = {
  /** @param closing aborts when the listener closes */
  answer(request: Request, closing: AbortSignal): Promise<Response>;
  close(): Promise<void>;
};

const json = (status: number, body: object, headers: Readonly<Record<string, string>> = {}) =>
  Response.json(body, { status, headers });

/** A refusal as a JSON-RPC error, for clients that can parse nothing else. */
const rpcError = (status: number, code: number, why: string, { id, headers, data }: RpcAbout = {}) =>
  jsonText(status, refusalJson({ code, why, id }, data), headers);
type RpcAbout = {
  id?: RawJson | undefined;
  headers?: Readonly<Record<string, string>>;
  data?: unknown;
};

const jsonText = (status: number, text: string, headers: Readonly<Record<string, string>> = {}) =>
  new Response(text, { status, headers: { 'content-type': 'application/json', ...headers } });

/** A code of the server (JSON-RPC 2.0, section 5.1). */
const SERVER_ERROR = -32_000;

/** `Retry-After` when the issuer does not answer. */
const RETRY_SECONDS = '5';
/** How often the token of an open stream is checked again, milliseconds. */
const RECHECK_MS = 5000;
const REPORT_EVERY_MS = 60_000;
/** Outcomes that a setting may have caused. */
const OF_OPERATOR: ReadonlySet<Outcome> = new Set([
  ...(['issuer_unavailable', 'foreign_issuer', 'wrong_audience', 'bad_claims', 'no_user'] as const),
]);

/** The media types of answers that a client reads. */
type Accepted = { readonly json: boolean; readonly stream: boolean; readonly all: boolean };

/** Without the header a client reads all types. A stream is for a client that names it. */
function acceptedTypes(header: string | null): Accepted {
  const types = (header ?? '*/*').split(',').map((part) => part.split(';', 1)[0]!.trim().toLowerCase());
  const names = (...wanted: readonly string[]) => types.some((type) => wanted.includes(type));
  const all = names('*/*');
  return { json: all || names('application/json', 'application/*'), stream: names('text/event-stream', 'text/*'), all };
}

/** The SDK requires both types. */
const SDK_ACCEPT = 'application/json, text/event-stream';

/** The answer to a request, without the notifications before it. */
async function answerText(response: Response): Promise<string> {
  const text = await response.text();
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return text;
  // Only a line feed ends a line of the SDK. JSON may contain the other ends, such as U+2028.
  const data = text.split('\n').filter((line) => line.startsWith('data: '));
  return data.at(-1)?.slice('data: '.length) ?? '';
}

/** Replaces a text in a body of JSON or of events, line by line: a chunk may end inside the text. */
function replaceInBody(response: Response, from: string, to: string): Response {
  if (response.body === null) return response;
  let rest = '';
  const lines = new TransformStream<string, string>({
    transform(chunk, controller) {
      const text = rest + chunk;
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      if (end > 0) controller.enqueue(text.slice(0, end).replaceAll(from, to));
    },
    flush(controller) {
      if (rest !== '') controller.enqueue(rest.replaceAll(from, to));
    },
  });
  const { status, headers } = response;
  const decoded = response.body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>);
  return new Response(decoded.pipeThrough(lines).pipeThrough(new TextEncoderStream()), { status, headers });
}

/** The challenge of RFC 6750 §3 with the metadata of RFC 9728 §5.1. */
function challenge(metadata: string, scopes: readonly RemoteScope[], error?: string): string {
  const parts = [
    ...(error === undefined ? [] : [`error="${error}"`]),
    `scope="${scopes.join(' ')}"`,
    `resource_metadata="${metadata}"`,
  ];
  return `Bearer ${parts.join(', ')}`;
}

export function createEndpoint(options: EndpointOptions): McpHttpEndpoint {
  const { endpoint, verifier, publicUrl, serverFor, extensions, enter, count, clock, log } = options;
  const own: readonly RemoteScope[] = MCP_ENDPOINTS[endpoint];
  // Called for each request, in both eras of the protocol.
  const handler: McpHttpHandler = createMcpHandler(
    ({ authInfo }) => serverFor((authInfo!.extra as { message: RemoteMessage }).message),
    { onerror: ({ message }) => log.debug({ endpoint, reason: message }, 'MCP over HTTP') },
  );

  const reportedAt = new Map<Outcome, number>();
  /** Any client can cause these outcomes, so each is logged above `debug` at most once per minute. */
  const levelOf = (outcome: Outcome): 'warn' | 'info' | 'debug' => {
    const now = clock.monotonic();
    const isSoon = now - (reportedAt.get(outcome) ?? Number.NEGATIVE_INFINITY) < REPORT_EVERY_MS;
    if (isSoon || !OF_OPERATOR.has(outcome)) return 'debug';
    reportedAt.set(outcome, now);
    return outcome === 'issuer_unavailable' ? 'warn' : 'info';
  };

  const refuse = (outcome: Outcome, response: Response, about?: object): Response => {
    count(outcome);
    log[levelOf(outcome)]({ endpoint, outcome, ...about }, 'request of an MCP client refused');
    return response;
  };

  const metadata = () => `${publicUrl()}${metadataPath(mcpPath(endpoint))}`;

  /** The answer to a client without a valid token, or whose subject has no user here. */
  const refuseToken = (refused: Refusal, about: string | undefined): Response => {
    if (refused === 'issuer_unavailable') {
      const headers = { 'retry-after': RETRY_SECONDS };
      return refuse(refused, json(503, { error: 'temporarily_unavailable' }, headers), { about });
    }
    // The token is valid: another one would not help.
    if (refused === 'no_user') return refuse(refused, json(403, { error: 'access_denied' }), { about });
    const error = refused === 'no_token' ? undefined : 'invalid_token';
    const asked = own.filter((scope) => !isOptional(scope));
    const headers = { 'www-authenticate': challenge(metadata(), asked, error) };
    return refuse(refused, json(401, { error: error ?? 'unauthorized' }, headers), { about });
  };

  /** Names the missing scopes and the granted ones, so that the client keeps these when it asks for a new token. */
  const refuseScope = ({ scopes }: RemoteCaller, needed: readonly RemoteScope[]): Response => {
    const asked = own.filter((scope) => scopes.has(scope) || needed.includes(scope));
    const headers = { 'www-authenticate': challenge(metadata(), asked, 'insufficient_scope') };
    return refuse('insufficient_scope', json(403, { error: 'insufficient_scope' }, headers), { needed });
  };

  const missingScopes = (caller: RemoteCaller, needed: readonly RemoteScope[]): readonly RemoteScope[] => {
    const missing = needed.filter((scope) => !caller.scopes.has(scope));
    return missing.length > 0 || own.some((scope) => caller.scopes.has(scope)) ? missing : [own[0]!];
  };

  /** Ends an open stream when its token expires or is revoked. @returns stops watching */
  const watch = (caller: RemoteCaller, end: () => void): (() => void) => {
    const check = async () => {
      if (clock.now() >= caller.expiresAt || (await verifier.isRevoked(caller))) end();
    };
    const timer = setInterval(() => void check().catch(end), RECHECK_MS).unref();
    return () => clearInterval(timer);
  };

  const isStreamed = (message: RemoteMessage) =>
    message.method === 'subscriptions/listen' || extensions.some((one) => one.isStream?.(message));

  /** Has the SDK answer one message. Its id keeps its digits. */
  const handle = async (request: Request, read: Message, message: RemoteMessage): Promise<Response> => {
    const { caller } = message;
    if (message.method === 'tools/call')
      log.info(
        { endpoint, tool: message.params.name, user_id: caller.userId, client_id: caller.clientId },
        'tool call of an MCP client',
      );
    // The token is not passed on.
    const authInfo = { token: '', clientId: caller.clientId, scopes: [...caller.scopes], extra: { message } };
    const isRounded = read.id !== undefined && read.id.text !== JSON.stringify(read.id.value());
    const id = randomUUID();
    const parsedBody = isRounded ? { ...read.message, id } : read.message;
    const answer = await handler.fetch(request, { authInfo, parsedBody });
    // The SDK keeps the connection of a stream, also when the client asked to close it.
    answer.headers.delete('connection');
    return isRounded ? replaceInBody(answer, JSON.stringify(id), read.id!.text) : answer;
  };

  /** The answer to a message that is alone in its request. */
  const answerOne = async (request: Request, read: Message, message: RemoteMessage, { stream }: Accepted) => {
    const answer = await handle(request, read, message);
    const ofExtension = extensions.some((one) => one.scopesOf(message) !== undefined);
    if (isStreamed(message) || (stream && !ofExtension)) {
      count('answered');
      return answer;
    }
    // The answer may begin before the extension has decided.
    const text = stream ? await answer.text() : await answerText(answer);
    if (message.exhausted) {
      const { code, message: why, data, retryAfterSeconds } = message.exhausted;
      const headers = { ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }) };
      return refuse('over_share', rpcError(429, code, why, { id: read.id, headers, data }));
    }
    count('answered');
    if (text === '') return new Response(null, answer);
    return stream ? new Response(text, answer) : jsonText(answer.status, text);
  };

  /** The answers to the messages of a batch, one after the other. */
  const answerBatch = async (request: Request, members: Received['members'], of: (read: Message) => RemoteMessage) => {
    const answers: string[] = [];
    for (const read of members) {
      if (isRefusal(read)) {
        answers.push(refusalJson(read));
        continue;
      }
      const message = of(read);
      const text = isStreamed(message)
        ? refusalJson({ code: INVALID_REQUEST, why: `${read.method} must not be part of a batch`, id: read.id })
        : await answerText(await handle(request, read, message));
      const { exhausted } = message;
      if (exhausted)
        answers.push(refusalJson({ code: exhausted.code, why: exhausted.message, id: read.id }, exhausted.data));
      else if (read.id !== undefined) answers.push(text);
    }
    count('answered');
    return answers.length === 0 ? new Response(null, { status: 202 }) : jsonText(200, `[${answers.join(',')}]`);
  };

  /** Passes a request of a user within the user's share. @param work gets the request with a signal of its end */
  const pass = async (
    request: Request,
    {
      caller,
      isStream,
      id,
      closing,
    }: { caller: RemoteCaller; isStream: boolean; id: RawJson | undefined; closing: AbortSignal },
    work: (bounded: Request) => Promise<Response>,
  ) => {
    let leave: () => void;
    try {
      leave = enter(caller.userId, isStream ? 'streams' : 'requests');
    } catch (thrown) {
      const { retryAfterSeconds = 1, message: why } = toReveilleError(thrown);
      const headers = { 'retry-after': String(Math.ceil(retryAfterSeconds)) };
      return refuse('over_share', rpcError(429, SERVER_ERROR, why, { id, headers }));
    }
    const ended = new AbortController();
    const end = () => ended.abort();
    const stop = isStream ? watch(caller, end) : () => {};
    closing.addEventListener('abort', end, { once: true });
    const headers = new Headers(request.headers);
    headers.set('accept', SDK_ACCEPT);
    const bounded = new Request(request.url, { method: request.method, headers, signal: ended.signal });
    const finish = () => {
      leave();
      stop();
      closing.removeEventListener('abort', end);
      // This reference keeps `bounded` alive: the signal of a collected request never aborts.
      if (!bounded.signal.aborted) end();
    };
    // The listener aborts the request's signal when the answer has ended, for any reason.
    request.signal.addEventListener('abort', finish, { once: true });
    if (request.signal.aborted) finish();
    if (closing.aborted) end();
    return work(bounded);
  };

  const notAcceptable = (types: string) =>
    refuse('bad_request', rpcError(406, SERVER_ERROR, `the answer is ${types}; Accept must include it`));

  /** Invalid params are an answer to the call; other faults are of the request. */
  const refuseMessage = ({ code, why, id }: RefusedMessage) =>
    refuse('bad_request', rpcError(code === INVALID_PARAMS ? 200 : 400, code, why, { id }));

  return {
    async answer(request, closing) {
      const token = bearerOf(request.headers.get('authorization') ?? undefined);
      const verdict = await verifier.verify(token, endpoint);
      if ('refused' in verdict) return refuseToken(verdict.refused, verdict.about);
      const { caller, grant } = verdict;
      markProved(request);
      const general = missingScopes(caller, []);
      if (general.length > 0) return refuseScope(caller, general);
      // There are no sessions here, so a session id belongs to another subject or to another server.
      if (request.headers.has('mcp-session-id')) {
        const why = 'Session not found: this endpoint has no sessions; initialize again, without Mcp-Session-Id';
        return refuse('unknown_session', rpcError(404, SERVER_ERROR, why));
      }
      if (request.method !== 'POST') {
        const why = `Method not allowed: ${request.method}; send messages with POST`;
        return refuse('bad_request', rpcError(405, SERVER_ERROR, why, { headers: { allow: 'POST' } }));
      }
      const accepted = acceptedTypes(request.headers.get('accept'));
      if (!accepted.json && !accepted.stream) return notAcceptable('application/json or text/event-stream');
      const bytes = new Uint8Array(await request.arrayBuffer());
      const read = readMessages(bytes, request.headers.get('mcp-protocol-version')?.trim());
      if ('why' in read) return refuseMessage(read);
      const of = ({ method, params, source }: Message): RemoteMessage => {
        const argumentsText = params.arguments === undefined ? '{}' : sliceAt(source, ['params', 'arguments'])!;
        return { endpoint, caller, grant, method, params, argumentsText };
      };
      const messages = read.members.flatMap((member) => (isRefusal(member) ? [] : [of(member)]));
      const missing = missingScopes(
        caller,
        messages.flatMap((message) => scopesFor(message, extensions)),
      );
      if (missing.length > 0) return refuseScope(caller, missing);
      if (read.isBatch) {
        if (!accepted.json) return notAcceptable('application/json');
        const about = { caller, isStream: false, id: undefined, closing };
        return pass(request, about, (bounded) => answerBatch(bounded, read.members, of));
      }
      const member = read.members[0]!;
      if (isRefusal(member)) return refuseMessage(member);
      const message = messages[0]!;
      const isStream = isStreamed(message);
      if (isStream && !accepted.stream && !accepted.all) return notAcceptable('text/event-stream');
      const about = { caller, isStream, id: member.id, closing };
      return pass(request, about, (bounded) => answerOne(bounded, member, message, accepted));
    },
    close: () => handler.close(),
  };
}
