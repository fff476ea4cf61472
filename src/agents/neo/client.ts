/**
 * The clients of an agent daemon (docs/reference/api.md). The router delivers a wake into its conversation and
 * queries the state of the turn. A person's client calls the daemon, or a router's public listener. Neo is one such
 * daemon; others serve `POST /chat` and need not report on their turns.
 */
import type { Dispatcher } from 'undici';
import type { z } from 'zod';
import { type Clock, systemClock } from '../../kit/clock/clock.ts';
import { type Call, callOf, createCaller, type Daemon, type LimitedCall, withinTime } from '../../kit/http/caller.ts';
import { type Exchange, exchange, joinUrl, openStream, reasonOf } from '../../kit/http/exchange.ts';
import { type FollowStreamOptions, followStream } from '../../kit/http/follow-stream.ts';
import type { Transport } from '../../kit/http/plain-transport.ts';
import { failSpan, inSpan, traceHeaders } from '../../kit/trace/trace.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import { encodeJson, type RawJson } from '../../wire/json.ts';
import type { PersonChat } from '../../wire/person.ts';
import type { QuestionAnswer } from '../../wire/question.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { type PathNames, pathOf, type Route } from '../../wire/route.ts';
import { missingTools } from '../../wire/tool-surface.ts';
import { type TurnEventData, type TurnEventType, type TurnView, turnEventSchemas } from '../../wire/turn.ts';
import {
  type ChatAccepted,
  type ChatRequest,
  type SentBy,
  TOKEN_LIMIT_HEADER,
  termsOf,
  WAKE_HEADERS,
  WAKE_ORIGIN,
  type Wake,
} from '../../wire/wake.ts';
import { NEO_ROUTES } from './http/routes.ts';

/**
 * A received event. Without `id` it is about the stream, or about gates that wait when it opens, and cannot be resumed
 * from.
 */
export type NeoEvent = {
  [Type in TurnEventType]: { readonly id?: string; readonly type: Type; readonly data: TurnEventData<Type> };
}[TurnEventType];

export type FollowOptions = FollowStreamOptions & {
  /** Only this conversation's events; all when absent. */
  conversationId?: string | undefined;
  /** Only these; all when absent. */
  types?: readonly TurnEventType[] | undefined;
};

type Source = {
  /** The address of the events, without a query. */
  url: URL;
  headers: Readonly<Record<string, string>>;
  /** Its name in messages. */
  name: string;
  clock: Clock;
  /** Carries the streams instead of connections of their own. */
  transport?: Transport | undefined;
};

/**
 * Follows an agent's events over any number of connections. No event is lost or repeated, even if the agent's machine
 * sleeps and wakes meanwhile.
 *
 * @throws ReveilleError as {@link followStream}
 */
function followEvents(source: Source, { conversationId, types, ...options }: FollowOptions): AsyncGenerator<NeoEvent> {
  const { url, headers, name, clock, transport } = source;
  const address = new URL(url);
  if (conversationId !== undefined) address.searchParams.set('conversation_id', conversationId);
  if (types !== undefined) address.searchParams.set('types', types.join(','));
  const open = (resume: Record<string, string>, signal: AbortSignal) =>
    openStream(address, { headers: { ...headers, ...resume }, signal, transport });
  return followStream({ open, read: eventOf, name, clock }, options);
}

/** An event of this version; one of another version is skipped. */
function eventOf(type: string, data: unknown, id: string | undefined): NeoEvent | undefined {
  if (!Object.hasOwn(turnEventSchemas, type)) return undefined;
  const parsed = turnEventSchemas[type as TurnEventType].safeParse(data);
  if (!parsed.success) return undefined;
  return { ...(id === undefined || id === '' ? {} : { id }), type, data: parsed.data } as NeoEvent;
}

/** A daemon's answer, passed on unchanged. */
export type DaemonAnswer = {
  status: number;
  contentType: string | undefined;
  retryAfter: string | undefined;
  /** At most {@link ANSWER_MAX_BYTES}. */
  body: Buffer;
};

export type Delivery =
  | { result: 'answered'; answer: DaemonAnswer }
  /** The daemon did not receive the wake. */
  | { result: 'unsent'; why: string }
  /** The daemon may have accepted the wake. */
  | { result: 'unknown'; why: string };

export const ANSWER_MAX_BYTES = 64 * 1024;
/** A reply of Neo is bounded by the model's own limit; this is far beyond it. */
const TURN_MAX_BYTES = 4 * 1024 * 1024;
/** A healthy daemon answers a query for a turn at once. */
const QUERY_TIMEOUT_MS = 5000;

/** A daemon's base address, as its provider returned it, and the bearer that it accepts. */
export type DaemonAddress = { readonly url: string; readonly token: string };

/** The turn that a daemon has begun for a wake. */
export type AcceptedTurn = Readonly<Pick<ChatAccepted, 'conversation_id' | 'turn_id'>>;

