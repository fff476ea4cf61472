/**
 * Signals inside the process that the stored state of a user's machine, or its current activity, may have changed. A
 * listener reads it again; signals may be superfluous.
 */
export class StateSignal {
  readonly #listeners = new Map<string, Set<() => void>>();

  /** @param listener must not throw @returns ends it */
  listen(userId: string, listener: () => void): () => void {
    const own = this.#listeners.get(userId) ?? new Set();
    this.#listeners.set(userId, own.add(listener));
    return () => {
      own.delete(listener);
      if (own.size === 0 && this.#listeners.get(userId) === own) this.#listeners.delete(userId);
    };
  }

  notify(userId: string): void {
    for (const listener of [...(this.#listeners.get(userId) ?? [])]) listener();
  }
}
