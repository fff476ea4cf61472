/**
 * The receiver: a router with the agents' machines behind it. An agent stores the fire id of every turn it accepts, as
 * Neo does. The condition of its machine decides the outcome of a wake.
 */

import { parseJsonObject } from '../../../src/wire/json.ts';
import { parseOrThrow } from '../../../src/wire/validate.ts';
import { RAW_WAKE_FIELDS, type Wake, wakeRequestSchema } from '../../../src/wire/wake.ts';
import type { ReceiverRecorder } from '../checker/journal.ts';
import type { Dice } from './dice.ts';
import type { Condition } from './scenario.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';
import type { Weather } from './weather.ts';

/** An answer of the router. */
export type Reply = { status: number; retryAfterSeconds?: number | undefined };

/** The sender's result of a wake: an answer, or a connection that ends without one. */
export type Answering = { reply(reply: Reply): void; reset(): void };

export type RouterOptions = {
  timeline: Timeline;
  weather: Weather;
  trace: Trace;
  dice: Dice;
  recorder: ReceiverRecorder;
  /** The clock of the receiver's log, epoch ms. */
  now: () => number;
  /** Whether agents recognise a known fire id. They do; a mutant forgets. */
  dedupes: boolean;
};

const RETRY_AFTERS = [undefined, undefined, 0, 1, 7, 120, 5_000];

export class Router {
  readonly #options: RouterOptions;
  readonly #conditions = new Map<string, Condition>();
  readonly #accepted = new Set<string>();
  /** Ends delayed wakes if the machines recover. */
  readonly #lingering = new Set<() => void>();
  /** The router itself cannot be reached. */
  isDown = false;
  turns = 0;
  duplicates = 0;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  conditionOf(owner: string): Condition {
    return this.#conditions.get(owner) ?? 'well';
  }

  setCondition(owner: string, condition: Condition): void {
    this.#options.trace.note('router', `${owner} is`, condition);
    this.#conditions.set(owner, condition);
  }

  isReachable(owner: string): boolean {
    return !this.isDown && this.conditionOf(owner) !== 'unreachable';
  }

  /** All machines are healthy again, and no wake hangs. */
  heal(): void {
    this.isDown = false;
    this.#conditions.clear();
    for (const finish of [...this.#lingering]) finish();
  }

  /** A wake arrives. */
  receive(body: string, answering: Answering): void {
    const { trace, dice, recorder, now, weather } = this.#options;
    const wake = parseOrThrow(wakeRequestSchema, parseJsonObject(body, RAW_WAKE_FIELDS)) as Wake;
    const condition = this.conditionOf(wake.user_id);
    if (condition !== 'well') weather.count(`wake met a ${condition} machine`);
    trace.note('router', 'woken', `${wake.fire_id} attempt ${wake.attempt} (${condition})`);
    const answered = recorder.woken(
      {
        fireId: wake.fire_id,
        user: wake.user_id,
        conversation: wake.conversation_id ?? null,
        message: wake.message,
        payload: wake.payload?.text ?? null,
        attempt: wake.attempt,
        missedCount: wake.missed_count,
      },
      now(),
    );
    const accept = () => {
      // The router's own client may repeat its request to a machine.
      if (dice.chance(0.03)) this.#later(dice.magnitude(1, 3_000), () => this.#accept(wake));
      return this.#accept(wake);
    };
    const reply = (status: number, retryAfterSeconds?: number) => {
      answered(status, now());
      answering.reply({ status, retryAfterSeconds });
    };
    switch (condition) {
      case 'well':
        this.#later(dice.magnitude(0.3, 80), () => reply(accept()));
        return;
      case 'slow':
        this.#linger(dice.magnitude(500, 58_000), () => reply(accept()));
        return;
      case 'busy':
        this.#later(dice.magnitude(0.3, 20), () => reply(429, dice.pick(RETRY_AFTERS)));
        return;
      case 'failing':
        this.#linger(dice.magnitude(0.3, 40_000), () => {
          // The turn may have been accepted although the acceptance was lost.
          if (dice.chance(0.2)) {
            answered(accept(), now());
            answering.reply({ status: 502 });
          } else reply(dice.pick([500, 502, 503, 504]), dice.pick(RETRY_AFTERS));
        });
        return;
      case 'gone':
        this.#later(dice.magnitude(0.3, 20), () => reply(dice.pick([410, 410, 404, 451, 400])));
        return;
      case 'lossy':
        this.#later(dice.magnitude(0.3, 200), () => {
          accept();
          answering.reset();
        });
        return;
      case 'hanging':
        if (dice.chance(0.3)) this.#later(dice.magnitude(1, 100_000), accept);
        this.#linger(Number.POSITIVE_INFINITY, () => answering.reset());
        return;
      case 'unreachable':
        answering.reset();
    }
  }

  /** Like {@link #later}, or when all machines have recovered. */
  #linger(delayMs: number, what: () => void): void {
    const finish = () => {
      if (this.#lingering.delete(finish)) what();
    };
    this.#lingering.add(finish);
    if (Number.isFinite(delayMs)) this.#later(delayMs, finish);
  }

  #later(delayMs: number, what: () => void): void {
    this.#options.timeline.after(delayMs, what);
  }

  /** The agent accepts the turn, or recognises it; 202 or 200. */
  #accept(wake: Wake): number {
    const { trace, weather, dedupes, recorder, now } = this.#options;
    if (this.#accepted.has(wake.fire_id)) {
      this.duplicates++;
      weather.count('repeated wake');
      if (dedupes) return 200;
    }
    this.#accepted.add(wake.fire_id);
    this.turns++;
    trace.note('router', 'turn', wake.fire_id);
    recorder.turn(
      {
        fireId: wake.fire_id,
        user: wake.user_id,
        conversation: wake.conversation_id ?? null,
        message: wake.message,
        payload: wake.payload?.text ?? null,
        status: 'done',
      },
      now(),
    );
    return 202;
  }
}
