/**
 * Checks that need more than a history: the true order of events across clocks, the claim behind a delivery, and the
 * waiting times.
 */
import type { AlarmState } from '../../../src/chronos/alarm/alarm.ts';
import type { WakeResult } from '../../../src/chronos/dispatch/waker.ts';
import type { Claim } from '../../../src/chronos/store/store.ts';
import { Ladder } from './ladder.ts';
import type { Process } from './process.ts';
import type { Scenario } from './scenario.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';

/** Promise 5: after a crash or a partition heals, every overdue occurrence is claimed within this time. */
export const OVERDUE_LIMIT_MS = 20_000;
/** Where only agents fail, a user with a healthy machine waits no longer than this. */
const NEIGHBOUR_LIMIT_MS = 2_000;

type Delivery = { process: Process; owner: string; alarmId: string; fireId: string };
type Cancel = { at: number; inFlight: boolean };

export type WatchOptions = {
  scenario: Scenario;
  timeline: Timeline;
  trace: Trace;
  /** The database's clock, epoch ms with fractions. */
  databaseNow: () => number;
};

export class Watch {
  readonly violations: string[] = [];
  /** Called when a process gets a claim, and when it begins a delivery. */
  onClaim: ((process: Process) => void) | undefined;
  onBegin: ((process: Process) => void) | undefined;
  readonly #options: WatchOptions;
  /** By fire id and fence: the database's times of the claim's request and of its result. */
  readonly #claims = new Map<string, { askedAt: number; at: number }>();
  readonly #begun = new Set<string>();
  readonly #underWay = new Set<Delivery>();
  readonly #cancels = new Map<string, Cancel>();
  /** Owners whose machine was not healthy all the time. */
  readonly #unwell = new Set<string>();
  readonly #excused = new Set<string>();
  readonly #anew = new Set<string>();
  readonly #delivered = new Set<string>();
  readonly #ladder = new Ladder();
  /** Number of rare events that should occur in some worlds. */
  readonly rareEvents = new Map<string, number>();
  deliveries = 0;
  /** The largest lateness of a delivery's start. */
  latestMs = 0;
  /** The largest error of a process's estimate of the database's time. */
  clockErrorMs = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  violation(sentence: string): void {
    this.violations.push(sentence);
    this.#options.trace.note('watch', 'VIOLATION', sentence);
  }

  countEvent(what: string): void {
    this.rareEvents.set(what, (this.rareEvents.get(what) ?? 0) + 1);
  }

  unwell(owner: string): void {
    this.#unwell.add(owner);
  }

  /**
   * The owner acts on an alarm: its pending occurrence may be in the past from the beginning.
   *
   * @param anew its schedule may restart, and repeat times after the clock was set back
   */
  excuse(alarmId: string, anew: boolean): void {
    this.#excused.add(alarmId);
    if (anew) this.#anew.add(alarmId);
  }

