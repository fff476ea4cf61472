/**
 * Delivers events to the callbacks of subscriptions, in order and at least once. A failed delivery is retried with
 * exponential backoff. If a callback fails for too long, its subscription is terminated with the reason.
 */
import { createHash, randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { backoff, withJitter } from '../../kit/clock/backoff.ts';
import { type CancelTimer, type Clock, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { FairQueue, type Places } from '../../kit/queue/fair-queue.ts';
import { encodeJson, RawJson } from '../../wire/json.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Access } from './access.ts';
import type { Address, Callbacks, Failure, Message } from './callbacks.ts';
import { dataFor, EVENT_TYPES, selects } from './event-types.ts';
import { ACCESS_ENDED, callbackEnded } from './protocol.ts';
import { type EventStore, isGap, namesOf, type Page, type StoredEvent, type Subscription } from './store.ts';

/** Concurrent deliveries: a slow host, or a user with slow callbacks, cannot block the others. */
const PLACES: Places = { inAll: 64, ofHost: 8, ofUser: 16 };
/** Events that are examined, and delivered, before other subscriptions have their turn. */
const PAGE = 200;
const DELIVERIES_PER_TURN = 20;
/** Subscriptions that are checked, or written, before other work goes on. */
const CHUNK = 500;
const SWEEP_MS = 30_000;
/** Old rows are removed in every twentieth sweep. */
const SWEEPS_PER_PRUNING = 20;
/** Pause after a failed delivery, by the number of failures. */
const pauseMs = backoff({ first: 1000, longest: 300_000 });
const LONGEST_PAUSE_MS = 300_000;
/** After this many refusals of one event, the event is skipped. */
const MOST_REFUSALS = 8;
const TERMINATION_ATTEMPTS = 3;
/** The name of a gap before the oldest stored event. */
const REMOVED = 'gap:removed';

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
  readonly clientId: string;
  isRunning: boolean;
  /** A turn is due: it waits in the queue, or an event came during the current turn. */
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
  readonly #queue = new FairQueue<Live>(PLACES);
  readonly #closing = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
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
    this.#queue.remove(live);
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

  /**
   * Delivers new events of a user. A subscription that selects none of them, and has delivered all earlier ones, only
   * moves on.
   */
  notify(userId: string, added: readonly StoredEvent[]): void {
    for (const live of this.#ofUser.get(userId) ?? []) {
      const { cancelRetry, isRunning, isWanted } = live;
      if (cancelRetry !== undefined) continue;
      if (added.some((event) => concerns(live, event))) this.#wake(live);
      else if (!isRunning && !isWanted) advance(live, added.at(-1)!.seq);
    }
  }

  async close(): Promise<void> {
    this.#cancelSweep();
    for (const { cancelRetry } of this.#live.values()) cancelRetry?.();
    this.#closing.abort(new Error('the router is shutting down'));
    await Promise.allSettled(this.#underWay);
    await this.#savePositions();
  }

  #add(subscription: Subscription): Live {
    const { userId, clientId } = this.#options.store.principal(subscription.principal);
    const { host } = new URL(subscription.url);
    const live: Live = {
      ...{ subscription, userId, clientId, host, isRunning: false, isWanted: false, refusals: 0, isAhead: false },
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
    this.#queue.add(live);
    this.#fill();
  }

  #fill(): void {
    for (let live = this.#queue.next(); live; live = this.#queue.next()) {
      const next = live;
      next.isRunning = true;
      this.#track(this.#run(next).finally(() => this.#leave(next)));
    }
  }

  #leave(live: Live): void {
    live.isRunning = false;
    this.#queue.done(live);
    // A new subscription may have the id of this one, which then is not run again and again.
    const isCurrent = this.#live.get(live.subscription.id) === live && live.cancelRetry === undefined;
    if (live.isWanted && isCurrent && !this.#closing.signal.aborted) this.#queue.add(live);
    else live.isWanted = false;
    if (!this.#closing.signal.aborted) this.#fill();
  }

  #track(work: Promise<unknown>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work)).catch(() => {});
  }

  async #run(live: Live): Promise<void> {
    const { log } = this.#options;
    const { id } = live.subscription;
    try {
      // Many subscriptions may begin at once.
      await nextTurn();
      if (this.#closing.signal.aborted || this.#live.get(id) !== live) return;
      live.isWanted = false;
      if (await this.#deliverPage(live)) live.isWanted = true;
    } catch (err) {
      log.warn({ id, err }, 'events could not be delivered');
      this.#retryAfter(live, pauseMs(1));
    }
  }

  /** Delivers the next events. @returns whether others may follow at once */
  async #deliverPage(live: Live): Promise<boolean> {
    const { store, access, clock } = this.#options;
    const { subscription, userId } = live;
    const principal = store.principal(subscription.principal);
    const { scope } = EVENT_TYPES.get(subscription.name)!;
    if (subscription.expiresAt !== null && subscription.expiresAt <= clock.now()) {
      await this.#end(live, 'expired: it was not refreshed');
      return false;
    }
    const { events, end } = this.#pageOf(live);
    let deliveries = 0;
    for (const event of events) {
      if (this.#closing.signal.aborted || this.#live.get(subscription.id) !== live) return false;
      if (!concerns(live, event)) continue;
      if (deliveries++ >= DELIVERIES_PER_TURN) return true;
      const ended = await access.endOf(principal, scope);
      if (ended !== undefined) {
        await this.#end(live, ended, ACCESS_ENDED);
        return false;
      }
      const data = isGap(event) ? '{}' : store.dataOf(userId, event.seq);
      // It was deleted: the next page begins with a gap.
      if (data === undefined) return true;
      if (!(await this.#deliver(live, event, data))) return false;
    }
    advance(live, end);
    return end < store.head(userId);
  }

  /** The next events. If undelivered events were removed, a gap comes first. */
  #pageOf({ subscription, userId }: Live): Page {
    const { store } = this.#options;
    const floor = store.floor(userId);
    const { name, position } = subscription;
    if (position >= floor) return store.page(userId, position, name, PAGE);
    const gap = { seq: floor, eventId: `floor:${floor}`, name: REMOVED, at: 0, facts: {} };
    return { events: [gap], end: floor };
  }

  /** @returns whether the event was acknowledged or abandoned */
  async #deliver(live: Live, event: StoredEvent, data: string): Promise<boolean> {
    const { store, callbacks, clock, log } = this.#options;
    const { subscription } = live;
    const principal = store.principal(subscription.principal);
    const message = messageOf(
      subscription.id,
      event,
      dataFor({ data, facts: event.facts }, principal),
      store.cursorAt(event.seq),
    );
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
      for (const [n, live] of [...this.#live.values()].entries()) {
        if (n % CHUNK === CHUNK - 1) await nextTurn();
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
    for (let from = 0; from < ahead.length; from += CHUNK)
      await Promise.all(
        ahead.slice(from, from + CHUNK).map(async (live) => {
          live.isAhead = false;
          await this.#options.store.progress(live.subscription);
        }),
      );
  }
}

/** Whether a subscription selects an event, or its source has a gap. */
function concerns({ subscription, clientId }: Live, event: StoredEvent): boolean {
  if (event.name === subscription.name) return selects(subscription.arguments, event.facts, clientId);
  return isGap(event) && (event.name === REMOVED || namesOf(subscription.name).includes(event.name));
}

/** Nothing up to this position is left to deliver. */
function advance(live: Live, position: number): void {
  if (position <= live.subscription.position) return;
  live.subscription.position = position;
  live.isAhead = true;
}

/** The request for an event or a gap. A repetition has the same id. */
function messageOf(subscriptionId: string, event: StoredEvent, data: string, cursor: string): Message {
  if (isGap(event)) {
    const digest = createHash('sha256').update(`${subscriptionId} ${event.eventId}`).digest('hex').slice(0, 24);
    return { id: `msg_gap_${digest}`, body: JSON.stringify({ type: 'gap', cursor }) };
  }
  const { eventId, name, at } = event;
  const body = encodeJson({ eventId, name, timestamp: formatInstant(at), data: new RawJson(data), cursor });
  return { id: eventId, body };
}
