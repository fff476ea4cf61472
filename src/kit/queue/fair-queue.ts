/**
 * Work that waits for a place, with one queue for each host and user. Hosts take turns, and the users of a host take
 * turns, so neither a slow host nor a user with much work delays the others. No operation depends on the number of
 * waiting entries.
 */

/** Work for a user that is done at a host. */
export type Placed = { readonly host: string; readonly userId: string };

/** Entries that are under way at the same time. */
export type Places = { readonly inAll: number; readonly ofHost: number; readonly ofUser: number };

type Host<Entry> = { running: number; readonly users: Map<string, Set<Entry>> };

export class FairQueue<Entry extends Placed> {
  readonly #places: Places;
  readonly #hosts = new Map<string, Host<Entry>>();
  /** Hosts with waiting entries and a free place; the next one first. */
  readonly #ready = new Map<string, Host<Entry>>();
  readonly #ofUser = new Map<string, number>();
  #running = 0;

  constructor(places: Places) {
    this.#places = places;
  }

  /** An entry that waits already keeps its place. */
  add(entry: Entry): void {
    const host = this.#hosts.get(entry.host) ?? { running: 0, users: new Map<string, Set<Entry>>() };
    this.#hosts.set(entry.host, host);
    const own = host.users.get(entry.userId);
    if (own) own.add(entry);
    else host.users.set(entry.userId, new Set([entry]));
    this.#keep(entry.host, host);
  }

  /** Removes an entry that waits. */
  remove(entry: Entry): void {
    const host = this.#hosts.get(entry.host);
    const own = host?.users.get(entry.userId);
    if (!host || !own?.delete(entry)) return;
    if (own.size === 0) host.users.delete(entry.userId);
    this.#keep(entry.host, host);
  }

  /** Takes the next entry, if it has a place; its end is reported by {@link done}. */
  next(): Entry | undefined {
    if (this.#running >= this.#places.inAll) return undefined;
    for (const [name, host] of this.#ready)
      for (const [userId, own] of host.users) {
        const ofUser = this.#ofUser.get(userId) ?? 0;
        if (ofUser >= this.#places.ofUser) continue;
        const [entry] = own;
        own.delete(entry!);
        // The next turn is that of another user, and of another host.
        host.users.delete(userId);
        if (own.size > 0) host.users.set(userId, own);
        host.running++;
        this.#running++;
        this.#ofUser.set(userId, ofUser + 1);
        this.#ready.delete(name);
        this.#keep(name, host);
        return entry;
      }
    return undefined;
  }

  done({ host: name, userId }: Placed): void {
    const host = this.#hosts.get(name)!;
    host.running--;
    this.#running--;
    const ofUser = this.#ofUser.get(userId)! - 1;
    if (ofUser === 0) this.#ofUser.delete(userId);
    else this.#ofUser.set(userId, ofUser);
    this.#keep(name, host);
  }

  #keep(name: string, host: Host<Entry>): void {
    if (host.users.size > 0 && host.running < this.#places.ofHost) {
      if (!this.#ready.has(name)) this.#ready.set(name, host);
    } else this.#ready.delete(name);
    if (host.users.size === 0 && host.running === 0) this.#hosts.delete(name);
  }
}