  /** @param askedAt the latest reading of the database's clock at the claim's request, or a moment before */
  claimed(process: Process, { occurrence: { alarmId, fireId, fence } }: Claim, askedAt: number): void {
    const name = `${fireId}#${fence}`;
    if (this.#claims.has(name) && !this.#anew.has(alarmId))
      this.violation(`${fireId} was claimed twice under fence ${fence}`);
    this.#claims.set(name, { askedAt, at: this.#options.timeline.now });
    this.onClaim?.(process);
  }

  /** A client got the acknowledgement of a cancel. */
  cancelled(alarmId: string, inFlight: boolean): void {
    if (inFlight) this.countEvent('cancel that met a delivery');
    if (!this.#cancels.has(alarmId)) this.#cancels.set(alarmId, { at: this.#options.timeline.now, inFlight });
  }

  /** @param shown a process's estimate of the database's time */
  clockShown(shown: number): void {
    this.clockErrorMs = Math.max(this.clockErrorMs, Math.abs(this.#options.databaseNow() - shown));
  }

  /** @param toleranceMs how far the process's clock may have run ahead of the database's since their comparison */
  begun(process: Process, { alarm, occurrence }: Claim, toleranceMs: number): void {
    const { owner, id: alarmId } = alarm;
    const { fireId, fence } = occurrence;
    this.deliveries++;
    const name = `${fireId}#${fence}`;
    if (this.#begun.has(name) && !this.#anew.has(alarmId))
      this.violation(`${fireId} was begun twice under fence ${fence}`);
    this.#begun.add(name);
    const claim = this.#claims.get(name);
    // The wall clock of a single machine may have been set back since the claim.
    const now = Math.max(this.#options.databaseNow(), claim?.askedAt ?? 0) + toleranceMs;
    // After a punctual start it may be tried again, also where the clock was set back to before its due time.
    const due = Math.max(occurrence.dueAt ?? 0, occurrence.attempt === 1 ? occurrence.scheduledFor : 0);
    if (now < due) this.violation(`${fireId} was begun ${due - now} ms early`);
    const cancel = this.#cancels.get(alarmId);
    if (cancel && (!cancel.inFlight || (claim !== undefined && claim.at > cancel.at)))
      this.violation(
        `${fireId} was begun ${this.#options.timeline.now - cancel.at} ms after its cancel was acknowledged`,
      );
    const haste = this.#excused.has(alarmId) ? undefined : this.#ladder.judge(occurrence);
    if (haste) this.violation(haste);
    this.#checkBounds(process, owner, fireId);
    this.#checkNeighbours(claim, occurrence, owner);
    if (this.#delivered.has(fireId)) this.violation(`${fireId} was begun again after it had been delivered`);
    this.#underWay.add({ process, owner, alarmId, fireId });
    this.onBegin?.(process);
  }

  /** @param finishedAt by the process's clock */
  ended(process: Process, claim: Claim, result: WakeResult, finishedAt: number): void {
    const { occurrence } = claim;
    this.#ladder.failed(claim, result, finishedAt);
    // No fault can prevent the storage of this outcome.
    if (this.#options.scenario.calm && result.outcome === 'delivered') this.#delivered.add(occurrence.fireId);
    for (const delivery of this.#underWay)
      if (delivery.process === process && delivery.fireId === occurrence.fireId) this.#underWay.delete(delivery);
  }

  /** A process died; none of its work is running any more. */
  died(process: Process): void {
    for (const delivery of this.#underWay) if (delivery.process === process) this.#underWay.delete(delivery);
  }

  /** Invariants of the stored data at every moment. */
  checkStates(states: readonly AlarmState[]): void {
    for (const { alarm, occurrences } of states) {
      const owed = occurrences.find(({ source }) => source === 'schedule');
      if (alarm.status === 'active' && (!owed || owed.dueAt === null))
        this.violation(`${alarm.id} is active, and its schedule has no pending occurrence`);
      if (alarm.status === 'paused' && owed && owed.dueAt !== null)
        this.violation(`${alarm.id} is paused, and ${owed.fireId} is still pending`);
      for (const { fireId, dueAt } of alarm.status === 'cancelled' ? occurrences : [])
        if (dueAt !== null) this.violation(`${alarm.id} is cancelled, and ${fireId} is still pending`);
    }
  }

  #checkBounds(process: Process, owner: string, fireId: string): void {
    const { concurrency, userConcurrency } = this.#options.scenario.config;
    const mine = [...this.#underWay].filter((delivery) => delivery.process === process);
    if (mine.length >= concurrency) this.violation(`${process.name} delivers more than ${concurrency} at once`);
    if (mine.filter((delivery) => delivery.owner === owner).length >= userConcurrency)
      this.violation(`${process.name} delivers more than ${userConcurrency} to ${owner} at once`);
    if (!this.#options.scenario.calm) return;
    const other = [...this.#underWay].find((delivery) => delivery.fireId === fireId);
    if (other)
      this.violation(
        `${fireId} was begun by ${process.name} while ${other.process.name}, which is running, delivers it`,
      );
  }

  /** Where only agents fail, users with a healthy machine are served without delay. */
  #checkNeighbours(
    claim: { askedAt: number } | undefined,
    { alarmId, dueAt, attempt }: Claim['occurrence'],
    owner: string,
  ): void {
    const { calm, config, owners } = this.#options.scenario;
    if (attempt > 1 || !claim || dueAt === null) return;
    const lateMs = this.#options.databaseNow() - dueAt;
    this.latestMs = Math.max(this.latestMs, lateMs);
    const freeSlots = config.concurrency > owners.length * config.userConcurrency;
    if (!calm || !freeSlots || this.#unwell.has(owner) || this.#excused.has(alarmId) || lateMs <= NEIGHBOUR_LIMIT_MS)
      return;
    this.violation(`${owner}, whose machine is healthy, waited ${Math.round(lateMs)} ms for a delivery`);
  }
}
