/** Serves the events of an owner as a stream: counted, resumable, and ended when its credential is revoked. */
import type { Clock } from '../clock/clock.ts';
import type { HintRequest } from './change-hints.ts';
import type { EventFeed, EventReader } from './event-feed.ts';
import type { FeedItem } from './feed-source.ts';
import type { HttpContext } from './handlers.ts';
import { formatEvent, openEventStream } from './sse.ts';

/** Interval of heartbeats, and of checks that the caller's credential is still accepted. */
const HEARTBEAT_MS = 15_000;
/** A reader with more unread bytes is disconnected. It resumes at its last event. */
const BUFFERED_BYTES = 512 * 1024;

export type EventStreamLimits = { readonly perOwner: number; readonly inAll: number };

/** Counters of the streams of one process, for its metrics. */
export type EventFigures = { open: number; sent: number };

export type FeedStreamsOptions<
  Change extends { owner: string; at: number },
  Event extends { readonly type: string },
> = {
  readonly feed: EventFeed<Change, Event>;
  readonly limits: EventStreamLimits;
  /** The names of the settings of the limits. */
  readonly settings: { readonly [Limit in keyof EventStreamLimits]: string };
  /** Makes the error for a caller with too many streams. */
  readonly refusal: (message: string) => Error;
  /** Updated here. */
  readonly figures: EventFigures;
  readonly clock: Clock;
};

export type FeedRequest<Event> = {
  readonly owner: string;
  readonly isWanted: (event: Event) => boolean;
  /** One event for many changes; `isWanted` is ignored. */
  readonly merged?: HintRequest | undefined;
  /** Whether the caller's credential is still accepted; must not reject. */
  readonly isAccepted: () => boolean | Promise<boolean>;
  /** Events of the present state, before those of a stream that does not resume. */
  readonly present?: (() => readonly Event[]) | undefined;
};

export class FeedStreams<Change extends { owner: string; at: number }, Event extends { readonly type: string }> {
  readonly #options: FeedStreamsOptions<Change, Event>;
  readonly #perOwner = new Map<string, number>();

  constructor(options: FeedStreamsOptions<Change, Event>) {
    this.#options = options;
  }

  /**
   * Answers a request with a stream.
   *
   * @throws the refusal of too many streams; `unavailable` when the store cannot be read; the errors of `present`
   */
  async open(c: HttpContext, request: FeedRequest<Event>): Promise<Response> {
    const { feed, clock } = this.#options;
    const { owner, present, merged } = request;
    const leave = this.#enter(owner);
    const lastEventId = c.req.header('last-event-id');
    let reader: EventReader<Event> | undefined;
    let first: readonly Event[];
    try {
      reader = await feed.open(owner, lastEventId, merged);
      // After the feed is open, so that no event is missing between both.
      first = lastEventId === undefined && present ? present() : [];
    } catch (error) {
      reader?.end();
      leave();
      throw error;
    }
    const items = reader;
    const stream = openEventStream(c, { clock, heartbeatMs: HEARTBEAT_MS, maxBufferedBytes: BUFFERED_BYTES });
    const end = () => {
      items.end();
      leave();
    };
    if (stream.closed.aborted) end();
    else stream.closed.addEventListener('abort', end);

    // The cursor of the beginning: a client that is interrupted before the first event resumes here.
    const isWanted = ({ event }: { event: Event }) => merged !== undefined || request.isWanted(event);
    const missed = items.take().filter(isWanted);
    const begin = missed.length === 0 || lastEventId === undefined ? items.id : lastEventId;
    stream.send({ event: 'ready', id: begin, data: '{}' });
    const send = (items: readonly Sent<Event>[]) => {
      const wanted = items.filter(isWanted);
      if (wanted.length === 0) return;
      this.#options.figures.sent += wanted.length;
      stream.write(wanted.map(textOf).join(''));
    };
    send(first.map((event) => ({ event })));
    send(missed);
    items.onClosed(() => stream.close());
    items.onItems(() => send(items.take()));

    const watchCredential = () => {
      if (stream.closed.aborted) return;
      const cancel = clock.after(HEARTBEAT_MS, async () => {
        if (await request.isAccepted()) watchCredential();
        else stream.close();
      });
      stream.closed.addEventListener('abort', cancel);
    };
    watchCredential();
    return stream.response;
  }

  /** Counts a stream. @returns ends it */
  #enter(owner: string): () => void {
    const { limits, settings, figures, refusal } = this.#options;
    const refuse = (count: string, setting: string) =>
      refusal(
        `${count} open streams of events, the allowed maximum (${setting}); close one, or read the state instead`,
      );
    const own = this.#perOwner.get(owner) ?? 0;
    if (own >= limits.perOwner) throw refuse(`you have ${own}`, settings.perOwner);
    if (figures.open >= limits.inAll) throw refuse(`all owners have ${figures.open}`, settings.inAll);
    this.#perOwner.set(owner, own + 1);
    figures.open++;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      figures.open--;
      const left = this.#perOwner.get(owner)! - 1;
      if (left === 0) this.#perOwner.delete(owner);
      else this.#perOwner.set(owner, left);
    };
  }
}

/** An event of the present state has no cursor. */
type Sent<Event> = Omit<FeedItem<Event>, 'id'> & { readonly id?: string };

function textOf({ event, id, text }: Sent<{ readonly type: string }>): string {
  return text ?? formatEvent({ ...(id !== undefined && { id }), event: event.type, data: JSON.stringify(event) });
}
