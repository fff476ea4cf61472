/**
 * The client side of MCP Events (`io.modelcontextprotocol/events`, SEP-3415) by poll and by webhook: asks servers over
 * HTTP for what has happened since a cursor, or to post it to an address.
 */
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { Clock } from '../kit/clock/clock.ts';
import { elementsOf, sliceAt } from '../wire/json.ts';
import { USER_META } from '../wire/manifest.ts';
import { Connection, describeError } from './connection.ts';
import { withDeadline } from './deadline.ts';
import type { ServerSpec } from './manifest.ts';

const EXTENSION = 'io.modelcontextprotocol/events';
/** A connection that is not used for so long is closed. */
const IDLE_MS = 5 * 60_000;
const CONNECTIONS = 64;

export type EventSubject = {
  name: string;
  arguments?: Readonly<Record<string, unknown>> | undefined;
  /** From an earlier answer; `null`: from now on. */
  cursor: string | null;
  /** The user of a server that serves several. */
  user: string;
};

/** Where a server posts events, and the secret of Standard Webhooks that it signs them with. */
export type EventCallback = { url: string; secret: string };

/** What a server grants. */
export type EventGrant = {
  /** When the subscription ends unless it is renewed, epoch milliseconds; `undefined`: never. */
  readonly refreshBefore: number | undefined;
  readonly cursor: string | null;
  /** Events were skipped. */
  readonly isTruncated: boolean;
};

export type Delivery = 'poll' | 'webhook';

export type EventPage = {
  /** In their order; `source` is the whole event as JSON source text. */
  readonly events: readonly { readonly eventId: string; readonly source: string }[];
  readonly cursor: string | null;
  /** Events were skipped. */
  readonly isTruncated: boolean;
  readonly hasMore: boolean;
  /** When the server wants to be asked again. */
  readonly nextPollMs: number | undefined;
};

/** The server has refused the request; asking again does not help. */
export class EventsRefused extends Error {}

const pageSchema = z.looseObject({
  events: z.array(z.looseObject({ eventId: z.string().min(1) })),
  cursor: z.string().nullish(),
  truncated: z.boolean().optional(),
  hasMore: z.boolean().optional(),
  nextPollMs: z.number().min(0).optional(),
});

const grantSchema = z.looseObject({
  refreshBefore: z.iso.datetime({ offset: true }).nullable(),
  cursor: z.string().nullish(),
  truncated: z.boolean().optional(),
});

const catalogueSchema = z.looseObject({
  events: z.array(z.looseObject({ name: z.string(), delivery: z.array(z.string()).optional() })),
  nextCursor: z.string().nullish(),
});

/** How much of a server's list is read, and shown. */
const CATALOGUE_PAGES = 20;
const NAMES_SHOWN = 20;

/** Whether a server does not know the method: as an error of the protocol, or within one of HTTP. */
function isUnknownMethod(thrown: unknown): boolean {
  if (thrown instanceof ProtocolError) return thrown.code === ProtocolErrorCode.MethodNotFound;
  return describeError(thrown).includes(String(ProtocolErrorCode.MethodNotFound));
}

type Entry = { connection: Connection; ready: Promise<void>; usedAt: number };

