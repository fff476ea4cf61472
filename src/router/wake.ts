/** A wake: from the alarm's request to the daemon's answer (docs/reference/routes.md). */
import type { Dispatcher } from 'undici';
import { type AcceptedTurn, type DaemonAnswer, deliver } from '../agents/neo/client.ts';
import { backoff } from '../kit/clock/backoff.ts';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { inSpan } from '../kit/trace/trace.ts';
import type { CheckVerdict } from '../wire/check-verdict.ts';
import { ownerOf } from '../wire/did.ts';
import { okEnvelope, openEnvelope } from '../wire/envelope.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import { chatAcceptedSchema, type Wake } from '../wire/wake.ts';
import type { AgentHost } from './agent-host.ts';
import { WakeDeferred } from './budget/account.ts';
import type { Admission, Budgets } from './budget/budgets.ts';
import type { Checks, Decision } from './checks/checks.ts';
import type { Fleet } from './fleet.ts';
import { type DaemonMachine, hasDaemon, type Machine, wakeable } from './machines/machine.ts';
import type { Registry } from './machines/registry.ts';
import { MachineUnavailable } from './providers/provider.ts';
import type { Lease } from './supervisor.ts';
import { DaemonNews, recordedTurn, turnOfDaemon, type WokenTurn } from './woken-turn.ts';

/** How a wake ended, for observers inside the router's process. */
export type WakeNotice = Pick<Wake, 'fire_id' | 'user_id'> &
  // When the daemon accepted the wake and reported its turn.
  Partial<AcceptedTurn> & {
    /** How long starting the machine took; 0 when it ran already. */
    machineStartMs: number;
    /** When the answer arrived, epoch milliseconds. */
    acceptedAt: number;
    /** The status for the caller: the daemon's, or the router's. */
    status: number;
    /** The address of the daemon that answered; a target of provider `command` has none. */
    daemon_url?: string;
    /** Why the daemon did not answer. */
    error?: string;
  };

/**
 * `startMs` as `machineStartMs` above. Without a `daemonUrl` the answer is the router's own, for a target without a
 * daemon. `turn`: of an accepted wake.
 */
export type WakeAnswer = {
  answer: DaemonAnswer;
  startMs: number;
  daemonUrl?: string;
  turn?: WokenTurn | undefined;
  /** What the alarm's check said; with `skip`, nothing was started. */
  verdict?: CheckVerdict;
};

/** Receives the outcome of every wake, and how the turn of an accepted one can be followed. Must not throw. */
export type OnWake = (notice: WakeNotice, turn: WokenTurn | undefined) => void;

type WakesOptions = {
  registry: Registry;
  fleet: Fleet;
  /** Runs the agents without a daemon. */
  agents: AgentHost;
  /** Decides about wakes with a check, before a budget counts them. */
  checks: Pick<Checks, 'decide' | 'forget'>;
  /** Decides which wakes are admitted now. */
  budgets: Budgets;
  dispatcher: Dispatcher;
  clock: Clock;
  log: Logger;
  /** The time limit for starting, becoming ready and delivering together. */
  timeoutMs: number;
  onWake?: OnWake;
  subscribers?: Subscribers | undefined;
};

/** Programs that get due alarms in addition to the machine, or in place of one. */
export type Subscribers = {
  /**
   * Stores that an alarm is due, once per fire.
   *
   * @returns whether a program has subscribed to it, so that the alarm is delivered to a user without a machine
   * @throws ReveilleError when it could not be stored
   */
  offer(wake: Wake): Promise<boolean>;
};

/**
 * The retry time for a machine that is not ready. It grows, so that the attempts of an alarm last for about a day, as
 * with chronosd's own retries.
 */
export const retryAfter = backoff({ first: 5, longest: 15 * 60 });

/** A shorter start is not reported as a reason of lateness. */
const REPORTED_START_MS = 1000;

export class Wakes {
  readonly #options: WakesOptions;
  readonly #closing = new AbortController();
  readonly #news: DaemonNews;

