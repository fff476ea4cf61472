/**
 * The client side of MCP Events (`io.modelcontextprotocol/events`, SEP-3415) by poll: asks servers over HTTP for what
 * has happened since a cursor.
 */
import { ProtocolError } from '@modelcontextprotocol/client';
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

export type EventQuery = {
  name: string;
  arguments?: Readonly<Record<string, unknown>> | undefined;
  /** From an earlier answer; `null`: from now on. */
  cursor: string | null;
  maxEvents: number;
  /** The user of a server that serves several. */
  user: string;
};

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
  async poll(spec: ServerSpec, query: EventQuery, limitMs: number): Promise<EventPage> {
    const { name, cursor, maxEvents } = query;
    const params = {
      ...{ name, arguments: { ...query.arguments }, cursor, maxEvents },
      ...(spec.isPerUser && { _meta: { [USER_META]: query.user } }),
    };
    const entry = this.#entryOf(spec, query.user);
    try {
      const source = await withDeadline(this.#clock, limitMs, undefined, async (signal) => {
        await entry.ready;
        if (entry.connection.extension(EXTENSION) === undefined)
          throw new EventsRefused(`the server ${spec.alias} does not offer events (${EXTENSION})`);
        return entry.connection.request('events/poll', params, signal);
      });
      return pageOf(source);
    } catch (thrown) {
      if (thrown instanceof EventsRefused) throw thrown;
      const text = hidden(spec, describeError(thrown));
      if (thrown instanceof ProtocolError) throw new EventsRefused(`the server ${spec.alias} has refused: ${text}`);
      this.#drop(entry);
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

function hidden({ secrets }: ServerSpec, text: string): string {
  return secrets.reduce((shown, secret) => (secret.length >= 6 ? shown.replaceAll(secret, '[hidden]') : shown), text);
}

/** @throws Error for a result that is not of this extension */
function pageOf(source: string): EventPage {
  const read = pageSchema.safeParse(JSON.parse(source));
  if (!read.success) throw new Error('its answer is no list of events');
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
