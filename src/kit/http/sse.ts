/** Server-sent events (WHATWG HTML, §9.2), written directly to the connection so that slow readers are detected. */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Clock } from '../clock/clock.ts';
import type { HttpContext } from './handlers.ts';

/** One event. `data` may contain line ends of any kind; the reader gets them as `\n`. */
export type ServerSentEvent = { event?: string; id?: string; data: string };

export type EventStreamOptions = {
  clock: Clock;
  /** Interval of comments that keep proxies and the reader from timing out. Default 15 seconds. */
  heartbeatMs?: number;
  /** A reader with more unread bytes is disconnected; it reconnects with `Last-Event-ID`. Default 1 MiB. */
  maxBufferedBytes?: number;
  /** How long the reader waits before it reconnects. Default 1 second. */
  reconnectMs?: number;
};

export type EventStream = {
  /** The `Last-Event-ID` header of the reader. */
  readonly lastEventId: string | undefined;
  /** Aborts when the stream has ended for any reason: unsubscribe here. */
  readonly closed: AbortSignal;
  /** The handler must return it. */
  readonly response: Response;
  /** Sends events; false if the stream has ended, or was just ended because the reader is too slow. */
  send(...events: readonly ServerSentEvent[]): boolean;
  /** The same with the text of events, as {@link formatEvent} returns it. */
  write(text: string): boolean;
  /** Ends the stream. */
  close(): void;
};

/** The text of one event. Line ends and NUL are removed from `event` and `id`, which are single lines. */
export function formatEvent({ event, id, data }: ServerSentEvent): string {
  const oneLine = (text: string) => text.replace(/[\r\n\0]/g, '');
  const lines: string[] = [];
  if (id !== undefined) lines.push(`id: ${oneLine(id)}`);
  if (event !== undefined) lines.push(`event: ${oneLine(event)}`);
  for (const line of data.split(/\r\n|\r|\n/)) lines.push(`data: ${line}`);
  return `${lines.join('\n')}\n\n`;
}

/** Answers the request with an event stream, which also ends when the server drains. */
export function openEventStream(c: HttpContext, options: EventStreamOptions): EventStream {
  const { clock, heartbeatMs = 15_000, maxBufferedBytes = 1024 * 1024, reconnectMs = 1000 } = options;
  const { outgoing, draining } = c.env;
  const closed = new AbortController();

  let cancelHeartbeat = () => {};
  const end = () => {
    if (closed.signal.aborted) return;
    cancelHeartbeat();
    draining.removeEventListener('abort', close);
    closed.abort();
  };
  const close = () => {
    end();
    outgoing.end();
  };
  const write = (text: string): boolean => {
    if (closed.signal.aborted) return false;
    outgoing.write(text);
    if (outgoing.writableLength <= maxBufferedBytes) return true;
    end();
    outgoing.destroy();
    return false;
  };
  const scheduleHeartbeat = () => {
    cancelHeartbeat = clock.after(heartbeatMs, () => {
      if (write(': keep-alive\n\n')) scheduleHeartbeat();
    });
  };

  outgoing.on('close', end);
  outgoing.on('error', end);
  outgoing.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
  write(`retry: ${reconnectMs}\n\n`);
  scheduleHeartbeat();
  draining.addEventListener('abort', close);
  if (draining.aborted) close();
  return {
    lastEventId: c.req.header('last-event-id'),
    closed: closed.signal,
    response: RESPONSE_ALREADY_SENT,
    send: (...events) => write(events.map(formatEvent).join('')),
    write,
    close,
  };
}