  constructor(options: WakesOptions) {
    this.#options = options;
    this.#news = new DaemonNews(options.clock);
  }

  /**
   * Starts the user's machine when it sleeps, and delivers the wake to its daemon.
   *
   * A wake that certainly did not arrive is tried once more in the same time. One that may have arrived is not: only
   * the caller knows whether its target recognizes repetitions.
   *
   * @param onReady receives how long after the wake's arrival the machine was ready, whatever the result of the
   *   delivery; not called for a machine without a daemon
   * @returns the daemon's own answer, whatever its status
   * @throws ReveilleError 404, 410, 451 by the state of the machine; 429 ({@link WakeDeferred}) when the user's budget
   *   defers it; 502 when the delivery failed; 503
   *   when it is not ready; 504 when its start was cancelled
   */
  async wake(request: Wake, onReady: (afterMs: number) => void = () => {}): Promise<WakeAnswer> {
    const { clock, log, onWake } = this.#options;
    const { fire_id, toCheck } = request;
    const user_id = ownerOf(request.user_id);
    const began = clock.monotonic();
    const about = () => ({ user_id, fire_id, attempt: request.attempt, ms: Math.round(clock.monotonic() - began) });
    try {
      const ready = () => onReady(Math.round(clock.monotonic() - began));
      const decision =
        toCheck && (await this.#options.checks.decide(this.#wakeable(request, user_id), request, toCheck));
      if (decision?.verdict.verdict === 'skip') {
        log.info({ ...about(), reason: decision.verdict.reason }, 'wake skipped by its check');
        return skipped(decision.verdict);
      }
      const isStored = await this.#offer(request, user_id);
      const woken = isStored ? stored() : await this.#deliver(request, user_id, ready, decision);
      const { answer, startMs, daemonUrl } = woken;
      log.info({ ...about(), status: answer.status, machine_start_ms: startMs }, 'wake answered');
      const turn = acceptedTurn(answer);
      const notice = {
        fire_id,
        user_id,
        machineStartMs: startMs,
        acceptedAt: clock.now(),
        status: answer.status,
        ...(daemonUrl === undefined ? {} : { daemon_url: daemonUrl }),
        ...turn,
      };
      onWake?.(notice, woken.turn);
      return woken;
    } catch (thrown) {
      const error = toReveilleError(thrown);
      const { status, message } = error;
      if (error instanceof WakeDeferred) log.info({ ...about(), until: error.until, reason: message }, 'wake deferred');
      else log.warn({ ...about(), status, reason: message, err: error.cause }, 'wake failed');
      onWake?.({ fire_id, user_id, machineStartMs: 0, acceptedAt: clock.now(), status, error: message }, undefined);
      throw error;
    }
  }

  /** Ends the waits of wakes whose machine is not ready; deliveries under way continue. */
  close(): void {
    this.#closing.abort();
  }

  /** Offers a wake to subscribers. @returns whether that was its delivery, because the user has no machine */
  async #offer(request: Wake, userId: string): Promise<boolean> {
    const { registry, subscribers, log } = this.#options;
    if (!subscribers) return false;
    const machine = registry.get(userId);
    // The operator has stopped the wakes of this user.
    if (machine?.state === 'suspended') return false;
    const hasMachine = machine !== undefined && machine.state !== 'deleted';
    try {
      const isStored = await subscribers.offer(request);
      return isStored && !hasMachine && request.run === undefined;
    } catch (thrown) {
      const error = toReveilleError(thrown);
      if (!hasMachine) throw error;
      log.error(
        { err: thrown, user_id: userId, fire_id: request.fire_id },
        'a due alarm could not be stored for subscribers',
      );
      return false;
    }
  }

