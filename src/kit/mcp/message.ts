/**
 * Reads the JSON-RPC messages of MCP clients, over stdio and over HTTP. The SDK would not answer some faulty messages,
 * answer others with a dump of its schema, and round large ids. Here each faulty message gets an error in words, and ids
 * keep their source text.
 */
import {
  DEFAULT_NEGOTIATED_PROTOCOL_VERSION,
  type JSONRPCMessage,
  PROTOCOL_VERSION_META_KEY,
  parseJSONRPCMessage,
  specTypeSchemas,
} from '@modelcontextprotocol/server';
import type { z } from 'zod';
import { toReveilleError } from '../../wire/errors.ts';
import { elementsOf, encodeJson, isObject, RawJson, refuseDeepNesting, sliceAt } from '../../wire/json.ts';
import { parseOrThrow, showValue } from '../../wire/validate.ts';

/** JSON-RPC 2.0, section 5.1. */
export const PARSE_ERROR = -32_700;
export const INVALID_REQUEST = -32_600;
export const INVALID_PARAMS = -32_602;

/** A message that is answered with an error. */
export type Refusal = {
  readonly code: number;
  readonly why: string;
  /** Source text; absent without a usable id. */
  readonly id?: RawJson | undefined;
};

/** A well-formed message. */
export type Message = {
  /** For the SDK. The id may be rounded. */
  readonly message: JSONRPCMessage;
  /** Source text; absent in a notification and in a response. */
  readonly id?: RawJson | undefined;
  /** '' for a response. */
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The message as it was received. */
  readonly source: string;
};

export type Received = { readonly isBatch: boolean; readonly members: readonly (Message | Refusal)[] };

export const isRefusal = (read: Message | Refusal): read is Refusal => 'why' in read;

/** An error as a JSON-RPC response. */
export function refusalJson({ code, why, id }: Refusal, data?: unknown): string {
  return encodeJson({ jsonrpc: '2.0', id: id ?? null, error: { code, message: why, data } });
}

/**
 * The methods of MCP that Reveille's servers have, with the SDK's names for the schemas of their requests. `null` has no
 * meaning in their params.
 */
const REQUESTS: Readonly<Record<string, keyof typeof specTypeSchemas>> = {
  initialize: 'InitializeRequest',
  ping: 'PingRequest',
  'tools/list': 'ListToolsRequest',
  'tools/call': 'CallToolRequest',
  'resources/list': 'ListResourcesRequest',
  'resources/templates/list': 'ListResourceTemplatesRequest',
  'resources/read': 'ReadResourceRequest',
};

const withoutNull = (members: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));

function presentParams(method: string, params: Record<string, unknown>): Record<string, unknown> {
  const present = Object.hasOwn(REQUESTS, method) ? withoutNull(params) : params;
  return isObject(present._meta) ? { ...present, _meta: withoutNull(present._meta) } : present;
}

const namedRevision = ({ _meta: meta }: Message['params']): unknown =>
  isObject(meta) ? meta[PROTOCOL_VERSION_META_KEY] : undefined;

/** @throws ReveilleError `invalid_request` */
function checkParams(method: string, params: Record<string, unknown> | undefined): void {
  // A revision that each request names has no handshake: the SDK answers that there is no such method.
  const isUnknown = method === 'initialize' && params !== undefined && namedRevision(params) !== undefined;
  const name = (!isUnknown && Object.hasOwn(REQUESTS, method) && REQUESTS[method]) || 'Request';
  // The SDK declares its schemas of zod by their common interface. Values can be private.
  parseOrThrow(specTypeSchemas[name] as unknown as z.ZodType, { method, ...(params && { params }) }, () => true);
}

/** Replaces the arguments of a `tools/call`. */
type CarriedArguments = { readonly source: RawJson };

/** The source text of a call's arguments, with {@link ReadOptions.keepsArguments}; absent ones are an empty object. */
export function argumentsSource(carried: unknown): string {
  if (carried === undefined) return '{}';
  return (carried as CarriedArguments).source.text;
}

export type ReadOptions = {
  /** Passes on the arguments of a `tools/call` as source text: numbers keep their digits, and the call checks the depth. */
  readonly keepsArguments?: boolean | undefined;
};

const idOf = (value: Record<string, unknown>, source: string): RawJson | undefined =>
  typeof value.id === 'string' || typeof value.id === 'number' ? new RawJson(sliceAt(source, ['id'])!) : undefined;

