/**
 * Client of A2A agents: the protocol's SDK builds the messages, {@link call} sends them. Every request of the SDK uses
 * the router's own exchange, so no redirect is followed and time and size are bounded. The agent card determines the
 * transport.
 */

import type { AgentInterface, Message, Role, Task as SdkTask, TaskState } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import type { Dispatcher } from 'undici';
import { joinUrl } from '../../kit/http/exchange.ts';
import { isPathSegment } from '../../wire/identifier.ts';
import { isObject } from '../../wire/json.ts';
import { withoutTrailing } from '../../wire/text.ts';
import { type CallResult, call } from '../call.ts';
import { oneLine } from '../prompt.ts';
import { textAt } from '../terminal/readers.ts';

/** The address of an agent, and its token. */
export type A2aAddress = { dispatcher: Dispatcher; url: string; token: string };

/** A task with the members that the target reads, for both transports and both versions of the protocol. */
export type Task = {
  id: string;
  contextId: string | undefined;
  /** In lower case, without its prefix: `input_required`. */
  state: string;
  /** The text of the artifacts, in their order. */
  artifactText: string | undefined;
  statusText: string | undefined;
};

/** A direct answer without a task. */
export type DirectAnswer = { contextId: string | undefined; text: string };

/** An exchange with the agent. `status` of a JSON-RPC error is the HTTP status that the protocol assigns to it. */
export type Reply =
  | Exclude<CallResult, { result: 'answered' }>
  | {
      result: 'answered';
      status: number;
      summary: string;
      retryAfterSeconds: number | undefined;
      task?: Task | undefined;
      message?: DirectAnswer | undefined;
    };

/** The result of the search for the agent's interface. */
export type Connection =
  | { result: 'connected'; agent: A2aAgent }
  | Exclude<CallResult, { result: 'answered' }>
  /** The agent, or a proxy before it, requests a later retry. */
  | { result: 'busy'; summary: string; retryAfterSeconds: number | undefined }
  /** The card has no usable interface. */
  | { result: 'unusable'; why: string };

const CARD_PATH = '/.well-known/agent-card.json';
const CARD_BYTES = 1024 * 1024;
const BINDINGS = ['HTTP+JSON', 'JSONRPC'] as const;
const LATER = new Set([429, 502, 503, 504]);
/** Statuses for which `Response` allows no body. */
const BODILESS = new Set([204, 205, 304]);
/** JSON-RPC error codes: the agent does not know the task; the agent itself failed. */
const TASK_NOT_FOUND = -32001;
const INTERNAL_ERROR = -32603;
const LEGACY = { legacyCompat: { enabled: true } };

/** Loaded by the first wake that needs it: loading takes tens of milliseconds. */
const sdk = () => import('@a2a-js/sdk/client');

/** Numbers of the protocol's enumerations in the SDK. Its module with the names is not loaded for two of them. */
const ROLE_USER: Role = 1;
const STATES: Readonly<Record<TaskState, string | undefined>> = {
  0: 'unspecified',
  1: 'submitted',
  2: 'working',
  3: 'completed',
  4: 'failed',
  5: 'canceled',
  6: 'input_required',
  7: 'rejected',
  8: 'auth_required',
  [-1]: undefined,
};

/** A `fetch` for the SDK, and the result of its last call: the SDK's errors do not show whether a request was sent. */
function transport({ dispatcher, token }: A2aAddress, signal: AbortSignal, maxBytes?: number) {
  let last: CallResult | undefined;
  const fetchImpl: typeof fetch = async (input, init) => {
    last = await call(dispatcher, {
      method: init?.method === 'POST' ? 'POST' : 'GET',
      url: new URL(input instanceof Request ? input.url : input),
      headers: { ...Object.fromEntries(new Headers(init?.headers)), authorization: `Bearer ${token}` },
      ...(typeof init?.body === 'string' ? { body: init.body } : {}),
      ...(maxBytes === undefined ? {} : { maxBytes }),
      secrets: [token],
      signal,
    });
    if (last.result !== 'answered') throw last.result === 'unsent' ? last.error : new Error(last.why);
    const { status, text } = last;
    if (status < 200 || status > 599) throw new Error(`the answer has the status ${status}`);
    return new Response(BODILESS.has(status) ? null : text, { status });
  };
  return { fetchImpl, last: () => last };
}

