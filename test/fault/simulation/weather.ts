/** The current faults, shared by all parts of a world, and the counts of past faults. */
import type { Dice } from './dice.ts';
import type { StoreFaults } from './scenario.ts';

/** The result of one store operation. */
export type Fate = {
  /** `late`: carried out `lateMs` after its caller got an error. */
  kind: 'answered' | 'refused' | 'lost' | 'late' | 'hung';
  /** Request and answer. */
  thereMs: number;
  backMs: number;
  lateMs: number;
};

/** Waiting time without an answer before the caller gives up: a statement's time limit plus overhead. */
const PATIENCE_MS = { least: 5_000, most: 15_000 };
/** The server continues a statement for at most this time after its caller has gone. */
const LATE_MS = 5_000;

export type Outage = { kind: 'refused' | 'hung' | 'lost'; replicas: ReadonlySet<number> };

export class Weather {
  readonly #dice: Dice;
  #faults: StoreFaults;
  #lostRequests: number;
  #outage: Outage | undefined;
  /** Number of faults of each kind. */
  readonly counts = new Map<string, number>();

  /** @param lostRequests the share of lost requests of clients, and of lost answers to them */
  constructor(dice: Dice, faults: StoreFaults, lostRequests: number) {
    this.#dice = dice;
    this.#faults = faults;
    this.#lostRequests = lostRequests;
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** From now on some replicas cannot reach the store. */
  begin(outage: Outage): void {
    this.#outage = outage;
  }

  end(): void {
    this.#outage = undefined;
  }

  /** Whether a replica cannot reach the store now. */
  cutsOff(replica: number): boolean {
    return this.#outage?.replicas.has(replica) ?? false;
  }

  /** No store operation fails any more. */
  clear(): void {
    this.#outage = undefined;
    this.#faults = { refused: 0, lost: 0, late: 0, hung: 0, slow: 0 };
    this.#lostRequests = 0;
  }

  /** Whether a client's next request, or the answer to it, is lost. */
  losesRequest(): boolean {
    const loses = this.#dice.chance(this.#lostRequests);
    if (loses) this.count('request or answer lost');
    return loses;
  }

  /** Network delay, one way. */
  tripMs(): number {
    return this.#dice.magnitude(0.05, this.#dice.chance(this.#lostRequests) ? 2_000 : 5);
  }

  /** The result of a replica's next operation. */
  fate(replica: number): Fate {
    const dice = this.#dice;
    const fate: Fate = { kind: 'answered', thereMs: 0, backMs: 0, lateMs: 0 };
    const outage = this.#outage?.replicas.has(replica) ? this.#outage.kind : undefined;
    fate.kind = outage ?? this.#throw();
    if (fate.kind !== 'answered') this.count(`store ${fate.kind}`);
    const slow = dice.chance(this.#faults.slow);
    if (slow) this.count('store slow');
    const trip = () => (slow ? dice.magnitude(20, 4_000) : dice.magnitude(0.05, 3));
    // In half of all cases one of the directions takes no time, which saves an event.
    if (slow || dice.chance(0.5)) fate.thereMs = trip();
    fate.backMs = trip();
    if (fate.kind === 'hung') fate.backMs = dice.between(PATIENCE_MS.least, PATIENCE_MS.most);
    if (fate.kind === 'late') fate.lateMs = dice.between(0, LATE_MS);
    return fate;
  }

  #throw(): Fate['kind'] {
    const { refused, lost, late, hung } = this.#faults;
    let left = this.#dice.next();
    for (const [kind, share] of Object.entries({ refused, lost, late, hung })) {
      left -= share;
      if (left < 0) return kind as Fate['kind'];
    }
    return 'answered';
  }
}
