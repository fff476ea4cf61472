/** Server-sent events (WHATWG HTML, §9.2), written straight to the connection so that a slow reader is noticed. */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Clock } from '../clock/clock.ts';
import type { HttpContext } from './environment.ts';

/** One event. `data` may hold line ends of any kind; the reader gets them as `\n`. */
export type ServerSentEvent = { event?: string; id?: string; data: string };

export type EventStreamOptions = {
  clock: Clock;
  /** A comment is sent this often, so that proxies and the reader know the stream is alive; 15 seconds unless told. */
  heartbeatMs?: number;
  /**
   * A reader that lets more than this pile up is disconnected; it comes back with `Last-Event-ID`. 1 MiB unless told.
   */
  maxBufferedBytes?: number;
  /** What the reader is told to wait before it connects again; 1 second unless told. */
  reconnectMs?: number;
};

export type EventStream = {
  /** What the reader saw last, from its `Last-Event-ID` header. */
  readonly lastEventId: string | undefined;
  /** Aborts when the stream is over, whoever ended it: unsubscribe here. */
  readonly closed: AbortSignal;
  /** What the handler must return. */
  readonly response: Response;
  /** Sends an event; false when the stream is over or has just been ended because the reader is too slow. */
  send(event: ServerSentEvent): boolean;
  /** Ends the stream. */
  close(): void;
};

/** The text of one event. Line ends and NUL are taken out of `event` and `id`, which are single lines. */
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
  const over = () => {
    if (closed.signal.aborted) return;
    cancelHeartbeat();
    draining.removeEventListener('abort', close);
    closed.abort();
  };
  const close = () => {
    over();
    outgoing.end();
  };
  const write = (text: string): boolean => {
    if (closed.signal.aborted) return false;
    outgoing.write(text);
    if (outgoing.writableLength <= maxBufferedBytes) return true;
    over();
    outgoing.destroy();
    return false;
  };
  const beat = () => {
    cancelHeartbeat = clock.after(heartbeatMs, () => {
      if (write(': still here\n\n')) beat();
    });
  };

  outgoing.on('close', over);
  outgoing.on('error', over);
  outgoing.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
  write(`retry: ${reconnectMs}\n\n`);
  beat();
  draining.addEventListener('abort', close);
  if (draining.aborted) close();
  return {
    lastEventId: c.req.header('last-event-id'),
    closed: closed.signal,
    response: RESPONSE_ALREADY_SENT,
    send: (event) => write(formatEvent(event)),
    close,
  };
}
