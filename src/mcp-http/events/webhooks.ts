/**
 * Delivers events to the callbacks of subscriptions, in order and at least once. A failed delivery is retried with
 * exponential backoff. If a callback fails for too long, its subscription is terminated with the reason.
 */
import { createHash, randomBytes } from 'node:crypto';
import { backoff, withJitter } from '../../kit/clock/backoff.ts';
import { type CancelTimer, type Clock, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { encodeJson, RawJson } from '../../wire/json.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Access } from './access.ts';
import type { Address, Callbacks, Failure, Message } from './callbacks.ts';
import { dataFor, EVENT_TYPES, selects } from './event-types.ts';
import { ACCESS_ENDED, callbackEnded } from './protocol.ts';
import { type EventStore, isGap, type Principal, type StoredEvent, type Subscription } from './store.ts';

/** Maximum number of concurrent deliveries. */
const CONCURRENCY = 64;
/** Maximum number of concurrent deliveries to one host, so that a slow host cannot block the others. */
const CONCURRENCY_OF_HOST = 8;
const PAGE = 50;
const SWEEP_MS = 30_000;
/** Old rows are removed in every twentieth sweep. */
const SWEEPS_PER_PRUNING = 20;
/** Pause after a failed delivery, by the number of failures. */
const pauseMs = backoff({ first: 1000, longest: 300_000 });
const LONGEST_PAUSE_MS = 300_000;
/** After this many refusals of one event, the event is skipped. */
const MOST_REFUSALS = 8;
const TERMINATION_ATTEMPTS = 3;

export type WebhooksOptions = {
  store: EventStore;
  access: Access;
  callbacks: Callbacks;
  clock: Clock;
  log: Logger;
  /** How long a callback may fail before its subscription is terminated. */
  giveUpMs: number;
};

/** A subscription with its state in this process. */
type Live = {
  readonly subscription: Subscription;
  readonly userId: string;
  readonly host: string;
  isRunning: boolean;
  /** Another run is due: an event came during the current run, or the concurrency limit was reached. */
  isWanted: boolean;
  /** Refusals of the next event. */
  refusals: number;
  /** The position has advanced in memory and is not stored yet. */
  isAhead: boolean;
  cancelRetry: CancelTimer | undefined;
};

export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #live = new Map<string, Live>();
  readonly #ofUser = new Map<string, Set<Live>>();
  readonly #waiting = new Set<Live>();
  readonly #perHost = new Map<string, number>();
  readonly #closing = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  #running = 0;
  #sweeps = 0;
  #cancelSweep: CancelTimer = () => {};

  constructor(options: WebhooksOptions) {
    this.#options = options;
  }

  /** Continues stored subscriptions. */
  open(): void {
    const { store, log } = this.#options;
    for (const subscription of store.active((id) => log.error({ id }, 'the secret of a subscription cannot be read')))
      this.#wake(this.#add(subscription));
    this.#scheduleSweep();
  }

  get(id: string): Subscription | undefined {
    return this.#live.get(id)?.subscription;
  }

  /** Active subscriptions. @param fits selects among them; by default all */
  list(fits: (subscription: Subscription) => boolean = () => true): Subscription[] {
    return [...this.#live.values()].map(({ subscription }) => subscription).filter(fits);
  }

  get size(): number {
    return this.#live.size;
  }

  ofUser(userId: string): Subscription[] {
    return [...(this.#ofUser.get(userId) ?? [])].map(({ subscription }) => subscription);
  }

  users(): string[] {
    return [...this.#ofUser.keys()];
  }

  /** Starts delivery of a stored subscription, or restarts it at once after a refresh. */
  begin(subscription: Subscription): void {
    const known = this.#live.get(subscription.id);
    const live = known ?? this.#add(subscription);
    live.cancelRetry?.();
    live.cancelRetry = undefined;
    this.#wake(live);
  }

  /** Stops the deliveries of a subscription. A request in progress is finished. */
  forget(id: string): void {
    const live = this.#live.get(id);
    if (!live) return;
    live.cancelRetry?.();
    this.#live.delete(id);
    this.#waiting.delete(live);
    const others = this.#ofUser.get(live.userId)!;
    others.delete(live);
    if (others.size === 0) this.#ofUser.delete(live.userId);
  }

  /** Terminates the subscriptions of a client whose access was revoked. @returns how many there were */
  async endAll(principal: number): Promise<number> {
    const those = [...this.#live.values()].filter(({ subscription }) => subscription.principal === principal);
    await Promise.all(those.map((live) => this.#end(live, 'its access was revoked', ACCESS_ENDED)));
    return those.length;
  }

  /** Delivers new events of a user. */
  notify(userId: string): void {
    for (const live of this.#ofUser.get(userId) ?? []) if (live.cancelRetry === undefined) this.#wake(live);
  }

  async close(): Promise<void> {
    this.#cancelSweep();
    for (const { cancelRetry } of this.#live.values()) cancelRetry?.();
    this.#closing.abort(new Error('the router is shutting down'));
    await Promise.allSettled(this.#underWay);
    await this.#savePositions();
  }

  #add(subscription: Subscription): Live {
    const { userId } = this.#options.store.principal(subscription.principal);
    const { host } = new URL(subscription.url);
    const live: Live = {
      ...{ subscription, userId, host, isRunning: false, isWanted: false, refusals: 0, isAhead: false },
      cancelRetry: undefined,
    };
    this.#live.set(subscription.id, live);
    const others = this.#ofUser.get(userId) ?? new Set();
    this.#ofUser.set(userId, others.add(live));
    return live;
  }

  #wake(live: Live): void {
    if (this.#closing.signal.aborted) return;
    live.isWanted = true;
    if (live.isRunning) return;
    const ofHost = this.#perHost.get(live.host) ?? 0;
    if (this.#running >= CONCURRENCY || ofHost >= CONCURRENCY_OF_HOST) {
      this.#waiting.add(live);
      return;
    }
    live.isRunning = true;
    this.#running++;
    this.#perHost.set(live.host, ofHost + 1);
    this.#track(this.#run(live).finally(() => this.#leave(live)));
  }

  #leave(live: Live): void {
    live.isRunning = false;
    this.#running--;
    const ofHost = this.#perHost.get(live.host)! - 1;
    if (ofHost === 0) this.#perHost.delete(live.host);
    else this.#perHost.set(live.host, ofHost);
    // A new subscription may have the id of this one, which then is not run again and again.
    if (live.isWanted && this.#live.get(live.subscription.id) === live) this.#waiting.add(live);
    for (const next of [...this.#waiting]) {
      if (this.#running >= CONCURRENCY) return;
      this.#waiting.delete(next);
      this.#wake(next);
    }
  }

  #track(work: Promise<unknown>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work)).catch(() => {});
  }

  async #run(live: Live): Promise<void> {
    const { log } = this.#options;
    const { id } = live.subscription;
    try {
      while (live.isWanted && !this.#closing.signal.aborted && this.#live.get(id) === live) {
        live.isWanted = false;
        if (!(await this.#deliverAll(live))) return;
      }
    } catch (err) {
      log.warn({ id, err }, 'events could not be delivered');
      this.#retryAfter(live, pauseMs(1));
    }
  }

  /** @returns whether everything was delivered */
  async #deliverAll(live: Live): Promise<boolean> {
    const { store, access, clock } = this.#options;
    const { subscription, userId } = live;
    const principal = store.principal(subscription.principal);
    const { scope } = EVENT_TYPES.get(subscription.name)!;
    for (;;) {
      if (subscription.expiresAt !== null && subscription.expiresAt <= clock.now()) {
        await this.#end(live, 'expired: it was not refreshed');
        return false;
      }
      const page = this.#pageOf(live);
      if (page.length === 0) return true;
      for (const event of page) {
        if (this.#closing.signal.aborted || this.#live.get(subscription.id) !== live) return false;
        if (isGap(event) || selects(subscription.arguments, event.facts, principal.clientId)) {
          const ended = await access.endOf(principal, scope);
          if (ended !== undefined) {
            await this.#end(live, ended, ACCESS_ENDED);
            return false;
          }
          if (!(await this.#deliver(live, event))) return false;
        } else {
          subscription.position = event.seq;
          live.isAhead = true;
        }
      }
      if (page.length < PAGE) {
        // A gap is a page of its own, and events may have arrived during the deliveries.
        const after = store.page(userId, subscription.position, subscription.name, 1);
        if (after.length === 0) return true;
      }
    }
  }

  /** The next events. If undelivered events were removed, a gap comes first. */
  #pageOf({ subscription, userId }: Live): StoredEvent[] {
    const { store } = this.#options;
    const floor = store.floor(userId);
    const { name, position } = subscription;
    if (position >= floor) return store.page(userId, position, name, PAGE);
    return [{ seq: floor, eventId: `floor:${floor}`, name: 'gap:removed', at: 0, facts: {}, data: '{}' }];
  }

  /** @returns whether the event was acknowledged or abandoned */
  async #deliver(live: Live, event: StoredEvent): Promise<boolean> {
    const { store, callbacks, clock, log } = this.#options;
    const { subscription } = live;
    const principal = store.principal(subscription.principal);
    const message = messageOf(subscription.id, event, store.cursorAt(event.seq), principal);
    const failure = await callbacks.post(this.#addressOf(subscription), message, this.#closing.signal);
    // The next process repeats an interrupted request.
    if (failure && this.#closing.signal.aborted) return false;
    // Ended meanwhile: a new subscription may have its id.
    if (this.#live.get(subscription.id) !== live) return false;
    const isAbandoned = failure !== undefined && this.#isAbandoned(live, failure);
    if (failure && !isAbandoned) {
      await this.#failed(live, failure);
      return false;
    }
    live.refusals = 0;
    const now = clock.now();
    const news = failure
      ? { lastError: failure.error }
      : { failures: 0, failedSince: null, lastError: null, lastDeliveryAt: now };
    Object.assign(subscription, { position: event.seq, ...news });
    live.isAhead = false;
    await store.progress(subscription);
    if (failure)
      log.warn({ id: subscription.id, event_id: event.eventId }, 'a callback refused an event, which is skipped');
    return true;
  }

  /** Whether to skip an event, because the callback refuses it and accepts others. */
  #isAbandoned(live: Live, { isFinal, error, detail }: Failure): boolean {
    if (isFinal === true) return true;
    if (error !== 'http_4xx' || detail !== undefined) live.refusals = 0;
    else live.refusals++;
    // A callback that accepts no event at all is down: its subscription is terminated later.
    const { lastDeliveryAt, failedSince } = live.subscription;
    const tookOthers = lastDeliveryAt !== null && failedSince !== null && lastDeliveryAt <= failedSince;
    return tookOthers && live.refusals >= MOST_REFUSALS;
  }

  async #failed(live: Live, { error, detail }: Failure): Promise<void> {
    const { store, clock, giveUpMs, log } = this.#options;
    const { subscription } = live;
    const now = clock.now();
    subscription.failures++;
    subscription.failedSince ??= now;
    subscription.lastError = error;
    if (now - subscription.failedSince >= giveUpMs) {
      const since = formatInstant(subscription.failedSince);
      const what = detail === undefined ? error : `${error} (${detail})`;
      await this.#end(live, `its callback has failed since ${since}: ${what}`, callbackEnded(error));
      return;
    }
    await store.progress(subscription);
    log.debug({ id: subscription.id, error, failures: subscription.failures }, 'a callback has failed');
    const untilEnd = subscription.failedSince + giveUpMs - now;
    const pause = withJitter(Math.min(pauseMs(subscription.failures), LONGEST_PAUSE_MS), Math.random());
    this.#retryAfter(live, Math.min(pause, untilEnd));
  }

  #retryAfter(live: Live, ms: number): void {
    live.cancelRetry?.();
    if (this.#closing.signal.aborted) return;
    live.cancelRetry = this.#options.clock.after(ms, () => {
      live.cancelRetry = undefined;
      this.#wake(live);
    });
  }

  /** Terminates a subscription. @param error sent to its callback */
  async #end(live: Live, reason: string, error?: object): Promise<void> {
    const { store, log } = this.#options;
    const { id } = live.subscription;
    if (this.#live.get(id) !== live) return;
    this.forget(id);
    await store.end(id, reason);
    log.info({ id, reason }, 'a subscription has ended');
    if (error) this.#track(this.#sendTermination(live.subscription, error));
  }

  async #sendTermination(subscription: Subscription, error: object): Promise<void> {
    const { callbacks, clock } = this.#options;
    const id = `msg_terminated_${randomBytes(12).toString('hex')}`;
    const message = { id, body: JSON.stringify({ type: 'terminated', error }) };
    for (let attempt = 1; attempt <= TERMINATION_ATTEMPTS && !this.#closing.signal.aborted; attempt++) {
      if (!(await callbacks.post(this.#addressOf(subscription), message, this.#closing.signal))) return;
      if (attempt < TERMINATION_ATTEMPTS) await wait(clock, pauseMs(attempt), this.#closing.signal);
    }
  }

  #addressOf({ id, url, secret, old }: Subscription): Address {
    const isGrace = old !== undefined && old.until > this.#options.clock.now();
    return { url, subscriptionId: id, secrets: isGrace ? [secret, old.secret] : [secret] };
  }

  #scheduleSweep(): void {
    this.#cancelSweep = this.#options.clock.after(SWEEP_MS, () => {
      this.#track(this.#sweep().finally(() => this.#scheduleSweep()));
    });
  }

  async #sweep(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const { store, access, clock, log } = this.#options;
    try {
      for (const live of [...this.#live.values()]) {
        const { subscription } = live;
        const { scope } = EVENT_TYPES.get(subscription.name)!;
        const isExpired = subscription.expiresAt !== null && subscription.expiresAt <= clock.now();
        if (isExpired) await this.#end(live, 'expired: it was not refreshed');
        else {
          const ended = await access.endOf(store.principal(subscription.principal), scope).catch(() => undefined);
          if (ended !== undefined) await this.#end(live, ended, ACCESS_ENDED);
        }
      }
      await this.#savePositions();
      if (this.#sweeps++ % SWEEPS_PER_PRUNING === 0) await store.prune();
    } catch (err) {
      log.warn({ err }, 'the subscriptions could not be checked');
    }
  }

  async #savePositions(): Promise<void> {
    const ahead = [...this.#live.values()].filter(({ isAhead }) => isAhead);
    await Promise.all(
      ahead.map(async (live) => {
        live.isAhead = false;
        await this.#options.store.progress(live.subscription);
      }),
    );
  }
}

/** The request for an event or a gap. A repetition has the same id. */
function messageOf(subscriptionId: string, event: StoredEvent, cursor: string, principal: Principal): Message {
  if (isGap(event)) {
    const digest = createHash('sha256').update(`${subscriptionId} ${event.eventId}`).digest('hex').slice(0, 24);
    return { id: `msg_gap_${digest}`, body: JSON.stringify({ type: 'gap', cursor }) };
  }
  const { eventId, name, at } = event;
  const body = encodeJson({
    eventId,
    name,
    timestamp: formatInstant(at),
    data: new RawJson(dataFor(event, principal)),
    cursor,
  });
  return { id: eventId, body };
}
