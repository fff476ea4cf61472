/**
 * One chronosd of the simulation: the real dispatcher, the real routes and the real comparison of clocks, wired as the
 * daemon wires them. Store, router and network are simulated. It can be killed, stopped, drained and restarted.
 */
import { Hono } from 'hono';
import { Dispatcher } from '../../../src/chronos/dispatch/dispatcher.ts';
import { alarmListRoutes } from '../../../src/chronos/http/alarm-list-routes.ts';
import { alarmRoutes } from '../../../src/chronos/http/alarm-routes.ts';
import { fireRoutes } from '../../../src/chronos/http/fire-routes.ts';
import { openEventually } from '../../../src/chronos/store/eventual-store.ts';
import { DatabaseClock } from '../../../src/chronos/store/postgres/database-clock.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { type Clock, wait } from '../../../src/kit/clock/clock.ts';
import { type HttpApp, type HttpEnv, sendError } from '../../../src/kit/http/handlers.ts';
import { PRINCIPAL_HEADER } from '../../../src/wire/agent.ts';
import { toReveilleError } from '../../../src/wire/errors.ts';
import { Machine, Process } from './process.ts';
import type { ReplicaPlan } from './scenario.ts';
import { linkStore } from './store-link.ts';
import { createSimulatedWaker } from './waker.ts';
import { PRINCIPAL_SECRET, type World } from './world.ts';

export type ApiRequest = { method: string; path: string; principal: string; body?: string | undefined };
export type ApiAnswer = { status: number; text: string };

/** Time limits of the router for one wake, and of a drain for running work (as in the daemon). */
const WAKE_TIMEOUT_MS = 60_000;
const DRAIN_MS = 10_000;
/** Pause before another attempt to end the claims of an earlier process (as in the daemon). */
const ORPHANS_RETRY_MS = 500;
/** Polling interval of a draining process for the end of its requests. */
const REQUESTS_MS = 100;
/** A drained process is observed for this long before it ends: it must not act any more. */
const OBSERVED_AFTER_DRAIN_MS = 5_000;

/** One process of a replica. */
type ProcessRun = {
  process: Process;
  /** Set once the store is open. */
  served?: { app: HttpApp; dispatcher: Dispatcher; store: AlarmStore; closeClock: () => Promise<void> };
  draining: boolean;
  /** Aborts the running requests if the process dies. */
  requests: Set<() => void>;
};

const EMPTY = Buffer.alloc(0);

export class Replica {
  readonly #world: World;
  readonly #index: number;
  readonly plan: ReplicaPlan;
  readonly machine: Machine;
  #life: ProcessRun | undefined;
  #lives = 0;

  constructor(world: World, index: number, plan: ReplicaPlan) {
    const { timeline, scenario } = world;
    this.#world = world;
    this.#index = index;
    this.plan = plan;
    this.machine = new Machine(timeline, { start: scenario.start, skewMs: plan.skewMs, drift: plan.drift });
  }

  /** Whether there is a process, including a stopped or draining one. */
  get isUp(): boolean {
    return this.#life !== undefined && !this.#life.process.isDead;
  }

  get isStopped(): boolean {
    return this.#life?.process.isStopped ?? false;
  }

  get isDraining(): boolean {
    return this.isUp && this.#life!.draining;
  }

  start(): void {
    if (this.isUp) return;
    this.#lives++;
    const { timeline, dice, trace } = this.#world;
    const name = `chronosd-${this.#index}.${this.#lives}`;
    const process = new Process(name, this.machine, timeline, dice.fork(name));
    const life: ProcessRun = { process, draining: false, requests: new Set() };
    this.#life = life;
    trace.note(name, 'starts');
    this.#open(life).catch((error: Error) => this.#world.watch.violation(`${name} could not start: ${error.message}`));
  }

  /** kill -9. */
  crash(): void {
    const life = this.#life;
    if (!life || life.process.isDead) return;
    this.#world.trace.note(life.process.name, 'is killed');
    this.#end(life);
  }

  /** SIGSTOP. */
  stop(): void {
    this.#life?.process.stop();
    this.#world.trace.note(this.#life?.process.name ?? '', 'is stopped');
  }

  /** SIGCONT. */
  resume(): void {
    this.#life?.process.resume();
    this.#world.trace.note(this.#life?.process.name ?? '', 'continues');
  }

