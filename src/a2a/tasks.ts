/**
 * Tasks of other agents: each becomes one turn of the user's agent, in a conversation that belongs to the caller. A
 * task is stored first. The id of its turn is derived from the task, so a repetition after a crash starts no second turn.
 */
import { backoff, withJitter } from '../kit/clock/backoff.ts';
import { type Clock, wait } from '../kit/clock/clock.ts';
import { NoAnswer } from '../kit/http/caller.ts';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import { RawJson } from '../wire/json.ts';
import type { TurnView } from '../wire/turn.ts';
import { type AgentClient, followTurn, hasEnded, turnAfterIntent } from './agent-turn.ts';
import type { PushConfig, TaskChanges, TaskStore } from './store.ts';
import { fireIdOfTask, framed, isFinal, type StoredTask } from './task.ts';

/** Changes of a task for a reader that follows it. */
export type TaskEvent =
  | { readonly kind: 'status'; readonly task: StoredTask }
  /** The reply so far, which is not stored; `appended` as in `TurnChange`. */
  | { readonly kind: 'reply'; readonly task: StoredTask; readonly text: string; readonly appended?: string };

export type TasksOptions = {
  store: TaskStore;
  agentOf: (userId: string) => AgentClient;
  /** Calls back when the state of the user's machine may have changed. @returns stops it */
  onMachine: (userId: string, listener: () => void) => () => void;
  /** Whether the machine runs: a read must not start it. */
  isAwake: (userId: string) => Promise<boolean>;
  clock: Clock;
  log: Logger;
  random?: () => number;
};

/** Maximum of unfinished tasks of one user and of one caller, and of stored tasks of one caller. */
const MOST_OF_USER = 16;
const MOST_OF_CALLER = 8;
const MOST_STORED = 1000;
/** Maximum length of a reply in UTF-16 units; a longer reply is cut. */
const REPLY_CHARACTERS = 256 * 1024;
/** How long an ended task is kept. */
const KEPT_MS = 7 * 24 * 3_600_000;
const SWEEP_MS = 3_600_000;
/** A task fails after this time if its turn could not be started, or reported nothing. */
const GIVE_UP_MS = 3_600_000;
/** How long a task waits for an approval after the end of its turn. */
const LONGEST_APPROVAL_MS = 7 * 24 * 3_600_000;
/** Pauses between reads of a conversation after a change of its machine: a read may keep the machine awake. */
const lookPauseMs = backoff({ first: 2000, longest: 15 * 60_000 });
const pauseMs = backoff({ first: 1000, longest: 60_000 });
/** A reader with more unread events is disconnected. */
const MOST_UNREAD = 1000;

export const NOTES = {
  approval: "A step of this task needs the user's approval. The user gives it elsewhere; the task then continues.",
  unreachable: "The user's agent could not be reached.",
  refused: "The user's agent does not accept messages of other agents at present.",
  failed: "The user's agent could not answer.",
  lost: "It is unknown how the task ended: the user's agent no longer knows it.",
  expired: 'The approval that this task waited for was not given in time.',
  canceled: 'The task was canceled by the caller.',
  revoked: 'The access of the caller was revoked.',
} as const;

/** Why the work on a task stops before its end. */
class Stopped extends Error {}

export class Tasks {
  readonly #options: TasksOptions;
  readonly #closing = new AbortController();
  /** The running work of each unfinished task. */
  readonly #running = new Map<string, { stop: AbortController; done: Promise<void> }>();
  readonly #readers = new Map<string, Set<(event: TaskEvent) => void>>();
  #cancelSweep = () => {};

  constructor(options: TasksOptions) {
    this.#options = options;
  }

