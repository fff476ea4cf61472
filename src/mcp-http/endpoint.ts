/**
 * Answers one request to an MCP endpoint. It checks the token, the scopes, the session and the user's share of
 * requests, then calls the SDK's handler. A refusal has the header that the client needs, and no detail.
 */
import { createMcpHandler, type McpHttpHandler, type Server } from '@modelcontextprotocol/server';
import type { Clock } from '../kit/clock/clock.ts';
import { bearerOf } from '../kit/http/bearer.ts';
import { markProved } from '../kit/http/body.ts';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import { isObject, parseUntrustedJson, sliceAt } from '../wire/json.ts';
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
const rpcError = (status: number, code: number, message: string, { id, headers, data }: RpcAbout = {}) =>
  json(status, { jsonrpc: '2.0', id: id ?? null, error: { code, message, data } }, headers);
type RpcAbout = {
  id?: string | number | undefined;
  headers?: Readonly<Record<string, string>>;
  data?: unknown;
};

/** JSON-RPC 2.0, section 5.1, and a code of the server. */
const [PARSE_ERROR, INVALID_REQUEST, SERVER_ERROR] = [-32_700, -32_600, -32_000] as const;

/** `Retry-After` when the issuer does not answer. */
const RETRY_SECONDS = '5';
/** How often the token of an open stream is checked again, milliseconds. */
const RECHECK_MS = 5000;
const REPORT_EVERY_MS = 60_000;
/** Outcomes that a setting may have caused. */
const OF_OPERATOR: ReadonlySet<Outcome> = new Set([
  ...(['issuer_unavailable', 'foreign_issuer', 'wrong_audience', 'bad_claims', 'no_user'] as const),
]);

type Parsed =
  | { readonly value: unknown; readonly message: Omit<RemoteMessage, 'endpoint' | 'caller' | 'grant'> }
  | { readonly code: number; readonly why: string };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** One message of JSON-RPC; one without a method, such as a response, has the method ''. */
function parseBody(bytes: ArrayBuffer): Parsed {
  let text: string;
  let value: unknown;
  try {
    text = utf8.decode(bytes);
    value = parseUntrustedJson(text, 'the body');
  } catch (thrown) {
    const why = thrown instanceof ReveilleError ? thrown.message : 'the body must be JSON in UTF-8';
    return { code: PARSE_ERROR, why };
  }
  if (!isObject(value)) return { code: INVALID_REQUEST, why: 'the body must be one JSON-RPC message' };
  const params = isObject(value.params) ? value.params : {};
  const argumentsText = sliceAt(text, ['params', 'arguments']) ?? '{}';
  return { value, message: { method: typeof value.method === 'string' ? value.method : '', params, argumentsText } };
}

function idOf(message: unknown): string | number | undefined {
  const id = isObject(message) ? message.id : undefined;
  return typeof id === 'string' || typeof id === 'number' ? id : undefined;
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

  const pass = async (request: Request, body: unknown, message: RemoteMessage, closing: AbortSignal) => {
    const { caller } = message;
    const isStream = message.method === 'subscriptions/listen' || extensions.some((one) => one.isStream?.(message));
    let leave: () => void;
    try {
      leave = enter(caller.userId, isStream ? 'streams' : 'requests');
    } catch (thrown) {
      const { retryAfterSeconds = 1, message: why } = toReveilleError(thrown);
      const headers = { 'retry-after': String(Math.ceil(retryAfterSeconds)) };
      return refuse('over_share', rpcError(429, SERVER_ERROR, why, { id: idOf(body), headers }));
    }
    const ended = new AbortController();
    const end = () => ended.abort();
    const stop = isStream ? watch(caller, end) : () => {};
    closing.addEventListener('abort', end, { once: true });
    const { method, url, headers } = request;
    const bounded = new Request(url, { method, headers, signal: ended.signal });
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
    const scopes = [...caller.scopes];
    // The token is not passed on.
    const authInfo = { token: '', clientId: caller.clientId, scopes, extra: { message } };
    if (message.method === 'tools/call')
      log.info(
        { endpoint, tool: message.params.name, user_id: caller.userId, client_id: caller.clientId },
        'tool call of an MCP client',
      );
    const answer = await handler.fetch(bounded, { authInfo, parsedBody: body });
    // The SDK keeps the connection of a stream, also when the client asked to close it.
    answer.headers.delete('connection');
    if (isStream || !extensions.some((one) => one.scopesOf(message) !== undefined)) {
      count('answered');
      return answer;
    }
    // The answer may begin before the extension has decided.
    const bytes = await answer.arrayBuffer();
    if (message.exhausted) {
      const { code, message: why, data, retryAfterSeconds } = message.exhausted;
      const headers = { ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }) };
      return refuse('over_share', rpcError(429, code, why, { id: idOf(body), headers, data }));
    }
    count('answered');
    return new Response(bytes.byteLength === 0 ? null : bytes, answer);
  };

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
      if (request.headers.has('mcp-session-id'))
        return refuse('unknown_session', rpcError(404, SERVER_ERROR, 'Session not found'));
      if (request.method !== 'POST') {
        const headers = { allow: 'POST' };
        return refuse('bad_request', rpcError(405, SERVER_ERROR, 'Method not allowed.', { headers }));
      }
      const parsed = parseBody(await request.arrayBuffer());
      if ('why' in parsed) return refuse('bad_request', rpcError(400, parsed.code, parsed.why));
      const message: RemoteMessage = { endpoint, caller, grant, ...parsed.message };
      const missing = missingScopes(caller, scopesFor(message, extensions));
      if (missing.length > 0) return refuseScope(caller, missing);
      return pass(request, parsed.value, message, closing);
    },
    close: () => handler.close(),
  };
}