/** The body for a daemon: message and payload as they came, byte for byte. */
function chatBody(wake: Wake): string {
  return encodeJson({
    message: wake.message,
    conversation_id: wake.conversation_id,
    payload: wake.payload,
    origin: WAKE_ORIGIN,
    alarm_id: wake.alarm_id,
    fire_id: wake.fire_id,
    scheduled_for: formatInstant(wake.scheduled_for),
    missed_count: wake.missed_count,
    label: wake.label,
    set_at: wake.set_at === undefined ? undefined : formatInstant(wake.set_at),
    set_by: wake.set_by,
    text_by: wake.text_by,
    ...termsOf(wake),
    check: wake.check,
    late_because: wake.late_because,
  });
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/**
 * Delivers a wake. Never rejects.
 *
 * @param dispatcher keeps connections per daemon
 * @param url the daemon's base address, as its provider returned it
 * @param tokenLimit what the turn may use
 * @param signal ends the attempt; a wake that may already have been sent is `unknown`
 */
export async function deliver(
  dispatcher: Dispatcher,
  delivery: DaemonAddress & { userId: string; wake: Wake; tokenLimit?: number | undefined; signal: AbortSignal },
): Promise<Delivery> {
  const { url, token, userId, wake, tokenLimit, signal } = delivery;
  const post = () =>
    exchange(dispatcher, {
      method: 'POST',
      url: joinUrl(url, NEO_ROUTES.chat.path),
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json',
        [WAKE_HEADERS.user]: userId,
        [WAKE_HEADERS.origin]: WAKE_ORIGIN,
        ...(wake.alarm_id === undefined ? {} : { [WAKE_HEADERS.alarm]: wake.alarm_id }),
        [WAKE_HEADERS.fire]: wake.fire_id,
        ...(tokenLimit === undefined ? {} : { [TOKEN_LIMIT_HEADER]: String(tokenLimit) }),
        ...traceHeaders(),
      },
      body: chatBody(wake),
      maxBytes: ANSWER_MAX_BYTES,
      signal,
    });
  const outcome = await inSpan(
    'deliver',
    () => ({ kind: 'client' }),
    async (span) => {
      const posted = await post();
      if (posted.result !== 'answered') failSpan(span, posted.result);
      else span?.setAttribute('http.response.status_code', posted.status);
      return posted;
    },
  );
  if (outcome.result !== 'answered') return { result: outcome.result, why: reasonOf(outcome.error) };
  const { status, headers, body } = outcome;
  const contentType = single(headers['content-type']);
  return { result: 'answered', answer: { status, contentType, retryAfter: single(headers['retry-after']), body } };
}

/** Queries the state of a turn. Never rejects. */
export function queryTurn(
  dispatcher: Dispatcher,
  { url, token, turn, clock, signal }: DaemonAddress & { turn: AcceptedTurn; clock: Clock; signal: AbortSignal },
): Promise<Exchange> {
  return exchange(dispatcher, {
    method: 'GET',
    url: joinUrl(url, pathOf(NEO_ROUTES.getTurn, { id: turn.conversation_id, turn_id: turn.turn_id })),
    headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
    maxBytes: TURN_MAX_BYTES,
    signal,
    limit: { clock, ms: QUERY_TIMEOUT_MS },
  });
}

/** The listener for a person: the daemon's own, or the public one of a router. */
export type NeoEndpoint = {
  /** Without a trailing slash. */
  readonly url: string;
  /** The daemon's token, or a person's. */
  readonly token: string | undefined;
};

export type NeoClientOptions = NeoEndpoint & {
  /** Limits each call; one minute by default, in which a machine can start. */
  attend?: LimitedCall;
  clock?: Clock;
} & Partial<Pick<Daemon, 'name' | 'remedy' | 'tokenName' | 'explain' | 'transport'>>;

const CALL_MS = 60_000;
const CHECK_CONVERSATION = '. It is not known whether it was accepted: check the conversation before you send it again';

/** A message of another agent. A repetition with the same `fire_id` begins no second turn. */
export type AgentChat = Pick<ChatRequest, 'message' | 'conversation_id' | 'payload'> & {
  readonly origin: typeof WAKE_ORIGIN;
  readonly fire_id: string;
  readonly sent_by: SentBy;
};

type Page = { limit?: number | undefined; cursor?: string | undefined };

/**
 * A client for a person's agent. Through a router, a call wakes the machine.
 *
 * @throws ReveilleError `invalid_request` for an invalid address or token
 */
