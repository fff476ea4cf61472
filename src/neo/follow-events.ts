/**
 * Follows an agent's events over any number of connections. A stream that ends is opened again at its position. No
 * event is lost or repeated, even if the agent's machine sleeps and wakes meanwhile.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { backoff } from '../kit/clock/backoff.ts';
import { type Clock, wait } from '../kit/clock/clock.ts';
import { codeOf, openStream, retryAfterOf, StreamRefused } from '../kit/http/exchange.ts';
import type { Transport } from '../kit/http/plain-transport.ts';
import { openEnvelope } from '../wire/envelope.ts';
import { ReveilleError } from '../wire/errors.ts';
import { type TurnEventData, type TurnEventType, turnEventSchemas } from '../wire/turn.ts';

/**
 * A received event. Without `id` it is about the stream, or about gates that wait when it opens, and cannot be resumed
 * from.
 */
export type NeoEvent = {
  [Type in TurnEventType]: { readonly id?: string; readonly type: Type; readonly data: TurnEventData<Type> };
}[TurnEventType];

/** The state of the connection: `open` when a stream is open; `lost` when it is retried, with the reason. */
export type Connection = { state: 'open' } | { state: 'lost'; error: ReveilleError; againInMs: number };

export type FollowOptions = {
  /** Only this conversation's events; all when absent. */
  conversationId?: string | undefined;
  /** The id of the last received event; absent: only events from now on. */
  after?: string | undefined;
  /** Ends the stream. */
  signal: AbortSignal;
  /** Must not throw. */
  onConnection?: ((connection: Connection) => void) | undefined;
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

const pauseMs = backoff({ first: 500, longest: 15_000 });
/** The daemon sends something every 15 s: a stream that is silent for this long is dead. */
const SILENCE_MS = 50_000;

/**
 * Yields events until the signal aborts. Permanent refusals are thrown; other errors are passed to `onConnection`, and
 * the stream is opened again.
 *
 * @throws ReveilleError the daemon's own error, such as `unauthorized` or `not_found`
 */
export async function* followEvents(source: Source, options: FollowOptions): AsyncGenerator<NeoEvent> {
  const { clock } = source;
  const { signal, onConnection } = options;
  let after = options.after;
  for (let failures = 1; !signal.aborted; failures++) {
    let error: ReveilleError;
    const connection = new AbortController();
    const give = () => connection.abort(signal.reason);
    signal.addEventListener('abort', give);
    try {
      for await (const item of readStream(source, { ...options, after, signal: connection.signal })) {
        failures = 1;
        if (item === 'open') {
          onConnection?.({ state: 'open' });
          continue;
        }
        if (item.id !== undefined) after = item.id;
        yield item;
      }
      error = new ReveilleError('unavailable', `${source.name} ended the stream of events`);
    } catch (thrown) {
      if (signal.aborted) return;
      error = errorOf(thrown, source.name);
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

async function* readStream(
  { url, headers, clock, transport }: Source,
  { conversationId, after, signal }: FollowOptions,
): AsyncGenerator<NeoEvent | 'open'> {
  const address = new URL(url);
  if (conversationId !== undefined) address.searchParams.set('conversation_id', conversationId);
  const quiet = new AbortController();
  const both = AbortSignal.any([signal, quiet.signal]);
  const stream = await openStream(address, {
    headers: { ...headers, ...(after === undefined ? {} : { 'last-event-id': after }) },
    signal: both,
    transport,
  });
  yield 'open';
  let cancel = () => {};
  const watch = () => {
    cancel();
    cancel = clock.after(SILENCE_MS, () => quiet.abort(new Error(`nothing was received for ${SILENCE_MS / 1000} s`)));
  };
  watch();
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
      .pipeThrough(new EventSourceParserStream());
    for await (const { id, event, data } of events) {
      const read = eventOf(id, event, data);
      if (read) yield read;
    }
  } finally {
    cancel();
  }
}

/** An event of this version; one of another version is skipped. */
function eventOf(id: string | undefined, type: string | undefined, text: string): NeoEvent | undefined {
  if (type === undefined || !Object.hasOwn(turnEventSchemas, type)) return undefined;
  const parsed = turnEventSchemas[type as TurnEventType].safeParse(jsonOf(text));
  if (!parsed.success) return undefined;
  return { ...(id === undefined || id === '' ? {} : { id }), type, data: parsed.data } as NeoEvent;
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