export class EventServers {
  readonly #clock: Clock;
  /** By {@link keyOf}, the least recently used first. */
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param limitMs for the connection, if there is none, and the answer together
   * @throws EventsRefused, or Error when the server does not answer
   */
  async poll(
    spec: ServerSpec,
    { maxEvents, ...subject }: EventSubject & { maxEvents: number },
    limitMs: number,
  ): Promise<EventPage> {
    const { name, cursor } = subject;
    const params = { name, arguments: { ...subject.arguments }, cursor, maxEvents };
    return pageOf(spec.alias, await this.#ask(spec, subject.user, 'events/poll', params, limitMs));
  }

  /**
   * Asks a server to post the events to an address, or to go on doing so. It posts a challenge there before it answers.
   *
   * @param ttlMs for how long, as a wish
   * @throws as {@link poll}
   */
  async subscribe(
    spec: ServerSpec,
    { callback, ttlMs, ...subject }: EventSubject & { callback: EventCallback; ttlMs: number },
    limitMs: number,
  ): Promise<EventGrant> {
    const { name, cursor } = subject;
    const delivery = { mode: 'webhook', ...callback };
    const params = { name, arguments: { ...subject.arguments }, delivery, cursor, ttlMs };
    const answer = await this.#ask(spec, subject.user, 'events/subscribe', params, limitMs, [callback.secret]);
    const read = grantSchema.safeParse(JSON.parse(answer));
    if (!read.success) throw new Error(`the server ${spec.alias} cannot be asked: its answer grants no subscription`);
    const { refreshBefore, cursor: from, truncated } = read.data;
    return {
      refreshBefore: refreshBefore === null ? undefined : Date.parse(refreshBefore),
      cursor: from ?? null,
      isTruncated: truncated === true,
    };
  }

  /**
   * Requires that a server has an event and delivers it in a way.
   *
   * @throws EventsRefused when it does not, or as {@link poll}
   */
  async requireDelivery(
    spec: ServerSpec,
    { name, user }: Pick<EventSubject, 'name' | 'user'>,
    delivery: Delivery,
    limitMs: number,
  ): Promise<void> {
    const end = this.#clock.monotonic() + limitMs;
    const names: string[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < CATALOGUE_PAGES; pages++) {
      const params = cursor === undefined ? {} : { cursor };
      const leftMs = Math.max(1, end - this.#clock.monotonic());
      const read = catalogueSchema.safeParse(JSON.parse(await this.#ask(spec, user, 'events/list', params, leftMs)));
      if (!read.success) throw new Error(`the server ${spec.alias} cannot be asked: its answer lists no events`);
      const { events, nextCursor } = read.data;
      const found = events.find((one) => one.name === name);
      if (found?.delivery?.includes(delivery) === false)
        throw new EventsRefused(
          `the server ${spec.alias} delivers ${name} by ${found.delivery.join(' and ') || 'nothing'}, not by ${delivery}`,
        );
      if (found) return;
      names.push(...events.map((one) => one.name));
      if (!nextCursor) break;
      cursor = nextCursor;
    }
    const others = names.length === 0 ? 'it has none' : `it has ${names.slice(0, NAMES_SHOWN).join(', ')}`;
    throw new EventsRefused(`the server ${spec.alias} has no event ${name}; ${others}`);
  }

  /** @param secrets of the request, which no error must show */
  async #ask(
    spec: ServerSpec,
    user: string,
    method: string,
    params: Record<string, unknown>,
    limitMs: number,
    secrets: readonly string[] = [],
  ): Promise<string> {
    const entry = this.#entryOf(spec, user);
    const all = spec.isPerUser ? { ...params, _meta: { [USER_META]: user } } : params;
    try {
      return await withDeadline(this.#clock, limitMs, undefined, async (signal) => {
        await entry.ready;
        return entry.connection.request(method, all, signal);
      });
    } catch (thrown) {
      const text = hidden([...spec.secrets, ...secrets], describeError(thrown));
      if (!(thrown instanceof ProtocolError)) this.#drop(entry);
      // Servers of drafts announce it under another name, so only the answer shows whether a server has it.
      if (isUnknownMethod(thrown))
        throw new EventsRefused(`the server ${spec.alias} does not offer events (${EXTENSION}): ${text}`);
      if (thrown instanceof ProtocolError) throw new EventsRefused(`the server ${spec.alias} has refused: ${text}`);
      throw new Error(`the server ${spec.alias} cannot be asked: ${text}`, { cause: thrown });
    }
  }

  async close(): Promise<void> {
    const open = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.all(open.map(({ connection }) => connection.close()));
  }

  #entryOf(spec: ServerSpec, user: string): Entry {
    const key = keyOf(spec, user);
    const now = this.#clock.monotonic();
    const found = this.#entries.get(key);
    this.#entries.delete(key);
    for (const other of [...this.#entries.values()])
      if (now - other.usedAt > IDLE_MS || this.#entries.size >= CONNECTIONS) this.#drop(other);
    const entry = found ?? this.#open(spec);
    entry.usedAt = now;
    this.#entries.set(key, entry);
    return entry;
  }

  #open(spec: ServerSpec): Entry {
    const lost = () => this.#drop(entry);
    const connection = new Connection({
      ...{ spec, cwd: undefined, sandbox: undefined, clock: this.#clock, output: SILENT },
      extensions: { [EXTENSION]: {} },
      onClosed: lost,
      onToolsChanged: () => {},
      onSuspectedLoss: lost,
    });
    const ready = connection.open();
    ready.catch(lost);
    const entry: Entry = { connection, ready, usedAt: 0 };
    return entry;
  }

  #drop(entry: Entry): void {
    for (const [key, one] of this.#entries) if (one === entry) this.#entries.delete(key);
    void entry.connection.close().catch(() => {});
  }
}

/** The errors reach the alarm; nothing else is kept. */
const SILENT = { line: () => {}, stderr: () => {}, clearLast: () => {}, lastOutput: '' };

const keyOf = ({ alias, link, isPerUser }: ServerSpec, user: string) => JSON.stringify([alias, link, isPerUser, user]);

function hidden(secrets: readonly string[], text: string): string {
  return secrets.reduce((shown, secret) => (secret.length >= 6 ? shown.replaceAll(secret, '[hidden]') : shown), text);
}

/** @throws Error for a result that is not of this extension */
function pageOf(alias: string, source: string): EventPage {
  const read = pageSchema.safeParse(JSON.parse(source));
  if (!read.success) throw new Error(`the server ${alias} cannot be asked: its answer is no list of events`);
  const { events, cursor, truncated, hasMore, nextPollMs } = read.data;
  const texts = elementsOf(sliceAt(source, ['events'])!)!;
  return {
    events: events.map(({ eventId }, index) => ({ eventId, source: texts[index]! })),
    cursor: cursor ?? null,
    isTruncated: truncated === true && typeof cursor === 'string',
    hasMore: hasMore === true,
    nextPollMs,
  };
}
