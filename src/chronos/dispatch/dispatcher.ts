/**
 * The dispatcher: sleeps until an occurrence is due, claims as many as it can deliver at once, delivers them
 * concurrently, and passes the outcomes to the store. The store is the authority about pending occurrences. The state
 * of the dispatcher is only hints, and losing them loses nothing.
 */

import { type Clock, wait } from '../../kit/clock/clock.ts';
import { WakeSignal } from '../../kit/clock/wake-signal.ts';
import type { Logger } from '../../kit/log/log.ts';
import { beginTrace, failSpan, messagingFacts, type Span, type SpanFacts } from '../../kit/trace/trace.ts';
import type { AbsenceReason } from '../../wire/alarm.ts';
import { type Cause, storedCause } from '../../wire/cause.ts';
import { type AlarmEvent, BATCH_MAX_BYTES } from '../../wire/conditions.ts';
import type { Looker } from '../../wire/look.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Alarm, Attempt, Occurrence, Transition } from '../alarm/alarm.ts';
import { causeOf, inheritedCause, runRefusal } from '../alarm/cause.ts';
import { type FireEnd, followersOf } from '../alarm/chain.ts';
import { checkedBy, isChecked, skipText } from '../alarm/checks.ts';
import { eventStateOf, eventsOfFire, isEventFire, isLook, settleLook, withFixedEvents } from '../alarm/events.ts';
import type { Calendars } from '../alarm/holidays.ts';
import { optionsOf } from '../alarm/options.ts';
import {
  type AlarmTurns,
  inDelivery,
  mayHaveTurn,
  regardsTurns,
  releaseWaiting,
  TURNS_READ,
  turnsOf,
  verdictOf,
} from '../alarm/policies.ts';
import {
  deliveryEffect,
  endsAfterNotice,
  type Failure,
  INTERRUPTED,
  isGivenUp,
  LONGEST_DELAY_MS,
  retryDelayMs,
  settleDeferred,
  settleDelivered,
  settleFailed,
  settleMissed,
  settlePostponed,
  settleReplaced,
  settleSkipped,
} from '../alarm/settlement.ts';
import type { AlarmStore, Claim, ClaimKey, StoreLimits } from '../store/store.ts';
import { notifyFollowers } from './chains.ts';
import { CompletionBuffer } from './completions.ts';
import { InFlight, type InFlightBounds } from './in-flight.ts';
import { takeLook } from './looks.ts';
import type { Deferral, Skip, WakeOutcome, WakeResult, Waker } from './waker.ts';

/** Shorter lateness needs no reason. */
const UNEXPLAINED_LATENESS_MS = 1000;

export type DispatcherConfig = InFlightBounds & {
  /** Reads the store at least this often, independent of timers: wall clocks jump and laptops sleep. */
  tickMs: number;
  /**
   * Whether all store calls in one turn of the event loop share a transaction. Waiting outcomes are then written with
   * each claim at no extra cost.
   */
  sharedCommits?: boolean;
};

/** The dispatcher's report to observers: one finished attempt, as the ledger has it. */
export type FireReport = Claim & { readonly attempt: Attempt };

export type DispatcherOptions = {
  store: AlarmStore;
  waker: Waker;
  /** Looks at sources that cannot report by themselves; without it, these looks fail. */
  looker?: Looker | undefined;
  /** What events of these looks may take up at present; by default, they are not limited. */
  eventLimits?: () => Promise<StoreLimits>;
  clock: Clock;
  log: Logger;
  config: DispatcherConfig;
  /** The calendars for the `holidays` of series; by default, none. */
  calendars?: Calendars;
  /** Uniform in [0, 1); spreads retries. */
  random: () => number;
  /** Why an occurrence due at that instant (epoch milliseconds) is late, where that is known. */
  lateBecause?: (dueAt: number) => AbsenceReason | undefined;
  onFire?: (report: FireReport) => void;
  /** Called for every wake that the router deferred. */
  onDeferred?: () => void;
};