/**
 * Possible addresses of the agent card. `shared`: at an origin that may have several agents, so the card may describe
 * another.
 */
function cardAddresses(url: string): { card: URL; shared: boolean }[] {
  const address = new URL(url);
  if (address.pathname.endsWith('.json')) return [{ card: address, shared: false }];
  const atOrigin = new URL(CARD_PATH, address);
  if (pathOf(address) === '') return [{ card: atOrigin, shared: false }];
  return [
    { card: joinUrl(url, CARD_PATH), shared: false },
    { card: atOrigin, shared: true },
  ];
}

const pathOf = ({ pathname }: URL) => withoutTrailing(pathname, '/');

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])$/;

/** A common form of addresses for the same listener: agents on this computer have several names for it. */
function originOf({ protocol, hostname, port }: URL): string {
  return `${protocol}//${LOOPBACK.test(hostname) ? 'loopback' : hostname}:${port}`;
}

/** The interfaces of a card, of A2A 1.0 or 0.3; none when it is not a card. */
async function interfacesOf(card: unknown): Promise<AgentInterface[]> {
  const { DefaultAgentCardResolver } = await sdk();
  try {
    const { supportedInterfaces } = new DefaultAgentCardResolver(LEGACY).normalizeAgentCard(card);
    if (!Array.isArray(supportedInterfaces)) return [];
    return supportedInterfaces.filter(
      (one: unknown) => isObject(one) && textAt(one, 'protocolBinding') !== undefined && URL.canParse(`${one.url}`),
    );
  } catch {
    // The document is JSON but not a card, in one of many possible ways.
    return [];
  }
}

/**
 * The interface to use. A card may not point to another origin: the operator registered this one, and the token is for
 * it. `undefined` when the card describes another agent of the same origin.
 */
function choose(
  url: string,
  interfaces: readonly AgentInterface[],
  shared: boolean,
): AgentInterface | string | undefined {
  const address = new URL(url);
  const sameOrigin = interfaces.filter((one) => originOf(new URL(one.url)) === originOf(address));
  const named = sameOrigin.filter((one) => pathOf(new URL(one.url)) === pathOf(address));
  if (shared && named.length === 0) return undefined;
  const isSupported = ({ protocolBinding }: AgentInterface) =>
    BINDINGS.some((binding) => binding === protocolBinding.toUpperCase());
  const isCurrent = ({ protocolVersion }: AgentInterface) => protocolVersion === '1.0';
  const usable = (named.some(isSupported) ? named : sameOrigin).filter(isSupported);
  const chosen = usable.find(isCurrent) ?? usable[0];
  if (chosen !== undefined) {
    // The host is the registered one, whatever host the card names.
    const there = new URL(address);
    there.pathname = new URL(chosen.url).pathname;
    there.search = '';
    return { ...chosen, url: there.href };
  }
  const other = interfaces.find(isSupported);
  if (other !== undefined)
    return `its agent card points to another origin, ${new URL(other.url).origin}; register the address there if that is intended`;
  const has = oneLine(
    interfaces
      .map(({ protocolBinding }) => protocolBinding)
      .join(', ')
      .slice(0, 200),
    [],
  );
  return `its agent card has no interface of HTTP+JSON or JSON-RPC (it has ${has})`;
}

/** One interface of an agent. */
export class A2aAgent {
  readonly #address: A2aAddress;
  readonly #interface: AgentInterface;

  private constructor(address: A2aAddress, one: AgentInterface) {
    this.#address = address;
    this.#interface = one;
  }

  /**
   * Reads the agent card and chooses the interface. An address without a card is used as an HTTP+JSON interface. No
   * request with a side effect is sent.
   */
  static async connect(address: A2aAddress, signal: AbortSignal): Promise<Connection> {
    const { url } = address;
    for (const { card, shared } of cardAddresses(url)) {
      const { fetchImpl, last } = transport(address, signal, CARD_BYTES);
      await fetchImpl(card, { headers: { 'A2A-Version': '1.0' } }).catch(() => {});
      const answer = last()!;
      if (answer.result !== 'answered') return answer;
      const { status, json, summary, retryAfterSeconds } = answer;
      if (LATER.has(status)) return { result: 'busy', summary, retryAfterSeconds };
      const interfaces = status === 200 && json ? await interfacesOf(json) : [];
      if (interfaces.length === 0) continue;
      const chosen = choose(url, interfaces, shared);
      if (typeof chosen === 'string') return { result: 'unusable', why: chosen };
      if (chosen !== undefined) return { result: 'connected', agent: new A2aAgent(address, chosen) };
    }
    const plain = { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: '' };
    return { result: 'connected', agent: new A2aAgent(address, plain) };
  }