  /** Delivers within the time limit, which a check before it does not use up. */
  async #deliver(
    request: Wake,
    userId: string,
    ready: () => void,
    decision: Decision | undefined,
  ): Promise<WakeAnswer> {
    if (!decision?.news) return this.#withinTime(request, userId, ready);
    let mayBeAccepted = false;
    try {
      const woken = await this.#withinTime({ ...request, check: decision.news }, userId, ready);
      mayBeAccepted = woken.answer.status <= 299;
      return { ...woken, verdict: decision.verdict };
    } catch (thrown) {
      mayBeAccepted = toReveilleError(thrown).status === 502;
      throw thrown;
    } finally {
      if (!mayBeAccepted) this.#options.checks.forget({ userId }, request);
    }
  }

  async #withinTime(request: Wake, userId: string, ready: () => void): Promise<WakeAnswer> {
    const { clock, timeoutMs } = this.#options;
    const deadline = new AbortController();
    const cancel = clock.after(timeoutMs, () => deadline.abort(new Error(`no answer within ${timeoutMs} ms`)));
    try {
      return await this.#attempt(request, userId, ready, deadline.signal);
    } finally {
      cancel();
    }
  }

  async #attempt(request: Wake, userId: string, ready: () => void, deadline: AbortSignal): Promise<WakeAnswer> {
    // Read before a supervisor is created, so that unknown users leave no state.
    const found = this.#wakeable(request, userId);
    const admission = await this.#options.budgets.admit(found, request);
    let accepted = false;
    try {
      const woken =
        hasDaemon(found) && request.run === undefined
          ? await this.#toDaemon(request, userId, admission, ready, deadline)
          : await this.#toAgent(found, request, admission, deadline);
      accepted = woken.answer.status <= 299;
      return woken;
    } finally {
      await admission.end(accepted);
    }
  }

  async #toAgent(machine: Machine, request: Wake, admission: Admission, deadline: AbortSignal): Promise<WakeAnswer> {
    try {
      const { agents, clock } = this.#options;
      const facts = () => ({ attributes: { 'reveille.machine.provider': machine.provider } });
      const answer = await inSpan('deliver', facts, () => agents.wake(machine, request, deadline));
      admission.started();
      const recorded = agents.turnOf(machine.userId, request.fire_id);
      return { answer, startMs: 0, turn: recorded && recordedTurn(recorded, clock) };
    } catch (thrown) {
      // 502: it was reached, and may have accepted the wake. A daemon that rejects the wake as overloaded has not
      // failed to start.
      if (thrown instanceof MachineUnavailable) admission.startFailed(thrown.message);
      else if (toReveilleError(thrown).status === 502) admission.mayHaveArrived();
      throw thrown;
    }
  }

  async #toDaemon(
    request: Wake,
    userId: string,
    admission: Admission,
    ready: () => void,
    deadline: AbortSignal,
  ): Promise<WakeAnswer> {
    const { fleet, dispatcher, clock } = this.#options;
    let startMs = 0;
    for (let attempt = 1; ; attempt++) {
      const lease = await this.#ready(request, userId, admission, deadline);
      admission.started();
      ready();
      startMs += lease.startMs;
      try {
        const { machine, daemon } = lease;
        const lines = daemon.connections?.deliveries ?? dispatcher;
        const delivery = await deliver(lines, {
          tokenLimit: admission.tokensPerTurn,
          ...{ url: daemon.url, token: machine.token, userId: machine.userId },
          ...{
            wake: startMs < REPORTED_START_MS ? request : { late_because: 'machine_start', ...request },
            signal: deadline,
          },
        });
        if (delivery.result === 'answered') {
          if (delivery.answer.status <= 299) await lease.accepted();
          const { url } = daemon;
          const accepted = acceptedTurn(delivery.answer);
          const turn = turnOfDaemon({
            news: this.#news,
            dispatcher: lines,
            clock,
            url,
            token: machine.token,
            accepted,
          });
          return { answer: usable(delivery.answer), startMs, daemonUrl: url, turn };
        }
        fleet.of(userId).checkBeforeUse(daemon);
        if (delivery.result === 'unknown') {
          admission.mayHaveArrived();
          throw mayHaveArrived(delivery.why);
        }
        if (attempt === 2 || deadline.aborted) throw deliveryFailed(`the daemon was not reached: ${delivery.why}`);
      } finally {
        lease.release();
      }
    }
  }

  #wakeable(request: Wake, userId: string): Machine {
    return wakeable(this.#options.registry.get(userId), userId, retryAfter(request.attempt));
  }

  async #ready(request: Wake, userId: string, admission: Admission, deadline: AbortSignal): Promise<Lease> {
    const { fleet, timeoutMs } = this.#options;
    const retryAfterSeconds = retryAfter(request.attempt);
    const closing = this.#closing.signal;
    let refusal: unknown;
    const current = () => {
      try {
        return withDaemon(this.#wakeable(request, userId));
      } catch (thrown) {
        refusal = thrown;
        throw thrown;
      }
    };
    try {
      return await fleet.of(userId).acquire(current, AbortSignal.any([deadline, closing]));
    } catch (thrown) {
      if (closing.aborted) {
        throw new ReveilleError('unavailable', 'the router is shutting down', { retryAfterSeconds, cause: thrown });
      }
      if (thrown === refusal) throw thrown;
      if (thrown !== deadline.reason) {
        admission.startFailed(toReveilleError(thrown).message);
        throw thrown;
      }
      const waitsFor = fleet.of(userId).waitsFor;
      const message = `the machine was not ready within ${timeoutMs} ms${waitsFor === undefined ? '' : `: ${waitsFor}`}`;
      admission.startFailed(message);
      throw new ReveilleError('unavailable', message, { retryAfterSeconds });
    }
  }
}

