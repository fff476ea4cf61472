/** The parts of one simulated world, made from a seed. `simulate.ts` runs it. */

import { type Logger, pino } from 'pino';
import { v7 } from 'uuid';
import type { ClientLine, ReceiverLine } from '../checker/history.ts';
import { type ClientRecorder, recordClient, recordReceiver } from '../checker/journal.ts';
import { Client } from './client.ts';
import { Dice } from './dice.ts';
import { type Durable, openDurable } from './durable.ts';
import { Liveness } from './liveness.ts';
import type { Mutant } from './mutant.ts';
import { Replica } from './replica.ts';
import { Router } from './router.ts';
import type { Scenario } from './scenario.ts';
import { Timeline } from './timeline.ts';
import { Trace } from './trace.ts';
import { Watch } from './watch.ts';
import { Weather } from './weather.ts';

export const PRINCIPAL_SECRET = 'the secret of a simulated house';

/**
 * A process may be stopped between reading the clock and acting on it, or wait for a store that does not answer in
 * time.
 */
const READ_TO_ACT_MS = 150_000;

export type WorldOptions = {
  scenario: Scenario;
  mutant?: Mutant | undefined;
  /** Gets the trace, line by line. */
  onLine?: ((line: string) => void) | undefined;
};

/** The log's message when the store is unavailable. Any other error is a defect. */
const FORESEEN = /could not be read; retrying|could not be stored; retrying/;

export class World {
  readonly scenario: Scenario;
  readonly mutant: Mutant | undefined;
  readonly timeline = new Timeline();
  readonly dice: Dice;
  readonly trace: Trace;
  readonly watch: Watch;
  readonly weather: Weather;
  readonly log: Logger;
  readonly router: Router;
  readonly replicas: readonly Replica[];
  readonly clients: readonly Client[];
  readonly clientLines: ClientLine[] = [];
  readonly receiverLines: ReceiverLine[] = [];
  readonly recorder: ClientRecorder;
  readonly durable: Durable;
  readonly liveness: Liveness;
  #alarms = 0;
  readonly #idDice: Dice;

  static async open(options: WorldOptions): Promise<World> {
    // The database exists before the world.
    let world: World | undefined;
    const log = pino({ level: 'error', base: null, timestamp: false }, { write: (line) => world?.logged(line) });
    const { engine, owners, start } = options.scenario;
    // SQLite uses the clock only when its schema is created.
    const clock = { now: () => start, monotonic: () => 0, after: () => () => {} };
    const durable = await openDurable({ engine, owners, now: () => world?.databaseNow() ?? start, clock, log });
    world = new World(options, durable, log);
    return world;
  }

  private constructor({ scenario, mutant, onLine }: WorldOptions, durable: Durable, log: Logger) {
    const { timeline } = this;
    this.scenario = scenario;
    this.mutant = mutant;
    this.durable = mutant?.durable ? mutated(durable, mutant.durable) : durable;
    this.log = log;
    this.dice = new Dice(scenario.seed);
    this.#idDice = this.dice.fork('ids');
    this.trace = new Trace(() => timeline.now, onLine);
    this.watch = new Watch({ scenario, timeline, trace: this.trace, databaseNow: () => this.databaseNow() });
    this.weather = new Weather(this.dice.fork('weather'), scenario.store, scenario.lostRequests);
    this.recorder = recordClient((line) => this.clientLines.push(line));
    this.liveness = new Liveness({
      ...{ timeline, log, weather: this.weather, trace: this.trace },
      dice: this.dice.fork('liveness'),
      // Defects of the store are about what processes do.
      durable: () => durable.store,
      single: scenario.mode === 'single',
      databaseNow: this.databaseNow,
      onDue: (dueAt) => {
        for (const replica of this.replicas) replica.hint(dueAt);
      },
      defect: mutant?.liveness,
    });
    this.router = new Router({
      timeline,
      weather: this.weather,
      trace: this.trace,
      dice: this.dice.fork('router'),
      recorder: recordReceiver((line) => this.receiverLines.push(line)),
      now: () => this.outsideNow(),
      dedupes: mutant?.forgetful !== true,
    });
    this.replicas = scenario.replicas.map((plan, index) => new Replica(this, index, plan));
    this.clients = scenario.owners.map((owner) => new Client(this, owner));
  }

  /** The database's clock, epoch ms with fractions. A single chronosd uses its machine's wall clock. */
  readonly databaseNow = (): number =>
    this.scenario.mode === 'single' ? this.replicas[0]!.machine.wall() : this.outsideNow();

  /**
   * The latest reading of the database's clock since the earliest moment at which a currently acting process can have
   * read it.
   */
  readonly latestDatabaseNow = (): number =>
    this.scenario.mode === 'single' ? this.replicas[0]!.machine.latestWall(READ_TO_ACT_MS) : this.outsideNow();

  /** The clock of all other parts: it never jumps. */
  outsideNow(): number {
    return this.scenario.start + this.timeline.now;
  }

  /** UUIDv7 from the seed; they sort by creation, in all processes. */
  readonly alarmIds = (now: number): string => {
    const random = Uint8Array.from({ length: 16 }, () => this.#idDice.whole(0, 255));
    return v7({ msecs: now, seq: this.#alarms++, random });
  };

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.timeline.after(ms, resolve));
  }

  /** One replica's notification of a due occurrence, which may reach the others. */
  spreadHint(from: Replica, dueAt: number): void {
    if (!this.scenario.hints) return;
    for (const replica of this.replicas) {
      if (replica === from || this.weather.losesRequest()) continue;
      this.timeline.after(this.weather.tripMs(), () => replica.hint(dueAt));
    }
  }

  /** chronosd logged an error. */
  logged(line: string): void {
    const { msg, err } = JSON.parse(line) as { msg: string; err?: { message: string; stack: string } };
    if (FORESEEN.test(msg)) return;
    this.watch.violation(`chronosd logged "${msg}": ${err?.message ?? ''}`);
    this.trace.aside(err?.stack ?? '');
  }
}

/** A database that a mutant has broken. */
function mutated(durable: Durable, mutate: NonNullable<Mutant['durable']>): Durable {
  let store = mutate(durable.store);
  return {
    get store() {
      return store;
    },
    async reopen() {
      await durable.reopen();
      store = mutate(durable.store);
    },
    audit: () => durable.audit(),
    close: () => durable.close(),
  };
}
