/**
 * Carries out what the executor owes others, from the book, until it is done. Each errand goes its own way: a receiver that hangs holds
 * up no other. What a process leaves undone the next one takes up, so everything happens at least once.
 */

import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isIntentOver } from '../../wire/executor.ts';
import type { Settings } from '../../wire/settings.ts';
import type { ExecutorConfig } from '../config.ts';
import type { ExecutorRail } from '../rail.ts';
import type { SigningKey } from '../receipt/signing-key.ts';
import { type Carried, DONE } from './carried.ts';
import { runNotice } from './command.ts';
import type { Errand, ErrandBook } from './errands.ts';
import { noticeText } from './notice.ts';
import { createWaker } from './wake.ts';
import { wakePayload, wakeWords } from './wake-words.ts';
import { postNotice } from './webhook.ts';

export type ErrandRunnerOptions = {
  readonly book: ErrandBook;
  readonly rail: Pick<ExecutorRail, 'view' | 'gates' | 'receipt'>;
  readonly config: Pick<ExecutorConfig, 'notify' | 'chronos'>;
  /** The executor's own. */
  readonly key: SigningKey;
  /** What a command gets an allow-list of. */
  readonly variables: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  /** Uniform in [0, 1); spreads retries. */
  readonly random: () => number;
};

export type ErrandRunner = {
  start(): void;
  /** Begins nothing more and breaks off what is under way; the next process takes it up. */
  close(): Promise<void>;
};

/** Errands that are carried out at the same time. */
const CONCURRENCY = 8;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 15 * 60_000;
/** With these pauses about a day; a question that waits longer has an end of its own. */
const MOST_NOTICES = 104;
/** The book is looked into at least this often: wall clocks jump, and timers sleep with laptops. */
const LOOK_MS = 60_000;

/** @param failures counts from 1 */
function pauseMs(failures: number, slow: boolean, draw: number): number {
  const longest = slow
    ? LONGEST_PAUSE_MS
    : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 20));
  return longest / 2 + (longest / 2) * draw;
}

class Runner implements ErrandRunner {
  readonly #options: ErrandRunnerOptions;
  readonly #closing = new AbortController();
  readonly #underWay = new Map<string, Promise<void>>();
  /** Of errands with two receivers, those that this process knows to have taken the notice. */
  readonly #taken = new Map<string, Set<string>>();
  readonly #wake: ReturnType<typeof createWaker> | undefined;
  #cancelTimer = () => {};
  #unsubscribe = () => {};

  constructor(options: ErrandRunnerOptions) {
    this.#options = options;
    const { config, key, clock } = options;
    this.#wake = config.chronos && createWaker({ chronos: config.chronos, key, clock });
  }