/** The answer to a wake that subscribers have. */
function stored(): WakeAnswer {
  const body = Buffer.from(okEnvelope({ subscribers: true }));
  const contentType = 'application/json; charset=utf-8';
  return { answer: { status: 200, contentType, retryAfter: undefined, body }, startMs: 0 };
}

const SKIPPED = 200;

/** The answer to a wake that its check has skipped. */
function skipped(verdict: CheckVerdict): WakeAnswer {
  const body = Buffer.from(okEnvelope({ skipped: true, reason: verdict.reason }));
  const status = SKIPPED;
  const answer = { status, contentType: 'application/json; charset=utf-8', retryAfter: undefined, body };
  return { answer, startMs: 0, verdict };
}

/** @throws ReveilleError `unavailable` when the machine was changed to one without a daemon while the wake waited */
function withDaemon(machine: Machine): DaemonMachine {
  if (hasDaemon(machine)) return machine;
  const message = `the machine of ${machine.userId} was changed while the wake waited for it`;
  throw new ReveilleError('unavailable', message, { retryAfterSeconds: 1 });
}

function deliveryFailed(message: string): ReveilleError {
  return new ReveilleError('unavailable', message, { status: 502 });
}

function mayHaveArrived(why: string): ReveilleError {
  return deliveryFailed(`the delivery failed (${why}); the wake may or may not have been accepted`);
}

/** @throws ReveilleError 502 for an answer that is not final */
function usable(answer: DaemonAnswer): DaemonAnswer {
  if (answer.status >= 300 && answer.status <= 399) {
    throw deliveryFailed(`the daemon answered ${answer.status}, and redirects are not followed`);
  }
  if (answer.status > 599)
    throw deliveryFailed(`the daemon answered ${answer.status}, which is not a valid HTTP status`);
  return answer;
}

/** The members of the daemon's answer about the turn; only Neo must send them. */
export function acceptedTurn(answer: DaemonAnswer): { conversation_id: string; turn_id: string } | undefined {
  if (answer.status > 299) return undefined;
  let data: unknown;
  try {
    data = openEnvelope(answer.body.toString('utf8'), answer.status, 'the daemon').value();
  } catch {
    return undefined;
  }
  const accepted = chatAcceptedSchema.safeParse(data);
  if (!accepted.success) return undefined;
  const { conversation_id, turn_id } = accepted.data;
  return { conversation_id, turn_id };
}
