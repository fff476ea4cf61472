/** Streams of server-sent events to open pages: hints to look again, and whatever else a page follows. */
import type { Clock } from '../kit/clock/clock.ts';
import { formatEvent, type ServerSentEvent } from '../kit/http/sse.ts';

const HEARTBEAT_MS = 15_000;
/** A reader that lets more than this pile up is let go; it comes back by itself. */
const MOST_BUFFERED = 256 * 1024;

export type LiveStream = {
  readonly response: Response;
  /** Aborts when the stream is over, whoever ended it. */
  readonly closed: AbortSignal;
  send(event: ServerSentEvent): void;
  close(): void;
};

/** @param ending ends it */
export function openLive(clock: Clock, ending: AbortSignal, headers: Record<string, string>): LiveStream {
  const closed = new AbortController();
  const encoder = new TextEncoder();
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined;
  let cancelBeat = () => {};
  const over = () => {
    if (closed.signal.aborted) return;
    cancelBeat();
    ending.removeEventListener('abort', close);
    closed.abort();
  };
  const close = () => {
    if (closed.signal.aborted) return;
    over();
    sink?.close();
  };
  const write = (text: string) => {
    if (closed.signal.aborted || !sink) return;
    sink.enqueue(encoder.encode(text));
    if ((sink.desiredSize ?? 0) >= -MOST_BUFFERED) return;
    over();
    sink.error(new Error('the reader is too slow'));
  };
  const beat = () => {
    cancelBeat = clock.after(HEARTBEAT_MS, () => {
      write(': still here\n\n');
      if (!closed.signal.aborted) beat();
    });
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        sink = controller;
      },
      cancel: over,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  );
  write('retry: 1000\n\n');
  beat();
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
