/**
 * Decides which turns may begin. A conversation runs one turn at a time, in the order of acceptance, also when the
 * first one has to wait. A user has a limited number of concurrent turns over all conversations. It contains nothing
 * that the store does not. Pure.
 */

/** `id` identifies the turn; ids sort by their time of acceptance. */
export type QueuedTurn = { id: string; userId: string; queue: string; notBefore: number };

type ConversationQueue = { waiting: QueuedTurn[]; running: QueuedTurn | undefined };

type UserQueues = { queues: Map<string, ConversationQueue>; running: number };

export class TurnQueues {
  readonly #perUser: number;
  readonly #users = new Map<string, UserQueues>();

  /** @param perUser the most concurrent turns of one user */
  constructor(perUser: number) {
    this.#perUser = perUser;
  }

  /** Adds a turn that waits for its time. */
  add(entry: QueuedTurn): void {
    this.#queueOf(entry).waiting.push(entry);
  }

  /** Adds a turn that runs already. */
  occupy(entry: QueuedTurn): void {
    this.#queueOf(entry).running = entry;
    this.#users.get(entry.userId)!.running++;
  }

  /** The turns that may begin now; they count as running from here on. */
  take(now: number): QueuedTurn[] {
    const taken: QueuedTurn[] = [];
    for (const user of this.#users.values()) {
      const free = [...user.queues.values()].filter(({ running, waiting }) => !running && waiting.length > 0);
      const due = free.filter(({ waiting }) => waiting[0]!.notBefore <= now);
      due.sort((one, other) => (one.waiting[0]!.id < other.waiting[0]!.id ? -1 : 1));
      for (const queue of due.slice(0, Math.max(0, this.#perUser - user.running))) {
        const first = queue.waiting.shift()!;
        queue.running = first;
        user.running++;
        taken.push(first);
      }
    }
    return taken;
  }

  /** When the next turn becomes due that only waits for its time; `undefined` when there is none. */
  nextAt(): number | undefined {
    let next: number | undefined;
    for (const { queues, running } of this.#users.values()) {
      if (running >= this.#perUser) continue;
      for (const { running: busy, waiting } of queues.values()) {
        const at = busy ? undefined : waiting[0]?.notBefore;
        if (at !== undefined && (next === undefined || at < next)) next = at;
      }
    }
    return next;
  }

  /** The turn has ended. */
  release(entry: QueuedTurn): void {
    this.#leave(entry);
    this.#forget(entry);
  }

  /** The turn did not begin; it is the first of its conversation again. */
  putBack(entry: QueuedTurn, notBefore: number): void {
    this.#leave(entry);
    this.#queueOf(entry).waiting.unshift({ ...entry, notBefore });
  }

  /** The number of waiting turns of a conversation. */
  waiting({ userId, queue }: Pick<QueuedTurn, 'userId' | 'queue'>): number {
    return this.#users.get(userId)?.queues.get(queue)?.waiting.length ?? 0;
  }

  /** The number of waiting turns of a user. */
  waitingOf(userId: string): number {
    const queues = this.#users.get(userId)?.queues.values() ?? [];
    return [...queues].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  #queueOf({ userId, queue: name }: QueuedTurn): ConversationQueue {
    let user = this.#users.get(userId);
    if (!user) {
      user = { queues: new Map(), running: 0 };
      this.#users.set(userId, user);
    }
    let queue = user.queues.get(name);
    if (!queue) {
      queue = { waiting: [], running: undefined };
      user.queues.set(name, queue);
    }
    return queue;
  }

  #leave({ userId, queue }: QueuedTurn): void {
    const user = this.#users.get(userId)!;
    user.queues.get(queue)!.running = undefined;
    user.running--;
  }

  #forget({ userId, queue: name }: QueuedTurn): void {
    const user = this.#users.get(userId)!;
    if (user.queues.get(name)!.waiting.length === 0) user.queues.delete(name);
    if (user.queues.size === 0) this.#users.delete(userId);
  }
}
