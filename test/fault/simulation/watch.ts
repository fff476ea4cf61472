/**
 * The simulation's own eye on what a history cannot show: the true order of events across clocks, which claim a
 * delivery rests on, and how long anybody waits.
 */
import type { AlarmState } from '../../../src/chronos/alarm/alarm.ts';
import type { WakeResult } from '../../../src/chronos/dispatch/waker.ts';
import type { Claim } from '../../../src/chronos/store/store.ts';
import { Ladder } from './ladder.ts';
import type { Process } from './process.ts';
import type { Scenario } from './scenario.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';

/** Promise 5: after a crash or a partition heals, everything overdue is on its way within this time. */
export const OVERDUE_LIMIT_MS = 20_000;
/** Where nothing but agents misbehaves, a user whose machine is well waits no longer than this. */
const NEIGHBOUR_LIMIT_MS = 2_000;

type Delivery = { process: Process; owner: string; alarmId: string; fireId: string };
type Cancel = { at: number; inFlight: boolean };

export type WatchOptions = {
  scenario: Scenario;
  timeline: Timeline;
  trace: Trace;
  /** The database's clock, epoch ms, not cut to whole ones. */
  databaseNow: () => number;
};

export class Watch {
  readonly violations: string[] = [];
  /** Called when something has been claimed for a process, and when it begins a delivery. */
  onClaim: ((process: Process) => void) | undefined;
  onBegin: ((process: Process) => void) | undefined;
  readonly #options: WatchOptions;
  /** By fire id and fence: the database's time at which the claim was asked for, and when it was handed out. */
  readonly #claims = new Map<string, { askedAt: number; at: number }>();
  readonly #begun = new Set<string>();
  readonly #underWay = new Set<Delivery>();
  readonly #cancels = new Map<string, Cancel>();
  /** Owners whose machine has not been well all along. */
  readonly #unwell = new Set<string>();
  readonly #excused = new Set<string>();
  readonly #anew = new Set<string>();
  readonly #delivered = new Set<string>();
  readonly #ladder = new Ladder();
  /** How often something rare came about that ought to come about in some worlds. */
  readonly sights = new Map<string, number>();
  deliveries = 0;
  /** The longest that anything was begun after it was due. */
  latestMs = 0;
  /** By how much any process's idea of the database's time was off. */
  clockErrorMs = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  violation(sentence: string): void {
    this.violations.push(sentence);
    this.#options.trace.note('watch', 'VIOLATION', sentence);
  }

  saw(what: string): void {
    this.sights.set(what, (this.sights.get(what) ?? 0) + 1);
  }

  unwell(owner: string): void {
    this.#unwell.add(owner);
  }

  /**
   * The owner does something to an alarm: what it is owed may be in the past from the beginning.
   *
   * @param anew its schedule may begin anew, and come to instants again that a clock which was put back has in store
   *   once more
   */
  excuse(alarmId: string, anew: boolean): void {
    this.#excused.add(alarmId);
    if (anew) this.#anew.add(alarmId);
  }

  /** @param askedAt the latest that the database's clock showed when the claim was asked for, or a moment before */
  claimed(process: Process, { occurrence: { alarmId, fireId, fence } }: Claim, askedAt: number): void {
    const name = `${fireId}#${fence}`;
    if (this.#claims.has(name) && !this.#anew.has(alarmId))
      this.violation(`${fireId} was handed out twice under fence ${fence}`);
    this.#claims.set(name, { askedAt, at: this.#options.timeline.now });
    this.onClaim?.(process);
  }

  /** A client has been told that an alarm is cancelled. */
  cancelled(alarmId: string, inFlight: boolean): void {
    if (inFlight) this.saw('cancel that met a delivery');
    if (!this.#cancels.has(alarmId)) this.#cancels.set(alarmId, { at: this.#options.timeline.now, inFlight });
  }

  /** @param shown what a process takes for the database's time */
  clockShown(shown: number): void {
    this.clockErrorMs = Math.max(this.clockErrorMs, Math.abs(this.#options.databaseNow() - shown));
  }

  /**
   * @param toleranceMs by how much the process's clock may have run ahead of the database's since they were compared
   */
  begun(process: Process, { alarm, occurrence }: Claim, toleranceMs: number): void {
    const { owner, id: alarmId } = alarm;
    const { fireId, fence } = occurrence;
    this.deliveries++;
    const name = `${fireId}#${fence}`;
    if (this.#begun.has(name) && !this.#anew.has(alarmId))
      this.violation(`${fireId} was begun twice under fence ${fence}`);
    this.#begun.add(name);
    const claim = this.#claims.get(name);
    // The wall clock of a single machine may have been put back since the claim.
    const now = Math.max(this.#options.databaseNow(), claim?.askedAt ?? 0) + toleranceMs;
    // Once begun on time it may be tried again, also where the clock has been put back to before its instant.
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
    // Nothing can keep this outcome from being stored.
    if (this.#options.scenario.calm && result.outcome === 'delivered') this.#delivered.add(occurrence.fireId);
    for (const delivery of this.#underWay)
      if (delivery.process === process && delivery.fireId === occurrence.fireId) this.#underWay.delete(delivery);
  }

  /** A process died; nothing of it is under way any more. */
  died(process: Process): void {
    for (const delivery of this.#underWay) if (delivery.process === process) this.#underWay.delete(delivery);
  }

  /** What must hold of what is kept whenever one looks. */
  checkStates(states: readonly AlarmState[]): void {
    for (const { alarm, occurrences } of states) {
      const owed = occurrences.find(({ source }) => source === 'schedule');
      if (alarm.status === 'active' && (!owed || owed.dueAt === null))
        this.violation(`${alarm.id} is active, and its schedule owes nothing`);
      if (alarm.status === 'paused' && owed && owed.dueAt !== null)
        this.violation(`${alarm.id} is paused, and ${owed.fireId} is to be tried`);
      for (const { fireId, dueAt } of alarm.status === 'cancelled' ? occurrences : [])
        if (dueAt !== null) this.violation(`${alarm.id} is cancelled, and ${fireId} is to be tried`);
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
      this.violation(`${fireId} was begun by ${process.name} while ${other.process.name}, alive and well, delivers it`);
  }

  /** Where only agents misbehave, those whose machine is well are served as if nothing were wrong. */
  #checkNeighbours(
    claim: { askedAt: number } | undefined,
    { alarmId, dueAt, attempt }: Claim['occurrence'],
    owner: string,
  ): void {
    const { calm, config, owners } = this.#options.scenario;
    if (attempt > 1 || !claim || dueAt === null) return;
    const lateMs = this.#options.databaseNow() - dueAt;
    this.latestMs = Math.max(this.latestMs, lateMs);
    const room = config.concurrency > owners.length * config.userConcurrency;
    if (!calm || !room || this.#unwell.has(owner) || this.#excused.has(alarmId) || lateMs <= NEIGHBOUR_LIMIT_MS) return;
    this.violation(`${owner}, whose machine is well, waited ${Math.round(lateMs)} ms for a delivery`);
  }
}
