/**
 * Decides which turns may begin. A conversation runs one turn at a time, in the order of acceptance. A group has a
 * limited number of concurrent turns, and its conversations take turns. It contains nothing that the store does not.
 * Pure.
 */

export type QueuedTurn = {
  id: string;
  /** Position in the order of acceptance. */
  seq: number;
  group: string;
  /** Unique within the group. */
  conversation: string;
  /** Epoch milliseconds; 0: now. */
  notBefore: number;
  /** Whether later turns of the conversation may begin while this one waits for its time. */
  isParked: boolean;
  /** Of a parked turn: only its time ends the wait, or {@link TurnQueues.hurry}. */
  isHeld?: boolean;
};

type Conversation = { waiting: QueuedTurn[]; running: QueuedTurn | undefined };

/** `ready`: conversations with waiting turns and none running, in the order of their next start. */
type Group = { conversations: Map<string, Conversation>; ready: Set<Conversation>; running: number; waiting: number };

export class TurnQueues {
  readonly #limit: number;
  readonly #groups = new Map<string, Group>();
  readonly #parked = new Map<string, QueuedTurn>();

  /** @param limit the most concurrent turns of one group */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds a turn that waits; one that did not begin has its old place again. */
  add(entry: QueuedTurn): void {
    if (entry.isParked) {
      this.#parked.set(entry.id, entry);
      return;
    }
    const { group, conversation } = this.#placeOf(entry);
    const { waiting } = conversation;
    waiting.splice(waiting.findLastIndex(({ seq }) => seq < entry.seq) + 1, 0, entry);
    group.waiting++;
    if (!conversation.running) group.ready.add(conversation);
  }

  /** Adds a turn that runs already. */
  occupy(entry: QueuedTurn): void {
    const { group, conversation } = this.#placeOf(entry);
    conversation.running = entry;
    group.running++;
    group.ready.delete(conversation);
  }

  /** The turns that may begin now; they count as running from here on. */
  take(now: number): QueuedTurn[] {
    this.release(now);
    const taken: QueuedTurn[] = [];
    for (const group of this.#groups.values()) {
      for (const conversation of group.ready) {
        if (group.running >= this.#limit) break;
        if (conversation.waiting[0]!.notBefore > now) continue;
        const first = conversation.waiting.shift()!;
        group.waiting--;
        this.occupy(first);
        taken.push(first);
      }
    }
    return taken;
  }

  /** Ends the waits of parked turns up to a time. @param isOver whether that time has come, also for held turns */
  release(upTo: number, isOver = true): void {
    for (const entry of this.#parked.values()) {
      if (entry.notBefore > upTo || (entry.isHeld && !isOver)) continue;
      this.hurry(entry.id);
    }
  }

  /** Ends the wait of a parked turn. @returns whether it was parked */
  hurry(id: string): boolean {
    const entry = this.#parked.get(id);
    if (!entry) return false;
    this.#parked.delete(id);
    this.add({ ...entry, notBefore: 0, isParked: false, isHeld: false });
    return true;
  }

  /** When the next parked turn is due; `undefined` without any. */
  nextParkedAt(): number | undefined {
    return earliest([...this.#parked.values()].map(({ notBefore }) => notBefore));
  }

  /** When the next turn becomes due that only waits for its time; `undefined` when there is none. */
  nextAt(): number | undefined {
    const free = [...this.#groups.values()].filter(({ running }) => running < this.#limit);
    const times = free.flatMap(({ ready }) => [...ready].map(({ waiting }) => waiting[0]!.notBefore));
    return earliest([this.nextParkedAt() ?? Number.POSITIVE_INFINITY, ...times]);
  }

  /** The turn runs no more; it has ended, or is added again. */
  leave(entry: QueuedTurn): void {
    const { group, conversation } = this.#placeOf(entry);
    conversation.running = undefined;
    group.running--;
    if (conversation.waiting.length > 0) group.ready.add(conversation);
    else this.#forget(entry);
  }

  /** Removes a waiting turn. @returns it, or `undefined` when it does not wait */
  remove(id: string): QueuedTurn | undefined {
    const parked = this.#parked.get(id);
    this.#parked.delete(id);
    if (parked) return parked;
    for (const group of this.#groups.values()) {
      for (const conversation of group.conversations.values()) {
        const place = conversation.waiting.findIndex((entry) => entry.id === id);
        if (place < 0) continue;
        const [entry] = conversation.waiting.splice(place, 1);
        group.waiting--;
        if (conversation.waiting.length === 0) {
          group.ready.delete(conversation);
          if (!conversation.running) this.#forget(entry!);
        }
        return entry;
      }
    }
    return undefined;
  }

  /** The number of waiting turns of a conversation, without parked ones. */
  waiting({ group, conversation }: Pick<QueuedTurn, 'group' | 'conversation'>): number {
    return this.#groups.get(group)?.conversations.get(conversation)?.waiting.length ?? 0;
  }

  /** The number of waiting turns of a group, without parked ones. */
  waitingOf(group: string): number {
    return this.#groups.get(group)?.waiting ?? 0;
  }

  #placeOf({ group: groupName, conversation: name }: QueuedTurn): { group: Group; conversation: Conversation } {
    let group = this.#groups.get(groupName);
    if (!group) {
      group = { conversations: new Map(), ready: new Set(), running: 0, waiting: 0 };
      this.#groups.set(groupName, group);
    }
    let conversation = group.conversations.get(name);
    if (!conversation) {
      conversation = { waiting: [], running: undefined };
      group.conversations.set(name, conversation);
    }
    return { group, conversation };
  }

  #forget({ group: groupName, conversation }: QueuedTurn): void {
    const group = this.#groups.get(groupName)!;
    group.conversations.delete(conversation);
    if (group.conversations.size === 0) this.#groups.delete(groupName);
  }
}

function earliest(times: readonly number[]): number | undefined {
  const first = times.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY);
  return first === Number.POSITIVE_INFINITY ? undefined : first;
}