/** A response to a request of the server. */
function readResponse(value: Record<string, unknown>, source: string): Message | Refusal {
  try {
    return { message: parseJSONRPCMessage(value), method: '', params: {}, source };
  } catch {
    const why = 'a message must have a method, or be the response to a request: with jsonrpc, id, and result or error';
    return { code: INVALID_REQUEST, why };
  }
}

function readMember(value: unknown, source: string, { keepsArguments = false }: ReadOptions): Message | Refusal {
  if (!isObject(value)) return { code: INVALID_REQUEST, why: 'a message must be a JSON object' };
  const { jsonrpc, method, id: rounded } = value;
  if (method === undefined) return readResponse(value, source);
  const id = idOf(value, source);
  const refused = (why: string, code = INVALID_REQUEST): Refusal => ({ code, why, id });
  if (jsonrpc !== '2.0') return refused('jsonrpc must be "2.0"');
  if (typeof method !== 'string') return refused('method must be a string');
  // Some serializers write the absent id of a notification as null.
  const isNotification = rounded === undefined || (rounded === null && method.startsWith('notifications/'));
  if (isNotification) {
    const params = isObject(value.params) ? presentParams(method, value.params) : {};
    return { message: { jsonrpc, method, params }, method, params, source };
  }
  if (typeof rounded !== 'string' && !Number.isInteger(rounded))
    return refused('id must be a string or a whole number');
  const given = value.params ?? undefined;
  if (given !== undefined && !isObject(given)) return refused('params must be an object', INVALID_PARAMS);
  const params = given && presentParams(method, given);
  const isCarried =
    keepsArguments && method === 'tools/call' && params !== undefined && Object.hasOwn(params, 'arguments');
  if (isCarried) {
    if (!isObject(params.arguments)) return refused('params.arguments must be an object', INVALID_PARAMS);
    const carried: CarriedArguments = { source: new RawJson(sliceAt(source, ['params', 'arguments'])!) };
    params.arguments = carried;
  }
  try {
    if (!isCarried) refuseDeepNesting(source, 'the message');
    checkParams(method, params);
  } catch (thrown) {
    return refused(toReveilleError(thrown).message, INVALID_PARAMS);
  }
  const message: JSONRPCMessage = { jsonrpc, id: rounded as string | number, method, ...(params && { params }) };
  return { message, id, method, params: params ?? {}, source };
}

/** The only protocol revision with batches. A client that names no revision is one of it, as the HTTP transport has it. */
const BATCH_REVISION: string = DEFAULT_NEGOTIATED_PROTOCOL_VERSION;
/** Each message of a batch is a request of its own, but the batch passes the limits for requests once. */
const BATCH_MESSAGES = 100;

/** The revision that a request chooses for the connection; `undefined` if it chooses none. */
export function revisionOf({ method, params }: Message): string | undefined {
  const chosen = method === 'initialize' ? params.protocolVersion : namedRevision(params);
  return typeof chosen === 'string' ? chosen : undefined;
}

function batchFault(size: number, revision: string): string | undefined {
  if (revision !== BATCH_REVISION)
    return `a batch of messages needs protocol revision ${BATCH_REVISION} (this client uses ${showValue(revision)}); send each message alone`;
  if (size === 0) return 'a batch must have at least one message';
  return size > BATCH_MESSAGES ? `a batch must have at most ${BATCH_MESSAGES} messages (got ${size})` : undefined;
}

/** Without a byte order mark. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads one JSON text: a message, or a batch.
 *
 * @param revision the protocol revision of the client, if known
 * @returns a refusal if nothing in the text can be answered
 */
export function readMessages(
  bytes: Uint8Array,
  revision: string = BATCH_REVISION,
  options: ReadOptions = {},
): Received | Refusal {
  let text: string;
  let value: unknown;
  try {
    text = utf8.decode(bytes);
    value = JSON.parse(text);
  } catch {
    return { code: PARSE_ERROR, why: 'a message must be JSON in UTF-8' };
  }
  if (!Array.isArray(value)) return { isBatch: false, members: [readMember(value, text, options)] };
  const fault = batchFault(value.length, revision);
  if (fault !== undefined) return { code: INVALID_REQUEST, why: fault };
  const members = elementsOf(text)!.map((source, at) => {
    const read = readMember(value[at], source, options);
    if (isRefusal(read) || read.method !== 'initialize') return read;
    return { code: INVALID_REQUEST, why: 'initialize must not be part of a batch', id: read.id };
  });
  return { isBatch: true, members };
}