  /** Continues unfinished tasks. */
  start(): void {
    if (this.#closing.signal.aborted) return;
    for (const { id } of this.#options.store.unfinished()) this.#begin(id);
    this.#sweep();
  }

  /**
   * Stores a task and starts it.
   *
   * @returns the task, or the existing one of the same message
   * @throws ReveilleError `rate_limited` when the user or the caller has too many unfinished tasks
   */
  async create(task: StoredTask, config?: PushConfig): Promise<{ task: StoredTask; isNew: boolean }> {
    const { store } = this.#options;
    const check = () => {
      const { count, ofCaller } = store.openOnes(task.userId, task.caller);
      if (isFinal(task) || (count < MOST_OF_USER && ofCaller < MOST_OF_CALLER)) return;
      const message = `too many unfinished tasks for this agent (at most ${MOST_OF_CALLER} per caller); wait for one to end`;
      throw new ReveilleError('rate_limited', message, { retryAfterSeconds: 10 });
    };
    const made = await store.create(task, { config, most: MOST_STORED, check });
    if (made.isNew && !isFinal(made.task)) this.#begin(made.task.id);
    return made;
  }

  /**
   * Ends a task with its turn.
   *
   * @returns the ended task; `undefined` if it had already ended, or a submitted step waits for the user
   * @throws ReveilleError if the agent cannot be reached: the task continues
   */
  async cancel(task: StoredTask): Promise<StoredTask | undefined> {
    const { store, agentOf } = this.#options;
    const { id, userId } = task;
    if (!isCancelable(store.get(id))) return undefined;
    await this.#stop(id);
    const current = store.get(id);
    if (!isCancelable(current)) return undefined;
    try {
      // An unanswered message may have arrived: its repetition returns the existing turn.
      const turnId = current.turnId ?? (await this.#post(current)).turn_id;
      const turn = await agentOf(userId).cancelTurn(turnId);
      if (turn.status !== 'done') return await this.#finish(id, { state: 'canceled', note: NOTES.canceled });
      await this.#finish(id, endOf(turn));
      return undefined;
    } catch (thrown) {
      this.#begin(id);
      throw thrown;
    }
  }

  /**
   * Ends the push configurations and the unfinished tasks of a caller whose access was revoked. It does not wait for the
   * agent, which may be asleep.
   *
   * @returns how many of each
   */
  async endCaller(caller: string): Promise<{ push_targets: number; tasks: number }> {
    const { store, agentOf, log } = this.#options;
    const push_targets = await store.dropConfigsOf(caller);
    let tasks = 0;
    for (const { id, userId } of store.unfinished().filter((task) => task.caller === caller)) {
      await this.#stop(id);
      const ended = await this.#finish(id, { state: 'canceled', note: NOTES.revoked });
      if (!ended) continue;
      tasks++;
      if (ended.turnId !== undefined)
        agentOf(userId)
          .cancelTurn(ended.turnId)
          .catch((err: unknown) => log.warn({ err, task_id: id }, 'the turn of a revoked client was not stopped'));
    }
    return { push_targets, tasks };
  }

  /**
   * The events of a task, beginning with its current state, until it has ended or the signal aborts.
   *
   * @throws ReveilleError `unavailable` when the reader is too slow
   */
  async *follow(taskId: string, signal: AbortSignal): AsyncGenerator<TaskEvent> {
    const unread: TaskEvent[] = [];
    let wake = () => {};
    const reader = (event: TaskEvent) => {
      unread.push(event);
      wake();
    };
    const readers = this.#readers.get(taskId) ?? new Set();
    this.#readers.set(taskId, readers.add(reader));
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    const onEnd = () => wake();
    ended.addEventListener('abort', onEnd);
    try {
      const now = this.#options.store.get(taskId);
      if (now === undefined) return;
      yield { kind: 'status', task: now };
      if (isFinal(now)) return;
      while (!ended.aborted) {
        const event = unread.shift();
        if (event === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
            if (unread.length > 0 || ended.aborted) resolve();
          });
          continue;
        }
        if (unread.length > MOST_UNREAD)
          throw new ReveilleError('unavailable', 'the reader is too slow; subscribe to the task again');
        // The state that was read first already includes this event.
        if (event.kind === 'status' && event.task.updatedAt <= now.updatedAt) continue;
        yield event;
        if (event.kind === 'status' && isFinal(event.task)) return;
      }
    } finally {
      ended.removeEventListener('abort', onEnd);
      readers.delete(reader);
      if (readers.size === 0) this.#readers.delete(taskId);
    }
  }

  /** Stops the work on all tasks. The next process continues it. */
  async close(): Promise<void> {
    this.#cancelSweep();
    this.#closing.abort(new Stopped('the router is closing'));
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #sweep(): void {
    const { store, clock, log } = this.#options;
    store.dropEnded(clock.now() - KEPT_MS).catch((err: unknown) => log.warn({ err }, 'old tasks could not be removed'));
    this.#cancelSweep = clock.after(SWEEP_MS, () => this.#sweep());
  }

  #begin(taskId: string): void {
    if (this.#running.has(taskId) || this.#closing.signal.aborted) return;
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#closing.signal, stop.signal]);
    // The map must contain it before it can end.
    const done = Promise.resolve()
      .then(() => this.#work(taskId, signal))
      .finally(() => this.#running.delete(taskId));
    this.#running.set(taskId, { stop, done });
  }

  async #stop(taskId: string): Promise<void> {
    const running = this.#running.get(taskId);
    running?.stop.abort(new Stopped('the task was canceled'));
    await running?.done;
  }

  /** Works on a task until it has ended. Never rejects. */
  async #work(taskId: string, signal: AbortSignal): Promise<void> {
    const { store, clock, log, random = Math.random } = this.#options;
    let failures = 0;
    let failingSince = 0;
    while (!signal.aborted) {
      const task = store.get(taskId);
      if (task === undefined || isFinal(task)) return;
      try {
        await this.#advance(task, signal);
        failures = 0;
      } catch (thrown) {
        if (signal.aborted) return;
        const error = toReveilleError(thrown);
        const isTemporary = error.retryable || thrown instanceof NoAnswer;
        if (failures++ === 0) failingSince = clock.monotonic();
        log.info({ task_id: taskId, reason: error.message }, 'a task of another agent does not advance');
        if (!isTemporary || clock.monotonic() - failingSince > GIVE_UP_MS) {
          await this.#finish(taskId, { state: 'failed', note: noteFor(task, error, isTemporary) }).catch(
            (err: unknown) => log.error({ err, task_id: taskId }, 'the end of a task could not be stored'),
          );
        }
        const pause = Math.max((error.retryAfterSeconds ?? 0) * 1000, pauseMs(failures));
        await wait(clock, withJitter(pause, random()), signal);
      }
    }
  }

