/**
 * Reads the streams of chronosd and the executor for users with subscriptions. Events and the position in the stream
 * are stored in one transaction, so a restart of any process loses no event.
 */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Connection, FollowStreamOptions } from '../../kit/http/follow-stream.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { ChronosEvent } from '../../wire/chronos-event.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { IntentEvent } from '../../wire/intent-event.ts';
import type { RemoteCaller } from '../../wire/remote-caller.ts';
import type { RemoteBackends } from '../backends.ts';
import {
  type AlarmFacts,
  CHRONOS_TYPES,
  type NewEvent,
  ofChronosEvent,
  ofIntentEvent,
  type Source,
} from './event-types.ts';
import type { EventStore, Principal } from './store.ts';

/** A stream is reopened after this time, because a new connection reports the current position even without events. */
const REOPEN_MS = 20 * 60_000;
/** Pause after a permanent refusal, such as a revoked key. */
const REFUSED_MS = 60_000;
/** How long a request waits for the first connection of a stream. */
const READY_MS = 10_000;
const ALARMS_KNOWN = 1000;
const ALARM_KNOWN_MS = 60_000;

export type SourcesOptions = {
  store: EventStore;
  backends: RemoteBackends;
  clock: Clock;
  log: Logger;
  /** Whether a subscription or reader still needs a stream of a user. */
  isWanted: (userId: string, source: Source) => boolean;
};

type Following = { readonly ready: Promise<void>; readonly done: Promise<void> };
type Follow = Pick<FollowStreamOptions, 'after' | 'signal' | 'onId' | 'onConnection'>;

/** The caller as which the streams of a user are read: the client that asked for events. */
const callerOf = ({ userId, subject, issuer, clientId, clientName, scopes }: Principal): RemoteCaller => ({
  ...{ userId, subject, issuer, clientId, clientName },
  scopes: new Set(scopes),
  expiresAt: 0,
});

export class Sources {
  readonly #options: SourcesOptions;
  readonly #following = new Map<string, Following>();
  readonly #closing = new AbortController();
  readonly #alarms = new Map<string, { readonly at: number; readonly facts: AlarmFacts }>();

  constructor(options: SourcesOptions) {
    this.#options = options;
  }

  /**
   * Starts to read a stream of a user.
   *
   * @throws ReveilleError `unavailable` if a stream without a stored position does not open in time
   */
  async follow(principal: Principal, source: Source): Promise<void> {
    const { store, clock } = this.#options;
    const key = JSON.stringify([principal.userId, source]);
    let following = this.#following.get(key);
    if (!following) {
      following = this.#begin(principal, source);
      this.#following.set(key, following);
      void following.done.finally(() => this.#following.delete(key)).catch(() => {});
    }
    if (store.sourceCursor(principal.userId, source) !== undefined) return;
    const late = new AbortController();
    const isReady = await Promise.race([
      following.ready.then(() => true),
      wait(clock, READY_MS, AbortSignal.any([late.signal, this.#closing.signal])).then(() => false),
    ]);
    late.abort();
    if (!isReady) throw new ReveilleError('unavailable', `the events of ${source} cannot be read now; try again later`);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the router is shutting down'));
    await Promise.allSettled([...this.#following.values()].map(({ done }) => done));
  }

  #begin(principal: Principal, source: Source): Following {
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    return { ready, done: this.#run(principal, source, resolve) };
  }

  async #run(principal: Principal, source: Source, ready: () => void): Promise<void> {
    const { clock, log, store, isWanted } = this.#options;
    const { userId } = principal;
    const { signal } = this.#closing;
    for (;;) {
      const window = new AbortController();
      const cancel = clock.after(REOPEN_MS, () => window.abort());
      try {
        await this.#read(principal, source, AbortSignal.any([signal, window.signal]), ready);
      } catch (thrown) {
        const { code, message } = toReveilleError(thrown);
        if (!signal.aborted) log.warn({ user_id: userId, source, code, reason: message }, 'events cannot be read');
        await wait(clock, REFUSED_MS, signal);
      } finally {
        cancel();
      }
      if (signal.aborted) return;
      if (isWanted(userId, source)) continue;
      await store.dropSource(userId, source);
      return;
    }
  }

  /** Reads until the signal aborts. */
  async #read(principal: Principal, source: Source, signal: AbortSignal, ready: () => void): Promise<void> {
    const { store, log } = this.#options;
    const { userId } = principal;
    let cursor = store.sourceCursor(userId, source);
    let isBeginning = true;
    const onId = (id: string) => {
      cursor = id;
      if (!isBeginning) return;
      isBeginning = false;
      // Later events store their own, later position.
      store.saveSourceCursor(userId, source, id).then(ready, (err: unknown) => {
        log.warn({ err, user_id: userId, source }, 'the position of a stream could not be stored');
      });
    };
    // The first id of each connection is a position, and not that of an event.
    const onConnection = ({ state }: Connection) => {
      if (state === 'open') isBeginning = true;
    };
    const follow = { after: cursor, signal, onId, onConnection };
    for await (const { isReset, event } of this.#events(principal, source, follow)) {
      if (signal.aborted) return;
      if (isReset) await store.addGap(userId, source, cursor!);
      else if (event) await store.add(userId, [event], { source, cursor: cursor! });
    }
  }

  async *#events(
    principal: Principal,
    source: Source,
    follow: Follow,
  ): AsyncGenerator<{ isReset: boolean; event?: NewEvent | undefined }> {
    const caller = callerOf(principal);
    if (source === 'executor') {
      const client = await this.#options.backends.intents!(caller);
      for await (const event of client.events(follow) as AsyncGenerator<IntentEvent>)
        yield { isReset: event.type === 'reset', event: ofIntentEvent(event) };
      return;
    }
    const client = await this.#options.backends.alarms!(caller);
    for await (const event of client.events({ ...follow, types: CHRONOS_TYPES }) as AsyncGenerator<ChronosEvent>) {
      const { alarm_id } = event;
      const read = (id: string) => client.getAlarm(id, { signal: follow.signal });
      const facts = alarm_id === undefined ? {} : await this.#alarm(principal.userId, alarm_id, read, follow.signal);
      yield { isReset: event.type === 'reset', event: ofChronosEvent(event, facts) };
    }
  }

  /** Reads the label and the maker of an alarm, and waits while chronosd restarts. */
  async #alarm(
    userId: string,
    id: string,
    read: (id: string) => Promise<AlarmFacts>,
    signal: AbortSignal,
  ): Promise<AlarmFacts> {
    const { clock } = this.#options;
    const key = JSON.stringify([userId, id]);
    const known = this.#alarms.get(key);
    if (known && clock.monotonic() - known.at < ALARM_KNOWN_MS) return known.facts;
    for (;;) {
      try {
        const { label, made_by } = await read(id);
        if (this.#alarms.size >= ALARMS_KNOWN) this.#alarms.clear();
        this.#alarms.set(key, { at: clock.monotonic(), facts: { label, made_by } });
        return { label, made_by };
      } catch (thrown) {
        const error = toReveilleError(thrown);
        // A deleted alarm has neither.
        if (error.code === 'not_found') return {};
        if (signal.aborted || !error.retryable) throw error;
        await wait(clock, (error.retryAfterSeconds ?? 1) * 1000, signal);
        if (signal.aborted) throw error;
      }
    }
  }
}