/** Delay before the next read of the store after a failed one. */
const STORE_RETRY_MS = 250;
/** Delay before the next claim when something was due but could not be claimed. It doubles up to a tick. */
const CONTENTION_MS = 3;
/** Shortest and longest deferral, whatever the router requests: a wrong clock of the router must not lose an alarm. */
const SHORTEST_DEFERRAL_MS = 1000;
const LONGEST_DEFERRAL_MS = 48 * 3_600_000;
/** Interval between two requests to the router while it defers a wake: no event reports that a budget was raised. */
const DEFERRED_RETRY_MS = 15 * 60_000;
/** How long an outcome waits for others; longer when the next claim writes it. */
const BATCH_DELAY_MS = 5;
const BATCH_DELAY_FOR_CLAIM_MS = 10;
/** Concurrent batches of outcomes to a store that needs a round trip for each. */
const CONCURRENT_BATCHES = 2;
/** Pages of the ledger in which running turns are searched behind skipped occurrences, and their size. */
const LEDGER_PAGES = 20;
const LEDGER_PAGE = 500;
/** How long a look takes up a slot, although it may take longer. */
const LOOK_SLOT_MS = 500;
/** Longest time to store the outcomes of deliveries that a drain has aborted. */
const STORE_AFTER_DRAIN_MS = 1000;

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #inFlight: InFlight;
  readonly #completions: CompletionBuffer;
  readonly #wakeSignal: WakeSignal;
  #stopping = false;
  /** Consecutive claims that found nothing although something was due. */
  #emptyClaims = 0;
  /** The last claim used all free slots, so more is probably due. */
  #backlog = false;
  #loop: Promise<void> | undefined;

  constructor(options: DispatcherOptions) {
    const { store, clock, log, config } = options;
    this.#options = options;
    this.#inFlight = new InFlight(config);
    this.#wakeSignal = new WakeSignal(clock);
    this.#completions = new CompletionBuffer(store, clock, log, {
      batchDelayMs: config.sharedCommits ? BATCH_DELAY_FOR_CLAIM_MS : BATCH_DELAY_MS,
      concurrentBatches: config.sharedCommits ? 1 : CONCURRENT_BATCHES,
      onFlushed: () => this.#wakeSignal.notify(),
    });
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Something is due at this instant, which may be before the end of the current sleep. */
  notifyDue(dueAt: number): void {
    this.#wakeSignal.notifyBy(dueAt);
  }

  /** Running deliveries. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /**
   * Stops claiming, lets running deliveries finish and stores the outcomes. Deliveries that have not finished by the
   * limit are aborted: their outcome is recorded as unknown.
   *
   * @param limitMs how long running deliveries may still take. An outcome that cannot be stored soon after is lost with
   *   this process; in either case the wake is repeated under the same fire id
   */
  async drain(limitMs: number): Promise<void> {
    this.#stopping = true;
    this.#wakeSignal.notify();
    const settled = Promise.resolve(this.#loop).then(() => this.#inFlight.settled());
    await this.#atMost(limitMs, settled);
    await Promise.all([this.#options.waker.close(), this.#options.looker?.close()]);
    await this.#atMost(STORE_AFTER_DRAIN_MS, settled);
    this.#completions.stop();
  }

  /** Waits for a promise, but no longer than the limit. */
  async #atMost(limitMs: number, promise: Promise<void>): Promise<void> {
    const over = new AbortController();
    await Promise.race([promise, wait(this.#options.clock, limitMs, over.signal)]);
    over.abort();
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      try {
        await this.#round();
      } catch (error) {
        this.#options.log.error({ err: error }, 'the store could not be read; retrying');
        await this.#wakeSignal.sleepUntil(this.#options.clock.now() + STORE_RETRY_MS);
      }
    }
  }

  async #round(): Promise<void> {
    const { store, clock, config } = this.#options;
    if (this.#inFlight.freeSlots === 0 || (this.#backlog && !this.#inFlight.canRefill)) {
      this.#backlog = false;
      return this.#inFlight.whenRefillable(clock);
    }
    // A signal that arrives during the call to the store is not lost: the sleep below returns at once.
    this.#wakeSignal.reset();
    const next = await store.nextDueAt(this.#inFlight.saturatedOwners());
    const now = clock.now();
    if (next === undefined || next > now) {
      this.#emptyClaims = 0;
      return this.#wakeSignal.sleepUntil(Math.min(next ?? Number.POSITIVE_INFINITY, now + config.tickMs));
    }
    if (await this.#claim()) {
      this.#emptyClaims = 0;
      return;
    }
    // Due, but nothing was claimed: another replica was faster.
    const pauseMs = Math.min(CONTENTION_MS * 2 ** this.#emptyClaims, config.tickMs);
    this.#emptyClaims++;
    await this.#wakeSignal.sleepUntil(clock.now() + pauseMs);
  }

  /** Claims for the free slots and starts the deliveries; returns whether there were any. */
  async #claim(): Promise<boolean> {
    const { store, clock, config } = this.#options;
    if (this.#stopping) return false;
    const limit = this.#inFlight.freeSlots;
    if (config.sharedCommits) this.#completions.flush();
    const claims = await store.claim({
      now: clock.now(),
      limit,
      perOwner: config.userConcurrency,
      inFlight: this.#inFlight.perOwner(),
    });
    this.#backlog = claims.length === limit;
    for (const claim of claims) this.#begin(claim);
    return claims.length > 0;
  }

  #begin(claim: Claim): void {
    const { owner, id: alarmId } = claim.alarm;
    const { fireId, fence } = claim.occurrence;
    const key: ClaimKey = { owner, alarmId, fireId, fence };
    const attempt = this.#attempt(claim, key).catch((error: unknown) => {
      // Only a defect gets here.
      this.#options.log.error({ err: error, fire_id: fireId }, 'an attempt failed with an unexpected error');
      return this.#endUnknown(claim, key);
    });
    this.#inFlight.track(attempt);
  }

  /** Ends an attempt that a defect interrupted: a claim ends only with its outcome. It is retried like a failed one. */
  async #endUnknown(claim: Claim, key: ClaimKey): Promise<void> {
    const { clock, log, random, calendars } = this.#options;
    const startedAt = claim.occurrence.claimedAt!;
    const at = Math.max(clock.now(), startedAt);
    const draw = random();
    const retryAt = (failure: number) => at + retryDelayMs(failure, { random: draw });
    if (isLook(claim.alarm, claim.occurrence))
      return this.#complete(key, null, (state) => settlePostponed(state, key.fireId, at + LONGEST_DELAY_MS));
    const error = 'the outcome could not be recorded because of a defect; the wake may or may not have arrived';
    const times = { startedAt, finishedAt: at, outcome: 'unknown' as const };
    const record = attemptRecord(claim, { ...times, httpStatus: null, error, machineReadyMs: null, lateBecause: null });
    try {
      await this.#complete(key, record, (state) =>
        settleFailed(state, key.fireId, { error, at, final: false, retryAt }, calendars),
      );
    } catch (defect) {
      log.error({ err: defect, fire_id: key.fireId }, 'a failed attempt could not be settled; it is only postponed');
      await this.#complete(key, null, (state) => settlePostponed(state, key.fireId, at + LONGEST_DELAY_MS));
    }
  }

  /** Processes one claim. Resolves when the outcome is durable. */
  async #attempt(claim: Claim, key: ClaimKey): Promise<void> {
    const { clock, calendars } = this.#options;
    const { alarm, occurrence } = claim;
    // The occurrence was due when it was claimed, even if the clock has gone back since.
    const now = Math.max(clock.now(), occurrence.claimedAt ?? 0);
    if (endsAfterNotice(occurrence)) return this.#giveUp(claim, key, now);
    if (isLook(alarm, occurrence)) return this.#look(claim, key, now);

    let turns: AlarmTurns | undefined;
    if (regardsTurns(alarm, occurrence)) {
      turns = await this.#turns(key, { now, claimedAt: occurrence.claimedAt ?? now });
      if (!turns) return;
    }
    const verdict = verdictOf(alarm, occurrence, now, { turns, calendars });
    switch (verdict.action) {
      case 'replace':
        return this.#complete(key, null, (state) => settleReplaced(state, key.fireId, verdict.by));
      case 'miss': {
        const { error } = verdict;
        const missed = this.#notDelivered(claim, now, 'missed', error);
        return this.#ending(claim, key, missed, (state) => settleMissed(state, key.fireId, error, now, calendars));
      }
      case 'skip': {
        const skipped = this.#notDelivered(claim, now, 'skipped', verdict.error);
        return this.#complete(key, skipped, (state) => settleSkipped(state, key.fireId, now, calendars));
      }
      case 'wait':
        return this.#awaitTurn(key, verdict, now);
      case 'deliver':
        return this.#deliver(claim, key, now);
    }
  }

  /** Looks at the alarm's source. It is not a wake, so the ledger has no entry. */
  async #look(claim: Claim, key: ClaimKey, now: number): Promise<void> {
    const { store, clock, log, looker, eventLimits = async () => ({}) } = this.#options;
    const sink = { store, clock, onDue: (dueAt: number) => this.notifyDue(dueAt) };
    const enter = this.#inFlight.enter(key.owner);
    let leave = () => {
      leave = () => {};
      if (enter()) this.#wakeSignal.notify();
    };
    // A source that hangs must not keep the wakes of its owner waiting.
    const cancel = clock.after(LOOK_SLOT_MS, () => leave());
    const end = await takeLook({ ...sink, log, looker, limits: eventLimits }, claim, now);
    cancel();
    leave();
    await this.#complete(key, null, (state) => settleLook(state, key.fireId, end));
  }

  /** An earlier process was the last try; the alarms that follow this one have yet to learn that. */
  #giveUp(claim: Claim, key: ClaimKey, at: number): Promise<void> {
    const { calendars } = this.#options;
    const times = { startedAt: at, finishedAt: at, outcome: 'failed' as const };
    const outcome = { ...times, httpStatus: null, error: INTERRUPTED, machineReadyMs: null, lateBecause: null };
    return this.#ending(claim, key, attemptRecord(claim, outcome), (state) =>
      settleFailed(state, key.fireId, { error: INTERRUPTED, at, final: true, retryAt: () => at }, calendars),
    );
  }

  /** The ledger's entry of an occurrence that a policy kept from being delivered. */
  #notDelivered(claim: Claim, at: number, outcome: 'missed' | 'skipped', error: string): Attempt {
    const lateBecause = this.#lateBecause(claim.occurrence, at) ?? null;
    const times = { startedAt: at, finishedAt: at, outcome };
    return attemptRecord(claim, { ...times, httpStatus: null, error, machineReadyMs: null, lateBecause });
  }

  /** The latest attempts that may have begun turns, latest first. */
  async #attemptsWithTurns(owner: string, alarmId: string): Promise<Attempt[]> {
    const { store } = this.#options;
    let limit = TURNS_READ;
    let page = await store.attempts(owner, alarmId, { limit });
    const found = page.filter(mayHaveTurn);
    for (let pages = 0; pages < LEDGER_PAGES && page.length === limit && found.length < TURNS_READ; pages++) {
      limit = LEDGER_PAGE;
      page = await store.attempts(owner, alarmId, { limit, before: page.at(-1)! });
      found.push(...page.filter(mayHaveTurn));
    }
    return found.slice(0, TURNS_READ);
  }

  /** @param at.claimedAt of this claim; `Infinity` when it has ended */
  async #readTurns(key: ClaimKey, { now, claimedAt }: { now: number; claimedAt: number }): Promise<AlarmTurns> {
    const { store } = this.#options;
    const { owner, alarmId, fireId } = key;
    // Before the ledger: what is delivered in between is in one of them.
    const state = await store.get(owner, alarmId);
    const others = inDelivery(state?.occurrences ?? [], { fireId, claimedAt });
    const attempts = await this.#attemptsWithTurns(owner, alarmId);
    const fireIds = [...new Set(attempts.map((attempt) => attempt.fireId))];
    const reports = fireIds.length > 0 ? await store.turnReportsOf(owner, alarmId, fireIds) : [];
    return turnsOf(attempts, reports, { fireId, now, others });
  }

  /** The turns of the alarm's earlier fires. Where they cannot be read, the occurrence is postponed. */
  async #turns(key: ClaimKey, at: { now: number; claimedAt: number }): Promise<AlarmTurns | undefined> {
    try {
      return await this.#readTurns(key, at);
    } catch (error) {
      return this.#postponed(key, at.now, 'the turns of earlier fires could not be read', error);
    }
  }

  /** What a wake needs could not be read: the occurrence is tried again soon. */
  async #postponed(key: ClaimKey, now: number, reason: string, error: unknown): Promise<undefined> {
    this.#options.log.warn({ err: error, fire_id: key.fireId }, `${reason}; the wake is postponed`);
    const until = now + SHORTEST_DEFERRAL_MS;
    await this.#complete(key, null, (state) => settleDeferred(state, key.fireId, { until, dueAt: until, reason }));
  }

  /** The events of a wake, as many as fit into it: each try carries the same. */
  async #readEvents({ alarm, occurrence }: Claim): Promise<AlarmEvent[]> {
    const { store } = this.#options;
    const { owner, id } = alarm;
    if (!isEventFire(alarm, occurrence)) return [];
    const fix = async (to?: number) =>
      (await store.update(owner, id, (state) => withFixedEvents(state, occurrence.fireId, to)))?.alarm ?? alarm;
    // Events may have been added to the occurrence while it was being claimed.
    const { from, to } = eventsOfFire(eventsOfFire(alarm).isFixed ? alarm : await fix());
    const events = await store.eventsOf(owner, id, { from, to, maxBytes: BATCH_MAX_BYTES });
    // A wake has one cause, which decides whether a command may run.
    const other = events.findIndex(({ cause }) => cause !== events[0]!.cause);
    const carried = other === -1 ? events : events.slice(0, other);
    const last = from + carried.length - 1;
    if (last < to) await fix(last);
    return carried;
  }

  /**
   * Ends an occurrence that is not delivered. The alarms that follow it learn that first, so that a killed process
   * repeats it, and then the ones that began to follow it meanwhile.
   */
  async #ending(claim: Claim, key: ClaimKey, attempt: Attempt, settle: Transition): Promise<void> {
    const { store, clock, log } = this.#options;
    const sink = { store, clock, onDue: (dueAt: number) => this.notifyDue(dueAt) };
    const outcome = attempt.outcome === 'missed' ? 'missed' : 'failed';
    const cause = inheritedCause(claim.alarm, attempt.cause);
    const end: FireEnd = { fireId: key.fireId, outcome, at: attempt.finishedAt, error: attempt.error, cause };
    const notify = (notified: readonly string[]) =>
      notifyFollowers(sink, key, end, notified).catch((error: unknown) => {
        log.warn({ err: error, fire_id: key.fireId }, 'alarms that follow this one could not be notified');
        return notified;
      });
    const notified = followersOf(claim.alarm).length > 0 ? await notify([]) : [];
    let hasFollowers = false;
    await this.#complete(key, attempt, (state) => {
      hasFollowers = followersOf(state.alarm).length > 0;
      return settle(state);
    });
    if (hasFollowers) await notify(notified);
  }

  /** The occurrence waits for the end of a turn, whose report makes it due again, on any replica. */
  async #awaitTurn(key: ClaimKey, { until }: { until: number }, now: number): Promise<void> {
    const { store, clock, log } = this.#options;
    const dueAt = Math.min(until, now + DEFERRED_RETRY_MS);
    await this.#complete(key, null, (state) => settleDeferred(state, key.fireId, { until, dueAt, reason: null }));
    try {
      // The report may have arrived before the occurrence waited.
      const at = clock.now();
      if ((await this.#readTurns(key, { now: at, claimedAt: Number.POSITIVE_INFINITY })).running) return;
      await store.update(key.owner, key.alarmId, (state) => releaseWaiting(state, at));
      this.notifyDue(at);
    } catch (error) {
      log.warn({ err: error, fire_id: key.fireId }, 'a waiting wake could not be checked again; it is tried later');
    }
  }

  async #deliver(claim: Claim, key: ClaimKey, startedAt: number): Promise<void> {
    const { clock, waker, random, onFire, log, calendars } = this.#options;
    const { alarm, occurrence } = claim;
    const late = this.#lateBecause(occurrence, startedAt);
    let events: AlarmEvent[] | undefined;
    // A trigger by its owner has none.
    if (alarm.kind === 'event' && (occurrence.source === 'schedule' || isEventFire(alarm, occurrence))) {
      try {
        events = await this.#readEvents(claim);
      } catch (error) {
        return this.#postponed(key, startedAt, 'its events could not be read', error);
      }
    }
    const cause = causeOf(alarm, occurrence, events);
    const refusal = runRefusal(alarm, cause, isChecked(alarm, occurrence));
    if (refusal !== undefined) return this.#refuse(claim, key, { reason: refusal, at: startedAt, cause });
    const leave = this.#inFlight.enter(alarm.owner);
    let result: WakeOutcome;
    try {
      result = await beginTrace(
        'send alarms',
        () => sending(claim),
        (span) => {
          const sent = waker.wake(claim, late, events);
          return span ? sent.then((outcome) => described(span, claim, outcome, startedAt)) : sent;
        },
      );
    } finally {
      // The slot is free as soon as the answer arrives; the outcome becomes durable during the next delivery.
      if (leave()) this.#wakeSignal.notify();
    }
    const finishedAt = clock.now();
    if (result.outcome === 'held') return this.#defer(key, result, finishedAt);
    if (result.outcome === 'skipped') return this.#skip(claim, key, result, { startedAt, finishedAt, late, cause });
    const error = result.outcome === 'delivered' ? null : result.error;
    const record = attemptRecord(claim, {
      startedAt,
      finishedAt,
      outcome: result.outcome,
      httpStatus: result.httpStatus,
      error,
      machineReadyMs: readyWithin(result, finishedAt - startedAt),
      lateBecause: late ?? null,
      cause,
    });
    if (result.outcome === 'delivered') {
      const checked = checkedBy(alarm, occurrence, result.verdict);
      const settle: Transition = (state) => settleDelivered(state, key.fireId, startedAt, calendars, checked);
      const effect = deliveryEffect(alarm, occurrence, startedAt, calendars);
      const stored = effect
        ? this.#completions.add({ key, attempt: record, settle, direct: { claim, effect } })
        : this.#complete(key, record, settle);
      // The next event of the alarm waits for this outcome, so the outcome does not wait for others.
      if (alarm.kind === 'event') this.#completions.flush();
      await stored;
    } else {
      log.warn(
        { fire_id: key.fireId, attempt: occurrence.attempt, outcome: result.outcome, error },
        'a wake was not accepted',
      );
      const draw = random();
      const retryAfterSeconds = result.outcome === 'failed' ? result.retryAfterSeconds : undefined;
      const failure: Failure = {
        error: result.error,
        at: finishedAt,
        final: result.outcome === 'failed' && result.final,
        retryAt: (number) => finishedAt + retryDelayMs(number, { random: draw, retryAfterSeconds }),
      };
      const settle: Transition = (state) => settleFailed(state, key.fireId, failure, calendars);
      if (isGivenUp(alarm, occurrence, failure.final)) await this.#ending(claim, key, record, settle);
      else await this.#complete(key, record, settle);
    }
    onFire?.({ ...claim, attempt: record });
  }

  /** The alarm's check said no. */
  async #skip(
    claim: Claim,
    key: ClaimKey,
    { httpStatus, verdict }: Skip,
    {
      late,
      cause,
      ...times
    }: { startedAt: number; finishedAt: number; late: AbsenceReason | undefined; cause: Cause | undefined },
  ): Promise<void> {
    const { finishedAt } = times;
    const skipped = { ...times, outcome: 'skipped' as const, machineReadyMs: null, lateBecause: late ?? null };
    const record = attemptRecord(claim, { ...skipped, httpStatus, error: skipText(verdict), cause });
    const checked = checkedBy(claim.alarm, claim.occurrence, verdict);
    const { calendars } = this.#options;
    await this.#complete(key, record, (state) => settleSkipped(state, key.fireId, finishedAt, calendars, checked));
  }

  /** What caused the fire may not cause what the machine would run for it. */
  async #refuse(
    claim: Claim,
    key: ClaimKey,
    { reason, at, cause }: { reason: string; at: number; cause: Cause | undefined },
  ): Promise<void> {
    const { log, calendars, onFire } = this.#options;
    log.warn({ fire_id: key.fireId, reason }, 'a fire was refused because of its cause');
    const record = { ...this.#notDelivered(claim, at, 'skipped', reason), cause: cause ? storedCause(cause) : null };
    await this.#complete(key, record, (state) => {
      const after = settleSkipped(state, key.fireId, at, calendars);
      return { ...after, alarm: { ...after.alarm, lastError: reason } };
    });
    onFire?.({ ...claim, attempt: record });
  }

  /** Short lateness gets no reason. */
  #lateBecause({ scheduledFor }: Occurrence, startedAt: number): AbsenceReason | undefined {
    return startedAt - scheduledFor < UNEXPLAINED_LATENESS_MS ? undefined : this.#options.lateBecause?.(scheduledFor);
  }

  /** The router defers the wake. It was not attempted, so the ledger has no entry. */
  async #defer(key: ClaimKey, { until: requestedUntil, reason }: Deferral, now: number): Promise<void> {
    const until = Math.min(Math.max(requestedUntil, now + SHORTEST_DEFERRAL_MS), now + LONGEST_DEFERRAL_MS);
    this.#options.log.info({ fire_id: key.fireId, until: formatInstant(until), reason }, 'a wake is deferred');
    const dueAt = Math.min(until, now + DEFERRED_RETRY_MS);
    await this.#complete(key, null, (state) => settleDeferred(state, key.fireId, { until, dueAt, reason }));
    this.#options.onDeferred?.();
  }

  /** Stores an outcome. The events that the occurrence has carried are no longer needed then. */
  async #complete(key: ClaimKey, attempt: Attempt | null, settle: Transition): Promise<void> {
    let carried = 0;
    const result = await this.#completions.add({
      ...{ key, attempt },
      settle(state) {
        const after = settle(state);
        carried = carriedBetween(state.alarm, after.alarm);
        return after;
      },
    });
    if (carried === 0 || result === 'lost_claim') return;
    await this.#options.store.dropEvents(key.owner, key.alarmId, carried).catch((error: unknown) => {
      // They are dropped with the next ones.
      this.#options.log.warn({ err: error, fire_id: key.fireId }, 'events that were delivered could not be deleted');
    });
  }
}