  start(): void {
    this.#unsubscribe = this.#options.book.onNew(() => this.#look());
    this.#look();
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    this.#cancelTimer();
    this.#closing.abort(new Error('the executor is shutting down'));
    await Promise.all(this.#underWay.values());
  }

  #look(): void {
    if (this.#closing.signal.aborted) return;
    this.#cancelTimer();
    const { book, clock, log } = this.#options;
    let pauseFor = LOOK_MS;
    try {
      const now = clock.now();
      const due = book.due(now, CONCURRENCY + this.#underWay.size);
      for (const errand of due) {
        if (this.#underWay.size >= CONCURRENCY) break;
        if (!this.#underWay.has(errand.id)) this.#underWay.set(errand.id, this.#carry(errand));
      }
      const next = book.nextDue();
      // Of what is due already, something is under way, and its end looks again.
      if (next !== undefined && next > now) pauseFor = Math.min(LOOK_MS, next - now);
    } catch (err) {
      log.error({ err }, 'the book of errands cannot be read; it is looked into again');
    }
    this.#cancelTimer = clock.after(pauseFor, () => this.#look());
  }

  async #carry(errand: Errand): Promise<void> {
    // Whoever made the errand is not to be kept waiting, and is done with its own transaction.
    await Promise.resolve();
    const { log } = this.#options;
    const { id, kind, intentId, attempts } = errand;
    try {
      const carried = await this.#attempt(errand);
      if (this.#closing.signal.aborted && carried.result !== 'done') return;
      await this.#record(errand, carried);
    } catch (err) {
      log.error(
        { err, errand: id, kind, intent: intentId, attempts },
        'an errand failed in a way that nobody expected',
      );
      await this.#record(errand, {
        result: 'later',
        why: 'it failed in a way that nobody expected; the log has the details',
      });
    } finally {
      this.#underWay.delete(id);
      this.#look();
    }
  }

  async #record({ id, kind, user, intentId, attempts }: Errand, carried: Carried): Promise<void> {
    const { book, clock, log, random } = this.#options;
    // What was broken off by our own end is due for the next process, without a pause.
    if (this.#closing.signal.aborted && carried.result === 'later') return;
    const about = { errand: id, kind, user, intent: intentId, attempts: attempts + 1 };
    const isLast = kind === 'notify' && attempts + 1 >= MOST_NOTICES;
    try {
      if (carried.result === 'done') {
        book.done(id);
        log.info(about, kind === 'wake' ? 'the agent will be woken' : 'a question that waits was notified');
      } else if (carried.result === 'drop' || isLast) {
        book.drop(id, carried.why);
        log.warn({ ...about, reason: carried.why }, 'an errand was given up');
      } else {
        const pause = Math.round(pauseMs(attempts + 1, carried.slow === true, random()));
        book.later(id, clock.now() + pause, carried.why);
        log.warn({ ...about, reason: carried.why, again_in_ms: pause }, 'an errand did not work; it is tried again');
      }
      if (carried.result !== 'later' || isLast) this.#taken.delete(id);
    } catch (err) {
      log.error({ err, ...about }, 'what became of an errand cannot be written down; it is carried out once more');
      // It stays due: without a pause here it would go round as fast as it can.
      await wait(clock, LONGEST_PAUSE_MS, this.#closing.signal);
    }
  }

  async #attempt(errand: Errand): Promise<Carried> {
    try {
      return await (errand.kind === 'wake' ? this.#wakeUp(errand) : this.#notify(errand));
    } catch (thrown) {
      const isGone = thrown instanceof ReveilleError && thrown.code === 'not_found';
      if (isGone) return { result: 'drop', why: thrown.message };
      throw thrown;
    }
  }

  async #wakeUp({ user, intentId, conversationId }: Errand): Promise<Carried> {
    const { rail } = this.#options;
    const view = rail.view(user, intentId);
    // An intent that the executor has asked back about goes no further either.
    if (!isIntentOver(view) && view.clarify === undefined)
      return { result: 'later', why: `the intent is ${view.status}` };
    if (conversationId === undefined) return { result: 'drop', why: 'it names no conversation' };
    if (this.#wake === undefined) {
      return { result: 'later', slow: true, why: 'EXECUTOR_CHRONOS_URL is not set, so nobody can be woken' };
    }
    const message = wakeWords(view, rail.receipt(user, intentId));
    return this.#wake({ user, conversationId, intentId, message, payload: wakePayload(view) }, this.#closing.signal);
  }

  async #notify({ id, user, intentId, nodeId }: Errand): Promise<Carried> {
    const { rail, config, variables, clock } = this.#options;
    const gate = rail.gates(user, intentId).find(({ node_id }) => node_id === nodeId);
    if (gate === undefined) return { result: 'drop', why: 'the question does not wait any more' };
    const body = noticeText(user, rail.view(user, intentId), gate, rail.receipt(user, intentId));
    const { webhook, command } = config.notify;
    if (!webhook && !command) {
      const unset = 'neither EXECUTOR_NOTIFY_URL nor EXECUTOR_NOTIFY_COMMAND is set';
      return { result: 'drop', why: `${unset}; the question waits all the same` };
    }
    const signal = this.#closing.signal;
    const taken = this.#taken.get(id) ?? new Set();
    this.#taken.set(id, taken);
    const once = async (receiver: string, tell: () => Promise<Carried>): Promise<Carried> => {
      if (taken.has(receiver)) return DONE;
      const carried = await tell();
      if (carried.result !== 'later') taken.add(receiver);
      return carried;
    };
    const told = await Promise.all([
      ...(webhook ? [once('webhook', () => postNotice(webhook, { id, body }, { clock, signal }))] : []),
      ...(command ? [once('command', () => runNotice(command, body, { variables, clock, signal }))] : []),
    ]);
    const failed = told.filter((carried) => carried.result === 'later');
    if (failed.length > 0) return { result: 'later', why: failed.map(({ why }) => why).join('; ') };
    return told.find(({ result }) => result === 'drop') ?? DONE;
  }
}

export function createErrandRunner(options: ErrandRunnerOptions): ErrandRunner {
  return new Runner(options);
}
