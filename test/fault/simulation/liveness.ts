/**
 * Which processes live, and what each has claimed: the part of a store that the model of the port does not have.
 *
 * Replicas of a fleet prove that they run; one that does not for two seconds is given up, and its claims are ended. A
 * process that cannot know claims nothing. A claim whose answer was lost is ended, too. A single process has its database
 * in itself: its claims end when the next one opens the database.
 */
import type { Logger } from 'pino';
import { interruptedAttempt } from '../../../src/chronos/alarm/settlement.ts';
import { interruptedState } from '../../../src/chronos/store/difference.ts';
import type { AlarmStore, Claim, ClaimKey, Completion } from '../../../src/chronos/store/store.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { Dice } from './dice.ts';
import type { Process } from './process.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';
import type { Weather } from './weather.ts';

/** As in the store on PostgreSQL. */
const VALID_MS = 2000;
const PROOF_EVERY_MS = 500;
/** When a claim is ended whose answer was lost. */
const LOST_MS = { least: 1000, most: 4000 };

export type LivenessOptions = {
  timeline: Timeline;
  weather: Weather;
  trace: Trace;
  dice: Dice;
  log: Logger;
  durable: () => AlarmStore;
  /** One process owns the database. */
  single: boolean;
  databaseNow: () => number;
  /** Occurrences became due. */
  onDue: (dueAt: number) => void;
  /** A defect: no process is given up, or proofs do not arrive. */
  defect: 'gives-up-nobody' | 'proves-nothing' | undefined;
};

const nameOf = ({ owner, fireId, fence }: ClaimKey) => `${owner} ${fireId} ${fence}`;

export class Liveness {
  readonly options: LivenessOptions;
  readonly #members: Member[] = [];

  constructor(options: LivenessOptions) {
    this.options = options;
    if (!options.single) this.#tick();
  }

  enrol(process: Process, replica: number): Member {
    const member = new Member(this, process, replica);
    this.#members.push(member);
    return member;
  }

  /** Ends claims: their attempts are unknown. */
  async end(claims: readonly Claim[]): Promise<void> {
    const { timeline, durable, databaseNow, log, trace, onDue } = this.options;
    const at = Math.floor(databaseNow());
    const completions = claims.map(({ occurrence }): Completion => {
      const { owner, alarmId, fireId, fence } = occurrence;
      return {
        key: { owner, alarmId, fireId, fence },
        attempt: interruptedAttempt(occurrence, at),
        settle: (state) => interruptedState(state, fireId, at, { log }),
      };
    });
    if (completions.length === 0) return;
    const results = await timeline.during(durable().complete(completions));
    trace.note('store', 'ends claims', results.join(' '));
    onDue(at);
  }

  #tick(): void {
    for (const member of this.#members) member.tick();
    this.options.timeline.after(PROOF_EVERY_MS, () => this.#tick());
  }
}

/** One process, as the others see it. */
export class Member {
  readonly #liveness: Liveness;
  readonly #process: Process;
  readonly #replica: number;
  readonly #claims = new Map<string, Claim>();
  #provedAt: number;
  /** Another one after it was given up. */
  #incarnation = 0;
  #isGone = false;
  #hasLeft = false;

  constructor(liveness: Liveness, process: Process, replica: number) {
    this.#liveness = liveness;
    this.#process = process;
    this.#replica = replica;
    this.#provedAt = liveness.options.timeline.now;
  }

  get #knows(): boolean {
    const { single, timeline } = this.#liveness.options;
    return single || (!this.#isGone && timeline.now < this.#provedAt + VALID_MS);
  }

  tick(): void {
    const { weather, timeline, trace, defect } = this.#liveness.options;
    const acts = !this.#process.isDead && !this.#process.isStopped && !this.#hasLeft;
    if (acts && !weather.cutsOff(this.#replica) && defect !== 'proves-nothing') {
      if (this.#isGone) this.#incarnation++;
      this.#isGone = false;
      this.#provedAt = timeline.now;
    } else if (!this.#isGone && timeline.now >= this.#provedAt + VALID_MS && defect !== 'gives-up-nobody') {
      trace.note(this.#process.name, 'is given up');
      this.#giveUp();
      // The process does not notice the defect.
      if (defect === 'proves-nothing') this.#provedAt = timeline.now;
    }
  }

  /** It ends in order. */
  leave(): void {
    this.#hasLeft = true;
    if (!this.#liveness.options.single) this.#giveUp();
  }

  /** @throws ReveilleError while it cannot know whether it was given up */
  beginClaim(): { incarnation: number; until: number } {
    if (!this.#knows) throw new ReveilleError('unavailable', 'this replica could not prove in time that it runs');
    const until = this.#liveness.options.single ? Number.POSITIVE_INFINITY : this.#provedAt + VALID_MS;
    return { incarnation: this.#incarnation, until };
  }

  /** The database has carried out a claim of it. */
  claimed(incarnation: number, claims: readonly Claim[]): void {
    for (const claim of claims) this.#claims.set(nameOf(claim.occurrence), claim);
    if (this.#isGone || incarnation !== this.#incarnation) this.lost(claims);
  }

  ended(keys: readonly ClaimKey[]): void {
    for (const key of keys) this.#claims.delete(nameOf(key));
  }

  /** The process will not get these claims. */
  lost(claims: readonly Claim[]): void {
    const { timeline, dice } = this.#liveness.options;
    if (claims.length > 0) timeline.after(dice.between(LOST_MS.least, LOST_MS.most), () => this.#end(claims));
  }

  /** Gives the process its claims, as soon as it knows that they are its own, or none. */
  handOut(incarnation: number, claims: readonly Claim[], give: (claims: readonly Claim[]) => void): void {
    if (incarnation !== this.#incarnation || this.#isGone || claims.length === 0 || this.#hasLeft)
      give(this.#liveness.options.single && !this.#hasLeft ? claims : []);
    else if (this.#knows) give(claims);
    else
      this.#liveness.options.timeline.after(PROOF_EVERY_MS, () =>
        this.#process.deliver(() => this.handOut(incarnation, claims, give)),
      );
  }

  #giveUp(): void {
    this.#isGone = true;
    this.#end([...this.#claims.values()]);
  }

  #end(claims: readonly Claim[]): void {
    const open = claims.filter(({ occurrence }) => this.#claims.delete(nameOf(occurrence)));
    void this.#liveness.end(open);
  }
}
