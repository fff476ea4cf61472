/**
 * Follows server-sent events over any number of connections. A stream that ends is opened again with the id of its last
 * event (`Last-Event-ID`), so none is lost or repeated.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { openEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { backoff } from '../clock/backoff.ts';
import { type Clock, wait } from '../clock/clock.ts';
import { codeOf, retryAfterOf, StreamRefused } from './exchange.ts';

/** The state of the connection: `open` when a stream is open; `lost` when it is retried, with the reason. */
export type Connection = { state: 'open' } | { state: 'lost'; error: ReveilleError; againInMs: number };

export type FollowStreamOptions = {
  /** The id of the last received event; absent: only events from now on. */
  after?: string | undefined;
  /** Ends the stream. */
  signal: AbortSignal;
  /** Must not throw. */
  onConnection?: ((connection: Connection) => void) | undefined;
  /**
   * Gets the id of each event before it is yielded, and that of the beginning. A reader that stores it with the event
   * resumes there. Must not throw.
   */
  onId?: ((id: string) => void) | undefined;
};

export type StreamSource<T> = {
  /** Opens a connection; `Last-Event-ID` is in the headers. */
  open(headers: Record<string, string>, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Reads an event; `undefined` skips one of another version. */
  read(type: string, data: unknown, id: string | undefined): T | undefined;
  /** Its name in messages. */
  name: string;
  clock: Clock;
};

const pauseMs = backoff({ first: 500, longest: 15_000 });
/** Daemons send something every 15 s: a stream that is silent for this long is dead. */
const SILENCE_MS = 50_000;
/** A stream with a longer event is closed, in UTF-16 units. */
const EVENT_MAX = 8 * 1024 * 1024;

type Received<T> = { readonly id: string | undefined; readonly event: T | undefined };

/**
 * Yields events until the signal aborts. Permanent refusals are thrown; other errors are passed to `onConnection`, and
 * the stream is opened again.
 *
 * @throws ReveilleError the daemon's own error, such as `unauthorized` or `not_found`
 */
export async function* followStream<T>(source: StreamSource<T>, options: FollowStreamOptions): AsyncGenerator<T> {
  const { clock, name } = source;
  const { signal, onConnection, onId } = options;
  let after = options.after;
  for (let failures = 1; !signal.aborted; failures++) {
    let error: ReveilleError;
    const connection = new AbortController();
    const give = () => connection.abort(signal.reason);
    signal.addEventListener('abort', give);
    try {
      for await (const item of readStream(source, after, connection.signal)) {
        failures = 1;
        if (item === 'open') {
          onConnection?.({ state: 'open' });
          continue;
        }
        if (item.id !== undefined) onId?.(item.id);
        after = item.id ?? after;
        if (item.event !== undefined) yield item.event;
      }
      error = new ReveilleError('unavailable', `${name} ended the stream of events`);
    } catch (thrown) {
      if (signal.aborted) return;
      error = errorOf(thrown, name);
      if (!error.retryable) throw error;
    } finally {
      signal.removeEventListener('abort', give);
      connection.abort(new Error('the stream was closed'));
    }
    if (signal.aborted) return;
    const againInMs = Math.max((error.retryAfterSeconds ?? 0) * 1000, pauseMs(failures));
    onConnection?.({ state: 'lost', error, againInMs });
    await wait(clock, againInMs, signal);
  }
}

async function* readStream<T>(
  { open, read, clock }: StreamSource<T>,
  after: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Received<T> | 'open'> {
  const quiet = new AbortController();
  const stream = await open(
    after === undefined ? {} : { 'last-event-id': after },
    AbortSignal.any([signal, quiet.signal]),
  );
  yield 'open';
  let cancel = () => {};
  const watch = () => {
    cancel();
    if (signal.aborted) return;
    cancel = clock.after(SILENCE_MS, () => quiet.abort(new Error(`nothing was received for ${SILENCE_MS / 1000} s`)));
  };
  watch();
  // A reader that aborts may never ask for the next event, so the end of this function may not be reached.
  signal.addEventListener('abort', () => cancel(), { once: true });
  const noted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      watch();
      controller.enqueue(chunk);
    },
  });
  try {
    const events = stream
      .pipeThrough(noted)
      .pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>)
      .pipeThrough(new EventSourceParserStream({ maxBufferSize: EVENT_MAX }));
    for await (const { id, event, data } of events)
      yield { id: id === '' ? undefined : id, event: event === undefined ? undefined : read(event, jsonOf(data), id) };
  } finally {
    cancel();
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function errorOf(thrown: unknown, name: string): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  if (thrown instanceof StreamRefused) {
    try {
      openEnvelope(thrown.text, thrown.status, name, retryAfterOf(thrown.retryAfter));
    } catch (error) {
      if (error instanceof ReveilleError) return error;
    }
  }
  return new ReveilleError('unavailable', `the events of ${name} were lost (${codeOf(thrown)})`, { cause: thrown });
}
