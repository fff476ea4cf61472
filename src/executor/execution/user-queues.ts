/**
 * Per-user queues. One intent of a user executes at a time, in the order of acceptance. One other intent is compiled
 * meanwhile, so that its plan is ready when its turn comes. Users do not wait for each other; they share the limit on
 * concurrent compilations.
 */
import { isFinal } from '../receipt/chain-state.ts';
import { type IntentRun, type RailParts, RunStopped } from './run.ts';

/** Concurrent compilations of all users together. */
const COMPILATIONS = 4;
/** Delay before a retry after an unexpected failure. */
const RETRY_MS = 5000;

type QueueWork = {
  runOf(intentId: string): IntentRun;
  draft(run: IntentRun): Promise<void>;
  execute(run: IntentRun): Promise<void>;
};

type UserQueue = { readonly ids: string[]; drafting: boolean; executing: boolean };
type Activity = { readonly run: IntentRun; readonly done: Promise<void> };

export class UserQueues {
  readonly #work: QueueWork;
  readonly #parts: Pick<RailParts, 'journal' | 'clock' | 'log'>;
  readonly #queues = new Map<string, UserQueue>();
  readonly #activities = new Map<string, Activity>();
  readonly #suspended = new Set<string>();
  readonly #unsubscribe: () => void;
  #compiling = 0;
  #closed = false;

  constructor(work: QueueWork, parts: Pick<RailParts, 'journal' | 'clock' | 'log'>) {
    this.#work = work;
    this.#parts = parts;
    this.#unsubscribe = parts.journal.onChange(({ row, state }) => {
      if (isFinal(state)) this.#remove(state.accepted.principal.user, row.id);
    });
  }

  /** Adds an intent to the queue of its user, in the order of acceptance. */
  add(user: string, intentId: string): void {
    const queue = this.#queues.get(user) ?? { ids: [], drafting: false, executing: false };
    this.#queues.set(user, queue);
    const { journal } = this.#parts;
    const { row, state } = journal.loadAny(intentId);
    // Reading the intent ends it when its chain was tampered with.
    if (!isFinal(state) && !queue.ids.includes(intentId)) {
      const { seq } = row;
      const nextIndex = queue.ids.findIndex((id) => journal.loadAny(id).row.seq > seq);
      queue.ids.splice(nextIndex < 0 ? queue.ids.length : nextIndex, 0, intentId);
    }
    this.#startNext(user);
  }

  /** The intent directly before this one in the queue; it must end first. */
  queuedBehind(user: string, intentId: string): string | undefined {
    const ids = this.#queues.get(user)?.ids ?? [];
    const index = ids.indexOf(intentId);
    return index > 0 ? ids[index - 1] : undefined;
  }

  /** Suspends an intent: nothing new starts, and a call in progress still completes. */
  suspend(intentId: string): void {
    this.#suspended.add(intentId);
    this.#activities.get(intentId)?.run.stop();
  }

  /** Resolves when no work on the intent is in progress. */
  async idle(intentId: string): Promise<void> {
    while (this.#activities.has(intentId)) await this.#activities.get(intentId)!.done;
  }

  /** Resumes a suspended intent unless it is final. */
  resume(user: string, intentId: string): void {
    this.#suspended.delete(intentId);
    this.#startNext(user);
  }

  /** Starts nothing new. Resolves when all work in progress has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#unsubscribe();
    for (const { run } of this.#activities.values()) run.stop();
    await Promise.all([...this.#activities.values()].map(({ done }) => done));
  }

  #remove(user: string, intentId: string): void {
    const queue = this.#queues.get(user);
    const index = queue?.ids.indexOf(intentId) ?? -1;
    if (!queue || index < 0) return;
    queue.ids.splice(index, 1);
    if (queue.ids.length === 0 && !queue.executing && !queue.drafting) this.#queues.delete(user);
    // The caller that reported the end still runs; start the next intent after it.
    queueMicrotask(() => this.#startNext(user));
  }

  #startNext(user: string): void {
    const queue = this.#queues.get(user);
    if (!queue || this.#closed) return;
    if (!queue.drafting) this.#draftNext(user, queue);
    if (!queue.executing) this.#executeNext(user, queue);
  }

  #draftNext(user: string, queue: UserQueue): void {
    const intentId = queue.ids.find((id) => this.#isFree(id) && !this.#stateOf(id).compiled);
    if (intentId === undefined) return;
    const state = this.#stateOf(intentId);
    if (isFinal(state)) return;
    const usesModel = state.accepted.prose !== undefined;
    if (usesModel && this.#compiling >= COMPILATIONS) return;
    queue.drafting = true;
    if (usesModel) this.#compiling++;
    this.#start(user, intentId, this.#work.draft, () => {
      queue.drafting = false;
      if (!usesModel) return;
      this.#compiling--;
      // A compilation slot is free: another user may take it.
      for (const other of [...this.#queues.keys()]) if (other !== user) this.#startNext(other);
    });
  }

  #executeNext(user: string, queue: UserQueue): void {
    const intentId = queue.ids[0];
    if (intentId === undefined || !this.#isFree(intentId)) return;
    const state = this.#stateOf(intentId);
    if (!state.compiled || isFinal(state)) return;
    queue.executing = true;
    this.#start(user, intentId, this.#work.execute, () => {
      queue.executing = false;
    });
  }

  #isFree(intentId: string): boolean {
    return !this.#suspended.has(intentId) && !this.#activities.has(intentId);
  }

  #stateOf(intentId: string) {
    return this.#parts.journal.loadAny(intentId).state;
  }

  #start(user: string, intentId: string, work: (run: IntentRun) => Promise<void>, ended: () => void): void {
    const { clock, log } = this.#parts;
    const run = this.#work.runOf(intentId);
    const execute = async () => {
      // Return to the caller of `add` before the work starts.
      await Promise.resolve();
      let retryMs = 0;
      try {
        await work(run);
      } catch (thrown) {
        if (!(thrown instanceof RunStopped)) {
          retryMs = RETRY_MS;
          log.error({ err: thrown, intent: intentId }, 'an intent failed unexpectedly; its execution is retried');
        }
      }
      this.#activities.delete(intentId);
      ended();
      if (retryMs === 0) this.#startNext(user);
      else clock.after(retryMs, () => this.#startNext(user));
    };
    this.#activities.set(intentId, { run, done: execute() });
  }
}
