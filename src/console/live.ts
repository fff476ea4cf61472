/** Server-sent events for open pages: hints to load again, and the events of a conversation. */
import type { Clock } from '../kit/clock/clock.ts';
import { formatEvent, type ServerSentEvent } from '../kit/http/sse.ts';

const HEARTBEAT_MS = 15_000;
/** Bytes. A slower reader is disconnected; the browser connects again by itself. */
const MAX_BUFFERED = 256 * 1024;

export type LiveStream = {
  readonly response: Response;
  /** Aborts when the stream has ended, on either side. */
  readonly closed: AbortSignal;
  send(event: ServerSentEvent): void;
  close(): void;
};

/** @param ending ends the stream */
export function openLive(clock: Clock, ending: AbortSignal, headers: Record<string, string>): LiveStream {
  const closed = new AbortController();
  const encoder = new TextEncoder();
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined;
  let cancelHeartbeat = () => {};
  const end = () => {
    if (closed.signal.aborted) return;
    cancelHeartbeat();
    ending.removeEventListener('abort', close);
    closed.abort();
  };
  const close = () => {
    if (closed.signal.aborted) return;
    end();
    sink?.close();
  };
  const write = (text: string) => {
    if (closed.signal.aborted || !sink) return;
    sink.enqueue(encoder.encode(text));
    if ((sink.desiredSize ?? 0) >= -MAX_BUFFERED) return;
    end();
    sink.error(new Error('the reader of a live stream is too slow'));
  };
  const heartbeat = () => {
    cancelHeartbeat = clock.after(HEARTBEAT_MS, () => {
      write(': heartbeat\n\n');
      if (!closed.signal.aborted) heartbeat();
    });
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        sink = controller;
      },
      cancel: end,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  );
  write('retry: 1000\n\n');
  heartbeat();
  ending.addEventListener('abort', close);
  if (ending.aborted) close();
  return {
    response: new Response(body, {
      headers: { ...headers, 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' },
    }),
    closed: closed.signal,
    send: (event) => write(formatEvent(event)),
    close,
  };
}