  /** Sends a message; the agent need not keep the connection until its task has ended. */
  send(given: { messageId: string; contextId: string | undefined; text: string }, signal: AbortSignal): Promise<Reply> {
    const part = { content: { $case: 'text' as const, value: given.text }, metadata: undefined };
    return this.#request(signal, async (client) => {
      const message: Message = {
        messageId: given.messageId,
        contextId: given.contextId ?? '',
        taskId: '',
        role: ROLE_USER,
        parts: [{ ...part, filename: '', mediaType: '' }],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      };
      return client.sendMessage({ tenant: '', message, configuration: undefined, metadata: undefined }, { signal });
    });
  }

  task(id: string, signal: AbortSignal): Promise<Reply> {
    return this.#request(signal, (client) => client.getTask({ tenant: '', id, historyLength: undefined }, { signal }));
  }

  async #request(signal: AbortSignal, work: (client: Client) => Promise<Message | SdkTask>): Promise<Reply> {
    const { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } = await sdk();
    const { fetchImpl, last } = transport(this.#address, signal);
    const options = { fetchImpl, ...LEGACY };
    const factory = new ClientFactory({
      transports: [new RestTransportFactory(options), new JsonRpcTransportFactory(options)],
      clientConfig: { polling: true },
    });
    // The SDK reads only these members of a card; the real card may have any form.
    const card = { supportedInterfaces: [this.#interface] } as Parameters<typeof factory.createFromAgentCard>[0];
    const client = await factory.createFromAgentCard(card);
    const value = await work(client).catch((error: unknown) => {
      // After a request was sent, the recorded answer is more precise than the SDK's error.
      if (last() === undefined) throw error;
      return undefined;
    });
    const answer = last()!;
    if (answer.result !== 'answered') return answer;
    const { status, summary, retryAfterSeconds, json } = answer;
    const head = { result: 'answered' as const, status, summary, retryAfterSeconds };
    const refusal = refusalOf(json, [this.#address.token]);
    if (refusal) return { ...head, ...refusal, status: status > 299 ? status : refusal.status };
    if (value === undefined || status > 299) return head;
    if (!('status' in value)) {
      const text = textOf(value);
      return text === undefined ? head : { ...head, message: { contextId: value.contextId || undefined, text } };
    }
    if (!isPathSegment(value.id) || value.status === undefined) return head;
    const state = STATES[value.status.state] ?? givenState(json) ?? 'unrecognized';
    const artifactText = value.artifacts.flatMap((artifact) => textOf(artifact) ?? []).join('\n\n') || undefined;
    const statusText = value.status.message && textOf(value.status.message);
    return {
      ...head,
      task: { id: value.id, contextId: value.contextId || undefined, state, artifactText, statusText },
    };
  }
}

function textOf({ parts }: { parts: Message['parts'] }): string | undefined {
  const texts = parts.flatMap(({ content }) => (content?.$case === 'text' ? content.value : []));
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** A JSON-RPC error, which has the status 200. */
function refusalOf(json: unknown, secrets: readonly string[]): { status: number; summary: string } | undefined {
  if (!isObject(json) || json.jsonrpc === undefined || !isObject(json.error)) return undefined;
  const { code } = json.error;
  const status = code === TASK_NOT_FOUND ? 404 : code === INTERNAL_ERROR ? 500 : 400;
  const message = oneLine((textAt(json.error, 'message') ?? '').slice(0, 4096), secrets);
  return { status, summary: `the JSON-RPC error ${typeof code === 'number' ? code : 'without a code'}: ${message}` };
}

/** The raw state, if the SDK does not know it. Some agents write `input-required`, which is normalized. */
function givenState(json: unknown): string | undefined {
  const result = isObject(json) && isObject(json.result) ? json.result : json;
  const task = isObject(result) && isObject(result.task) ? result.task : result;
  const state = isObject(task) && isObject(task.status) ? textAt(task.status, 'state') : undefined;
  return state
    ?.replace(/^TASK_STATE_/, '')
    .replaceAll('-', '_')
    .toLowerCase();
}