/** A fire begins a trace, which links to the request that created its alarm: days may be between them. */
const sending = ({ alarm, occurrence }: Claim): SpanFacts => ({
  kind: 'producer',
  links: [optionsOf(alarm).traceparent],
  attributes: messagingFacts('send', {
    'messaging.message.id': occurrence.fireId,
    'reveille.alarm.id': alarm.id,
    'reveille.alarm.kind': alarm.kind,
    'reveille.attempt': occurrence.attempt,
  }),
});

function described(span: Span, { occurrence }: Claim, result: WakeOutcome, startedAt: number): WakeOutcome {
  const status = result.outcome === 'held' ? 429 : result.httpStatus;
  span.setAttributes({
    'reveille.outcome': result.outcome,
    'reveille.lateness_ms': Math.max(0, startedAt - occurrence.scheduledFor),
    ...(status !== null && { 'http.response.status_code': status }),
  });
  if (result.outcome === 'failed' || result.outcome === 'unknown') failSpan(span, result.outcome);
  return result;
}

/** The last event that no longer waits after a change; 0 when all wait that waited before. */
function carriedBetween(before: Alarm, after: Alarm): number {
  if (after.kind !== 'event') return 0;
  const { next } = eventStateOf(after);
  return next > eventStateOf(before).next ? next - 1 : 0;
}

type Outcome = Pick<
  Attempt,
  'startedAt' | 'finishedAt' | 'outcome' | 'httpStatus' | 'error' | 'machineReadyMs' | 'lateBecause'
> & { readonly cause?: Cause | undefined };

/** When the machine was ready. Limited to the time of its answer, because the clocks of two computers differ. */
function readyWithin(result: WakeResult, tookMs: number): number | null {
  const readyMs = 'machineReadyMs' in result ? result.machineReadyMs : undefined;
  return readyMs === undefined ? null : Math.min(readyMs, Math.max(0, tookMs));
}

function attemptRecord({ alarm, occurrence }: Claim, { cause, ...outcome }: Outcome): Attempt {
  const causedBy = cause ?? causeOf(alarm, occurrence);
  return {
    fireId: occurrence.fireId,
    alarmId: alarm.id,
    owner: alarm.owner,
    scheduledFor: occurrence.scheduledFor,
    attempt: occurrence.attempt,
    missedCount: occurrence.missedCount,
    ...outcome,
    cause: causedBy ? storedCause(causedBy) : null,
  };
}
