/** A wake: from the alarm's request to the daemon's answer (docs/contracts.md §4). */

import type { Dispatcher } from 'undici';
import { backoff } from '../kit/clock/backoff.ts';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { type DaemonAnswer, deliver } from '../neo/client.ts';
import { ownerOf } from '../wire/did.ts';
import { openEnvelope } from '../wire/envelope.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import { chatAcceptedSchema, type Wake } from '../wire/wake.ts';
import { HeldBack } from './budget/account.ts';
import type { Admission, Budgets } from './budget/budgets.ts';
import type { Fleet } from './fleet.ts';
import { type CommandMachine, type DaemonMachine, hasDaemon, type Machine, wakeable } from './machines/machine.ts';
import type { Registry } from './machines/registry.ts';
import { MachineUnavailable } from './providers/provider.ts';
import type { Lease } from './supervisor.ts';
import type { Targets } from './targets/targets.ts';
import { turnOfDaemon, type WokenTurn } from './woken-turn.ts';

/** How a wake ended, for whoever watches the router from inside its process. */
export type WakeNotice = {
  fire_id: string;
  user_id: string;
  /** How long starting the machine took; 0 when it ran already. */
  machineStartMs: number;
  /** When the answer was there, epoch milliseconds. */
  acceptedAt: number;
  /** What the caller got: the daemon's status, or the router's. */
  status: number;
  /** Of the turn, when the daemon accepted the wake and said so. */
  conversation_id?: string;
  turn_id?: string;
  /** Where the daemon that answered listens; a target of provider `command` has none. */
  daemon_url?: string;
  /** Why there was no answer of the daemon. */
  error?: string;
};

/**
 * `startMs` as `machineStartMs` above. Without a `daemonUrl` the answer is the router's own, for a target without a
 * daemon. `turn`: of a wake that was accepted.
 */
export type WakeAnswer = { answer: DaemonAnswer; startMs: number; daemonUrl?: string; turn?: WokenTurn | undefined };

/** Told how every wake ended, and of an accepted one how its turn can be followed. Must not throw. */
export type OnWake = (notice: WakeNotice, turn: WokenTurn | undefined) => void;

type WakesOptions = {
  registry: Registry;
  fleet: Fleet;
  /** Wakes machines that have no daemon. */
  targets: Targets;
  /** Says who may be woken now. */
  budgets: Budgets;
  dispatcher: Dispatcher;
  clock: Clock;
  log: Logger;
  /** Bounds starting, becoming ready and delivering together. */
  timeoutMs: number;
  onWake?: OnWake;
};

/**
 * When to come again for a machine that is not there yet: soon at first, then ever later, so that the attempts an alarm
 * has last for about a day, as its own ladder's would.
 */
export const retryAfter = backoff({ first: 5, longest: 15 * 60 });

/** A start that took less is no reason for being late. */
const NOTICED_MS = 1000;

export class Wakes {
  readonly #options: WakesOptions;
  readonly #closing = new AbortController();

  constructor(options: WakesOptions) {
    this.#options = options;
  }

  /**
   * Starts the user's machine when it sleeps, and delivers the wake to its daemon.
   *
   * A wake that certainly did not arrive is tried once more in the same time; one that may have arrived is not, whoever
   * asked knows whether its target tells repetitions apart.
   *
   * @param onReady told how long after the wake's arrival the machine was ready, whatever comes of the delivery; of a
   *   machine
   *   without a daemon it is not
   * @returns the daemon's own answer, whatever its status
   * @throws ReveilleError 404, 410, 451 by the state of the machine; 429 ({@link HeldBack}) when its user's budget says
   *   later; 503 when it is not ready in time; 504 when its start was
   *   given up; 502 when the delivery failed
   */
  async wake(request: Wake, onReady: (afterMs: number) => void = () => {}): Promise<WakeAnswer> {
    const { clock, log, onWake } = this.#options;
    const { fire_id } = request;
    const user_id = ownerOf(request.user_id);
    const began = clock.monotonic();
    const about = () => ({ user_id, fire_id, attempt: request.attempt, ms: Math.round(clock.monotonic() - began) });
    try {
      const ready = () => onReady(Math.round(clock.monotonic() - began));
      const woken = await this.#withinTime(request, user_id, ready);
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
      if (error instanceof HeldBack) log.info({ ...about(), until: error.until, reason: message }, 'wake held back');
      else log.warn({ ...about(), status, reason: message, err: error.cause }, 'wake failed');
      onWake?.({ fire_id, user_id, machineStartMs: 0, acceptedAt: clock.now(), status, error: message }, undefined);
      throw error;
    }
  }

  /** Ends the waiting of wakes whose machine is not ready; deliveries under way go on. */
  close(): void {
    this.#closing.abort();
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
    // Looked up before a supervisor is made, so that unknown users leave nothing behind.
    const found = this.#wakeable(request, userId);
    const admission = await this.#options.budgets.admit(found, request);
    let accepted = false;
    try {
      const woken = hasDaemon(found)
        ? await this.#toDaemon(request, userId, admission, ready, deadline)
        : await this.#toTarget(found, request, admission, deadline);
      accepted = woken.answer.status <= 299;
      return woken;
    } finally {
      await admission.end(accepted);
    }
  }

  async #toTarget(
    machine: CommandMachine,
    request: Wake,
    admission: Admission,
    deadline: AbortSignal,
  ): Promise<WakeAnswer> {
    try {
      const { targets } = this.#options;
      const answer = await targets.wake(machine, request, deadline);
      admission.started();
      return { answer, startMs: 0, turn: targets.turnOf(machine.userId, request.fire_id) };
    } catch (thrown) {
      // 502: it was reached, and may have taken the wake. One that is there and has no room for the wake has not failed
      // to start.
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
        const lines = daemon.line?.deliveries ?? dispatcher;
        const delivery = await deliver(lines, {
          ...{ url: daemon.url, token: machine.token, userId: machine.userId },
          ...{ wake: startMs < NOTICED_MS ? request : { late_because: 'machine_start', ...request }, signal: deadline },
        });
        if (delivery.result === 'answered') {
          if (delivery.answer.status <= 299) await lease.accepted();
          const { url } = daemon;
          const accepted = acceptedTurn(delivery.answer);
          const turn = turnOfDaemon({ dispatcher: lines, clock, url, token: machine.token, accepted });
          return { answer: usable(delivery.answer), startMs, daemonUrl: url, turn };
        }
        fleet.of(userId).doubt(daemon);
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

/** @throws ReveilleError `unavailable` when the machine has become one without a daemon while the wake waited */
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

/** @throws ReveilleError 502 for what is not a final answer */
function usable(answer: DaemonAnswer): DaemonAnswer {
  if (answer.status >= 300 && answer.status <= 399) {
    throw deliveryFailed(`the daemon answered ${answer.status}, and redirects are not followed`);
  }
  if (answer.status > 599) throw deliveryFailed(`the daemon answered ${answer.status}, which is no HTTP status`);
  return answer;
}

/** What the daemon said about the turn; daemons other than Neo need not say anything. */
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