export function createNeoClient(options: NeoClientOptions) {
  const { token, clock = systemClock, attend = withinTime(clock, CALL_MS) } = options;
  const {
    name = 'the agent',
    remedy = 'is it running? start it with "reveille up"',
    tokenName = 'the token',
  } = options;
  const { explain, transport } = options;
  const daemon = { url: options.url, token, name, remedy, tokenName, explain, transport };
  const { address, call, read } = createCaller(daemon);
  const request = async <R extends Route>(
    route: R,
    pathValues: { readonly [Name in PathNames<R['path']>]: string },
    extra: Pick<Call, 'query' | 'body' | 'ifLost'> = {},
    signal?: AbortSignal,
  ): Promise<{ value: z.output<R['data']>; text: RawJson }> => {
    const request = callOf(route, pathValues, extra);
    const text = await attend((abortSignal) => call(request, abortSignal), signal);
    return { value: read(request, route.data, text) as z.output<R['data']>, text };
  };

  return {
    /**
     * Sends a message of the person, or of another agent; resolves when the turn is durable. Without a conversation a new
     * one begins.
     */
    chat: async (message: PersonChat | AgentChat, signal?: AbortSignal) =>
      (await request(NEO_ROUTES.chat, {}, { body: message, ifLost: CHECK_CONVERSATION }, signal)).value,
    /** Newest activity first. */
    conversations: async (page: Page = {}) => (await request(NEO_ROUTES.listConversations, {}, { query: page })).value,
    /** With its turns, in the order of acceptance. */
    conversation: async (id: string, page: Page = {}) =>
      (await request(NEO_ROUTES.getConversation, { id }, { query: page })).value,
    turn: async (conversationId: string, turnId: string) =>
      (await request(NEO_ROUTES.getTurn, { id: conversationId, turn_id: turnId })).value,
    /** Ends a turn permanently; one that has ended is returned unchanged. */
    cancelTurn: async (id: string) => (await request(NEO_ROUTES.cancelTurn, { id })).value,
    /** The model's functions, the tools reserved for the executor, and warnings about both. */
    tools: async (signal?: AbortSignal) => (await request(NEO_ROUTES.tools, {}, {}, signal)).value,
    answerGate: async (intentId: string, nodeId: string, answer: GateAnswer) =>
      (await request(NEO_ROUTES.answerGate, { id: intentId, nid: nodeId }, { body: answer })).value,
    /** The questions of MCP servers that wait, of a conversation or of all. */
    questions: async (conversationId?: string) => {
      const query = { conversation_id: conversationId };
      return (await request(NEO_ROUTES.listQuestions, {}, { query })).value.questions;
    },
    /** Answers a question. The first answer wins. */
    answerQuestion: async (id: string, answer: QuestionAnswer) =>
      (await request(NEO_ROUTES.answerQuestion, { id }, { body: answer })).value,
    /** As its source text: a verifier needs the exact bytes. */
    receipt: async (intentId: string): Promise<RawJson> =>
      (await request(NEO_ROUTES.getReceipt, { id: intentId })).text,
    /** The events, see {@link followEvents}. */
    events: (follow: FollowOptions): AsyncGenerator<NeoEvent> =>
      followEvents(
        {
          url: joinUrl(address, NEO_ROUTES.events.path),
          headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
          name: `${name} at ${address}`,
          clock,
          transport,
        },
        follow,
      ),
  };
}
export type NeoClient = ReturnType<typeof createNeoClient>;

/** An agent that takes longer to start is not asked for its tools. */
const TOOLS_MS = 10_000;

/**
 * Why an alarm cannot limit the turns of an agent to some tools, as `missingTools`; `undefined` if it can, or if its
 * tools are not known: it is no Neo, it has no model yet, or it does not answer.
 */
export async function refusedTools(
  client: Pick<NeoClient, 'tools'>,
  names: readonly string[] | null | undefined,
  clock: Clock,
): Promise<string | undefined> {
  if (!names || names.length === 0) return undefined;
  const limit = new AbortController();
  const cancel = clock.after(TOOLS_MS, () => limit.abort());
  try {
    const view = await client.tools(limit.signal);
    return view.model === 'offline' ? undefined : missingTools(names, view);
  } catch (thrown) {
    if (thrown instanceof ReveilleError) return undefined;
    throw thrown;
  } finally {
    cancel();
  }
}

/** Turns per page of a conversation. */
const TURNS_PAGE = 100;

/**
 * The last turns of a conversation, in the order of acceptance, their total number, and the newest event that they
 * include.
 *
 * @param most how many turns are returned at most
 * @throws ReveilleError as the client
 */
export async function lastTurns(
  client: Pick<NeoClient, 'conversation'>,
  id: string,
  most: number,
): Promise<{ turns: TurnView[]; count: number; lastEventId?: number | undefined }> {
  let turns: TurnView[] = [];
  let lastEventId: number | undefined;
  let cursor: string | undefined;
  let count = 0;
  do {
    const page = await client.conversation(id, { limit: TURNS_PAGE, cursor });
    turns = [...turns, ...page.turns].slice(-most);
    count = page.turn_count;
    // Of the first page: an event during the later reads is reported twice rather than lost.
    lastEventId ??= page.last_event_id;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return { turns, count, lastEventId };
}
