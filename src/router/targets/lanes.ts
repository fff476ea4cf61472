/**
 * Decides which turns may begin. A conversation runs one turn at a time, in the order of acceptance, also when the
 * first one has to wait. A user has a limited number of concurrent turns over all conversations. It contains nothing
 * that the store does not. Pure.
 */

/** `id` identifies the turn; ids sort by their time of acceptance. */
export type Entry = { id: string; userId: string; lane: string; notBefore: number };

type Lane = { waiting: Entry[]; running: Entry | undefined };

type User = { lanes: Map<string, Lane>; running: number };

export class Lanes {
  readonly #perUser: number;
  readonly #users = new Map<string, User>();

  /** @param perUser the most concurrent turns of one user */
  constructor(perUser: number) {
    this.#perUser = perUser;
  }

  /** Adds a turn that waits for its time. */
  add(entry: Entry): void {
    this.#lane(entry).waiting.push(entry);
  }

  /** Adds a turn that runs already. */
  occupy(entry: Entry): void {
    this.#lane(entry).running = entry;
    this.#users.get(entry.userId)!.running++;
  }

  /** The turns that may begin now; they count as running from here on. */
  take(now: number): Entry[] {
    const taken: Entry[] = [];
    for (const user of this.#users.values()) {
      const free = [...user.lanes.values()].filter(({ running, waiting }) => !running && waiting.length > 0);
      const due = free.filter(({ waiting }) => waiting[0]!.notBefore <= now);
      due.sort((one, other) => (one.waiting[0]!.id < other.waiting[0]!.id ? -1 : 1));
      for (const lane of due.slice(0, Math.max(0, this.#perUser - user.running))) {
        const first = lane.waiting.shift()!;
        lane.running = first;
        user.running++;
        taken.push(first);
      }
    }
    return taken;
  }

  /** When the next turn becomes due that only waits for its time; `undefined` when there is none. */
  nextAt(): number | undefined {
    let next: number | undefined;
    for (const { lanes, running } of this.#users.values()) {
      if (running >= this.#perUser) continue;
      for (const { running: busy, waiting } of lanes.values()) {
        const at = busy ? undefined : waiting[0]?.notBefore;
        if (at !== undefined && (next === undefined || at < next)) next = at;
      }
    }
    return next;
  }

  /** The turn has ended. */
  release(entry: Entry): void {
    this.#leave(entry);
    this.#forget(entry);
  }

  /** The turn did not begin; it is the first of its conversation again. */
  putBack(entry: Entry, notBefore: number): void {
    this.#leave(entry);
    this.#lane(entry).waiting.unshift({ ...entry, notBefore });
  }

  /** The number of waiting turns of a conversation. */
  waiting({ userId, lane }: Pick<Entry, 'userId' | 'lane'>): number {
    return this.#users.get(userId)?.lanes.get(lane)?.waiting.length ?? 0;
  }

  /** The number of waiting turns of a user. */
  waitingOf(userId: string): number {
    const lanes = this.#users.get(userId)?.lanes.values() ?? [];
    return [...lanes].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  #lane({ userId, lane: name }: Entry): Lane {
    let user = this.#users.get(userId);
    if (!user) {
      user = { lanes: new Map(), running: 0 };
      this.#users.set(userId, user);
    }
    let lane = user.lanes.get(name);
    if (!lane) {
      lane = { waiting: [], running: undefined };
      user.lanes.set(name, lane);
    }
    return lane;
  }

  #leave({ userId, lane }: Entry): void {
    const user = this.#users.get(userId)!;
    user.lanes.get(lane)!.running = undefined;
    user.running--;
  }

  #forget({ userId, lane: name }: Entry): void {
    const user = this.#users.get(userId)!;
    if (user.lanes.get(name)!.waiting.length === 0) user.lanes.delete(name);
    if (user.lanes.size === 0) this.#users.delete(userId);
  }
}