  /** Executes the next step of a task's work. */
  async #advance(task: StoredTask, signal: AbortSignal): Promise<void> {
    if (task.turnId === undefined) {
      const accepted = await this.#post(task, signal);
      await this.#change(task.id, { turnId: accepted.turn_id, conversationId: accepted.conversation_id });
    } else if (task.waitsFor.length > 0) {
      await this.#awaitIntents(task, signal);
    } else {
      await this.#follow(task, task.turnId, signal);
    }
  }

  /** Sends the message to the agent. A repetition returns the existing turn. */
  #post(task: StoredTask, signal?: AbortSignal) {
    const { id, userId, callerName, conversationId, payload, message } = task;
    return this.#options.agentOf(userId).chat(
      {
        message: framed(promptOf(message), { callerName, seed: id }),
        conversation_id: conversationId,
        origin: 'chronos',
        fire_id: fireIdOfTask(id),
        sent_by: { kind: 'agent', name: callerName },
        ...(payload === undefined ? {} : { payload: new RawJson(payload) }),
      },
      signal,
    );
  }

  async #follow(task: StoredTask, turnId: string, signal: AbortSignal): Promise<void> {
    const { id, conversationId, userId } = task;
    const { agentOf, clock } = this.#options;
    for await (const change of followTurn(agentOf(userId), { conversationId, turnId, clock, signal })) {
      if (change.kind === 'reply') {
        const { text, appended } = change;
        this.#notify(id, { kind: 'reply', task, text, ...(appended !== undefined && { appended }) });
      } else if (change.kind === 'ended') {
        const { turn, waiting } = change;
        if (waiting.length === 0 || turn.status !== 'done') return void (await this.#finish(id, endOf(turn)));
        await this.#change(id, { state: 'auth_required', note: NOTES.approval, waitsFor: waiting, ...replyOf(turn) });
        return;
      } else {
        await this.#setState(id, change.waiting.length > 0 ? 'auth_required' : 'working');
      }
    }
    signal.throwIfAborted();
  }

  /** Waits for the turn in which the agent gets the outcome of the task's intents. The task ends with that turn. */
  async #awaitIntents(task: StoredTask, signal: AbortSignal): Promise<void> {
    const { onMachine, isAwake, agentOf, clock } = this.#options;
    const { id, userId, conversationId } = task;
    const agent = agentOf(userId);
    let news = new AbortController();
    const leave = onMachine(userId, () => news.abort());
    try {
      let left = [...task.waitsFor];
      for (let looks = 1; !signal.aborted; looks++) {
        if (clock.now() - task.updatedAt > LONGEST_APPROVAL_MS) {
          await this.#finish(id, { state: 'failed', note: NOTES.expired, waitsFor: [] });
          return;
        }
        if (await isAwake(userId)) {
          for (const intent of left) {
            const turn = await turnAfterIntent(agent, conversationId, intent);
            if (turn === undefined || !hasEnded(turn)) continue;
            left = left.filter((one) => one !== intent);
            if (left.length === 0) return void (await this.#finish(id, endOf(turn)));
          }
        }
        await wait(clock, lookPauseMs(looks), AbortSignal.any([signal, news.signal]));
        if (!news.signal.aborted) continue;
        news = new AbortController();
        looks = 0;
        await wait(clock, lookPauseMs(1), signal);
      }
      signal.throwIfAborted();
    } finally {
      leave();
    }
  }

  async #setState(id: string, state: 'working' | 'auth_required'): Promise<void> {
    const current = this.#options.store.get(id);
    if (current === undefined || current.state === state) return;
    await this.#change(id, { state, note: state === 'auth_required' ? NOTES.approval : undefined });
  }

  #finish(id: string, end: TaskChanges): Promise<StoredTask | undefined> {
    return this.#change(id, { note: undefined, waitsFor: [], ...end });
  }

  async #change(id: string, changes: TaskChanges): Promise<StoredTask | undefined> {
    const changed = await this.#options.store.change(id, changes);
    if (changed === undefined) return undefined;
    this.#notify(id, { kind: 'status', task: changed });
    // No work remains.
    if (isFinal(changed)) this.#running.get(id)?.stop.abort(new Stopped('the task has ended'));
    return changed;
  }

  #notify(taskId: string, event: TaskEvent): void {
    for (const reader of this.#readers.get(taskId) ?? []) reader(event);
  }
}