  /** SIGTERM. */
  drain(): void {
    const life = this.#life;
    if (!life || life.process.isDead || life.draining) return;
    this.#world.trace.note(life.process.name, 'drains');
    life.draining = true;
    life.process.deliver(() => void this.#drain(life));
  }

  /** Another replica reports that an occurrence is due. */
  hint(dueAt: number): void {
    const life = this.#life;
    if (this.plan.dispatch) life?.process.deliver(() => life.served?.dispatcher.notifyDue(dueAt));
  }

  /**
   * A request arrives.
   *
   * @param answered gets the answer, or nothing when the connection breaks off without one
   */
  request(request: ApiRequest, answered: (answer: ApiAnswer | undefined) => void): void {
    const life = this.#life;
    if (!life || life.process.isDead) {
      answered(undefined);
      return;
    }
    let open = true;
    const settle = (answer: ApiAnswer | undefined) => {
      if (!open) return;
      open = false;
      life.requests.delete(lost);
      answered(answer);
    };
    const lost = () => settle(undefined);
    life.requests.add(lost);
    life.process.deliver(async () => {
      const answer = await this.#serve(life, request);
      if (!life.process.isDead) settle(answer);
    });
  }

  async #serve({ served, draining }: ProcessRun, { method, path, principal, body }: ApiRequest): Promise<ApiAnswer> {
    if (!served || draining) return { status: 503, text: '' };
    const headers: Record<string, string> = { [PRINCIPAL_HEADER]: principal };
    const response = await served.app.fetch(new Request(`http://chronosd${path}`, { method, headers }), {
      // Replaces the server's reading of the body, and the request that a proof is recorded for; both need a socket.
      incoming: {},
      readBody: () => Promise.resolve(body === undefined ? EMPTY : Buffer.from(body)),
    } as unknown as HttpEnv['Bindings']);
    // Reading a stream takes turns of the event loop.
    return { status: response.status, text: await this.#world.timeline.during(response.text()) };
  }

  async #open(life: ProcessRun): Promise<void> {
    const { process } = life;
    const { scenario, log, weather, dice, timeline, router, watch, mutant, databaseNow } = this.#world;
    const link = linkStore({
      process,
      replica: this.#index,
      member: this.#world.liveness.enrol(process, this.#index),
      durable: () => this.#world.durable.store,
      inside: scenario.mode === 'single',
      now: () => databaseClock?.now() ?? process.clock.now(),
      latestDatabaseNow: this.#world.latestDatabaseNow,
      timeline,
      weather,
      trace: this.#world.trace,
      watch,
      dice: dice.fork(`${process.name} store`),
    });
    const databaseClock =
      scenario.mode === 'fleet'
        ? new DatabaseClock({ query: () => link.ask(() => [[databaseNow()]]) }, process.clock, log)
        : undefined;
    const { store: eventual, opened } = await openEventually(
      async () => {
        await databaseClock?.start();
        return link.store;
      },
      { clock: process.clock, log },
    );
    const bare = mutant?.store?.(eventual) ?? eventual;
    const clock: Clock = {
      now: () => bare.now(),
      monotonic: () => process.clock.monotonic(),
      after: (delayMs, callback) => process.clock.after(delayMs, callback),
    };
    const began = timeline.now;
    const honest = createSimulatedWaker({
      process,
      router,
      timeline,
      weather,
      dice: dice.fork(`${process.name} wakes`),
      timeoutMs: WAKE_TIMEOUT_MS,
      lossy: !scenario.calm,
      onBegin: (claim) => watch.begun(process, claim, Math.max(0, this.plan.drift) * (timeline.now - began)),
      onEnd: (claim, result) => watch.ended(process, claim, result, clock.now()),
    });
    const dispatcher = new Dispatcher({
      store: bare,
      waker: mutant?.waker?.(honest) ?? honest,
      clock,
      log,
      config: scenario.config,
      random: dice.fork(`${process.name} retries`).next,
    });
    life.served = {
      app: this.#routes(bare, clock, dispatcher),
      dispatcher,
      store: bare,
      closeClock: async () => databaseClock?.stop(),
    };
    void opened.then(() => {
      this.#world.trace.note(process.name, 'is ready');
      if (this.plan.dispatch && !life.draining) void this.#dispatch(life, bare, clock, dispatcher);
    });
  }

  /** Begins as the daemon does. */
  async #dispatch(life: ProcessRun, store: AlarmStore, clock: Clock, dispatcher: Dispatcher): Promise<void> {
    while (!life.draining) {
      const hasEnded = await store.endOrphanedClaims(store.now()).then(
        () => true,
        () => false,
      );
      if (hasEnded) return dispatcher.start();
      await wait(clock, ORPHANS_RETRY_MS);
    }
  }

  #routes(store: AlarmStore, clock: Clock, dispatcher: Dispatcher): HttpApp {
    const { scenario, watch, trace } = this.#world;
    const app: HttpApp = new Hono<HttpEnv>();
    app.onError((thrown, c) => {
      const error = toReveilleError(thrown);
      if (error.code === 'internal') {
        watch.violation(`${c.req.method} ${c.req.path} failed: ${thrown.message}`);
        trace.aside(thrown.stack ?? '');
      }
      return sendError(c, error);
    });
    const service = {
      store,
      clock,
      limits: scenario.limits,
      auth: {
        transportToken: undefined,
        adminToken: undefined,
        wakeToken: undefined,
        principalSecret: PRINCIPAL_SECRET,
        principalTtlSeconds: 300,
        enrollment: 'tofu',
      },
      onDue: (dueAt: number) => {
        dispatcher.notifyDue(dueAt);
        this.#world.spreadHint(this, dueAt);
      },
      alarmIds: this.#world.alarmIds,
    } as const;
    alarmRoutes(app, service);
    alarmListRoutes(app, service);
    fireRoutes(app, service);
    return app;
  }

  /** Closes like the daemon: stops claiming, finishes running work, then closes the store. */
  async #drain(life: ProcessRun): Promise<void> {
    const { process, served } = life;
    if (!served) return this.#end(life);
    const { watch, timeline } = this.#world;
    const began = timeline.now;
    await served.dispatcher.drain(DRAIN_MS);
    while (life.requests.size > 0) await wait(process.clock, REQUESTS_MS);
    await served.store.close();
    await served.closeClock();
    await wait(process.clock, OBSERVED_AFTER_DRAIN_MS);
    this.#world.trace.note(process.name, 'has drained', (timeline.now - began).toFixed(0));
    if (served.dispatcher.inFlight > 0) watch.violation(`${process.name} has drained and still delivers`);
    this.#end(life);
  }

  #end(life: ProcessRun): void {
    life.process.kill();
    this.#world.watch.died(life.process);
    for (const lost of [...life.requests]) lost();
  }
}
