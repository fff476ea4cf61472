/**
 * The faults of a world until it is healed: processes that die, stop and drain, outages, jumping clocks, failing
 * machines.
 */

import type { Dice } from './dice.ts';
import type { Process } from './process.ts';
import type { Replica } from './replica.ts';
import { CONDITIONS, MISFORTUNES, type Misfortune } from './scenario.ts';
import type { World } from './world.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

export class Misfortunes {
  readonly #world: World;
  readonly #dice: Dice;
  #hasEnded = false;
  /** Waits for the next claim, or for the next delivery that begins: faults near them are the most critical. */
  #ambush: { at: 'claim' | 'begin'; strike: (replica: Replica) => void } | undefined;
  /** Current offset of a single machine's wall clock, and its largest offset in either direction. */
  #jumpedMs = 0;
  #furthestBackMs = 0;
  #furthestAheadMs = 0;

  constructor(world: World) {
    this.#world = world;
    this.#dice = world.dice.fork('misfortunes');
  }

  /** Largest difference between two readings of the database's clock at one moment. */
  get jumpSpanMs(): number {
    return this.#furthestAheadMs - this.#furthestBackMs;
  }

  begin(): void {
    const { watch, replicas, timeline } = this.#world;
    const spring = (at: 'claim' | 'begin', process: Process) => {
      const ambush = this.#ambush;
      const replica = replicas.find(({ machine }) => machine === process.machine);
      if (ambush?.at !== at || !replica) return;
      this.#ambush = undefined;
      // Sometimes before the claim's answer arrives, sometimes before the wake's.
      timeline.after(this.#dice.magnitude(0.01, 300), () => {
        if (!this.#hasEnded) ambush.strike(replica);
      });
    };
    watch.onClaim = (process) => spring('claim', process);
    watch.onBegin = (process) => spring('begin', process);
    for (const kind of MISFORTUNES) {
      if (Number.isFinite(this.#world.scenario.everyMs[kind])) void this.#repeat(kind);
    }
  }

  /** Ends all faults and repairs what is broken. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    const { weather, router, replicas, trace } = this.#world;
    trace.note('world', 'is healed');
    weather.clear();
    router.heal();
    for (const replica of replicas) {
      if (replica.isStopped) replica.resume();
      // Its service manager's timeout has passed.
      if (replica.isDraining) replica.crash();
      if (!replica.isUp) await this.#start(replica);
    }
  }

  async #repeat(kind: Misfortune): Promise<void> {
    const { scenario, weather } = this.#world;
    for (;;) {
      await this.#world.pause(-Math.log(1 - this.#dice.next()) * scenario.everyMs[kind]);
      if (this.#hasEnded) return;
      if (this.#schedule(kind)) weather.count(kind);
    }
  }

  /** Returns whether it had an effect. */
  #schedule(kind: Misfortune): boolean {
    switch (kind) {
      case 'crash':
        return this.#now((replica) => this.#crash(replica));
      case 'stop':
        return this.#now((replica) => this.#stop(replica, this.#dice.magnitude(1 * SECOND, 120 * SECOND)));
      case 'stall':
        return this.#now((replica) => this.#stop(replica, this.#dice.magnitude(10, 3 * SECOND)));
      case 'drain':
        return this.#drain();
      case 'outage':
        return this.#outage();
      case 'jump':
        return this.#jump();
      case 'condition':
        return this.#changeCondition();
      case 'router':
        return this.#downRouter();
    }
  }

  #one(among: (replica: Replica) => boolean): Replica | undefined {
    const candidates = this.#world.replicas.filter(among);
    return candidates.length > 0 ? this.#dice.pick(candidates) : undefined;
  }

  /** Strikes one of the replicas now, or the one that begins the next delivery. */
  #now(strike: (replica: Replica) => void): boolean {
    if (this.#dice.chance(0.5)) {
      this.#ambush = { at: this.#dice.pick(['claim', 'begin']), strike };
      return true;
    }
    const replica = this.#one(({ isUp }) => isUp);
    if (replica) strike(replica);
    return replica !== undefined;
  }

  #crash(replica: Replica): void {
    if (!replica.isUp) return;
    replica.crash();
    void this.#startLater(replica, this.#dice.magnitude(20, 40 * SECOND));
  }

  #stop(replica: Replica, forMs: number): void {
    if (!replica.isUp || replica.isStopped) return;
    replica.stop();
    this.#world.timeline.after(forMs, () => {
      if (replica.isStopped) replica.resume();
    });
  }

  #drain(): boolean {
    const replica = this.#one(({ isUp, isDraining }) => isUp && !isDraining);
    if (!replica) return false;
    replica.drain();
    void this.#startLater(replica, this.#dice.magnitude(15 * SECOND, 40 * SECOND));
    return true;
  }

  #outage(): boolean {
    const { weather, replicas, timeline, trace } = this.#world;
    const all = this.#dice.chance(0.5);
    const hit = replicas.flatMap((_, index) => (all || this.#dice.chance(0.5) ? [index] : []));
    const kind = this.#dice.pick(['refused', 'refused', 'hung', 'lost'] as const);
    weather.begin({ kind, replicas: new Set(hit) });
    trace.note('store', `outage (${kind})`, hit.join(' '));
    timeline.after(this.#dice.magnitude(200, 90 * SECOND), () => {
      weather.end();
      trace.note('store', 'outage ends');
    });
    return hit.length > 0;
  }

  /** Up to an hour, forward or back. */
  #jump(): boolean {
    const replica = this.#dice.pick(this.#world.replicas);
    const size = this.#dice.chance(0.5) ? HOUR : Math.round(this.#dice.magnitude(SECOND, HOUR));
    // One machine's clock must not drift without limit: the world would have to wait until it is back.
    const ms = this.#jumpedMs > 0 || (this.#jumpedMs === 0 && this.#dice.chance(0.5)) ? -size : size;
    replica.machine.jump(ms);
    this.#world.trace.note('clock', 'jumps', `${ms}`);
    if (this.#world.scenario.mode === 'single') {
      this.#jumpedMs += ms;
      this.#furthestBackMs = Math.min(this.#furthestBackMs, this.#jumpedMs);
      this.#furthestAheadMs = Math.max(this.#furthestAheadMs, this.#jumpedMs);
    }
    return true;
  }

  #changeCondition(): boolean {
    const { router, scenario, watch } = this.#world;
    const condition = this.#dice.weighted(scenario.conditions);
    const owner = this.#dice.pick(scenario.owners);
    router.setCondition(owner, condition);
    if (condition !== 'well') watch.unwell(owner);
    return CONDITIONS.indexOf(condition) > 0;
  }

  #downRouter(): boolean {
    const { router, timeline, trace } = this.#world;
    router.isDown = true;
    trace.note('router', 'is down');
    timeline.after(this.#dice.magnitude(200, 60 * SECOND), () => {
      router.isDown = false;
      trace.note('router', 'is up');
    });
    return true;
  }

  async #startLater(replica: Replica, delayMs: number): Promise<void> {
    await this.#world.pause(delayMs);
    if (!replica.isUp) await this.#start(replica);
  }

  /** A new process; it reopens the database if the old process owned it. */
  async #start(replica: Replica): Promise<void> {
    const { scenario, durable, timeline } = this.#world;
    if (scenario.mode === 'single') await timeline.during(durable.reopen());
    replica.start();
  }
}
