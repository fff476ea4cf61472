/** A stream of server-sent events from a generator. It ends with its reader, its credential, or the listener. */
import { type Clock, wait } from '../kit/clock/clock.ts';
import { formatEvent } from '../kit/http/sse.ts';

/** Interval at which a stream sends a heartbeat and checks its credential. */
const BEAT_MS = 10_000;
const RECHECK_MS = 2000;

export type EventStreamOptions<T> = {
  /** The first event. The caller has read it, so that an earlier failure gets a plain answer. */
  first: IteratorResult<T>;
  /** The later events. The generator must end soon after `ending` has aborted. */
  events: AsyncGenerator<T>;
  /** The data of an event. */
  format: (event: T) => unknown;
  /** The data of the event `error` for a failure. */
  formatError: (thrown: unknown) => unknown;
  /** Whether the credential of the reader is still valid. */
  isValid: () => boolean | Promise<boolean>;
  /** Ends the stream; it also aborts when the reader leaves, or the listener closes. */
  ending: AbortController;
  /** Called once, after the stream has ended. */
  onEnd: () => void;
  clock: Clock;
};

/** The answer with the stream. It waits for its reader: an event is read from the generator when it can be sent. */
export function eventStream<T>(options: EventStreamOptions<T>): Response {
  const { first, events, format, formatError, isValid, ending, onEnd, clock } = options;
  const { signal } = ending;
  const encoder = new TextEncoder();
  const encoded = (data: unknown, event?: string) =>
    encoder.encode(formatEvent({ data: JSON.stringify(data), ...(event !== undefined && { event }) }));

  const recheck = async () => {
    while (!signal.aborted) {
      await wait(clock, RECHECK_MS, signal);
      if (!signal.aborted && !(await Promise.resolve(isValid()).catch(() => false))) ending.abort();
    }
  };
  const beat = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    while (!signal.aborted) {
      await wait(clock, BEAT_MS, signal);
      if (!signal.aborted && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': alive\n\n'));
    }
  };
  const end = () => {
    ending.abort();
    onEnd();
  };

  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      void recheck();
      void beat(controller);
      if (!first.done) controller.enqueue(encoded(format(first.value)));
    },
    async pull(controller) {
      try {
        const { done, value } =
          first.done || signal.aborted ? { done: true as const, value: undefined } : await events.next();
        if (!done) return controller.enqueue(encoded(format(value)));
      } catch (thrown) {
        controller.enqueue(encoded(formatError(thrown), 'error'));
      }
      end();
      controller.close();
    },
    async cancel() {
      end();
      await events.return(undefined);
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' } });
}