/** Only the user can deny a step that was submitted to the executor: it continues without the turn. */
function isCancelable(task: StoredTask | undefined): task is StoredTask {
  return task !== undefined && !isFinal(task) && task.waitsFor.length === 0;
}

/** The texts of a stored message. */
function promptOf(message: string): string {
  const { parts = [] } = JSON.parse(message) as { parts?: { text?: unknown }[] };
  return parts.flatMap(({ text }) => (typeof text === 'string' ? text : [])).join('\n\n');
}

const bounded = (reply: string) =>
  reply.length > REPLY_CHARACTERS ? `${reply.slice(0, REPLY_CHARACTERS).toWellFormed()}…` : reply;

const replyOf = ({ reply }: TurnView) => (reply === undefined ? {} : { reply: bounded(reply) });

/** The state after a turn. The caller does not get the error of a failed turn. */
function endOf(turn: TurnView): TaskChanges {
  if (turn.status === 'done') return { state: 'completed', reply: bounded(turn.reply ?? '') };
  return { state: 'failed', note: NOTES.failed };
}

function noteFor({ turnId }: StoredTask, error: ReveilleError, isTemporary: boolean): string {
  if (isTemporary) return NOTES.unreachable;
  if (turnId !== undefined) return error.code === 'not_found' ? NOTES.lost : NOTES.failed;
  return NOTES.refused;
}
