/** What waits for the next turn of the event loop: counted, so that simulated time need not take turns for nothing. */

export type Immediates = {
  readonly waiting: number;
  /** Resolves in the next turn. */
  turn(): Promise<void>;
  /** Puts back what was there. */
  stopCounting(): void;
};

/** Counts from now on what anybody puts off with the global `setImmediate`. */
export function countImmediates(): Immediates {
  const { setImmediate: set, clearImmediate: clear } = globalThis;
  const waiting = new Set<NodeJS.Immediate>();
  globalThis.setImmediate = ((callback: (...parameters: unknown[]) => void, ...parameters: unknown[]) => {
    const immediate = set(() => {
      waiting.delete(immediate);
      callback(...parameters);
    });
    waiting.add(immediate);
    return immediate;
  }) as typeof set;
  globalThis.clearImmediate = (immediate) => {
    if (immediate) waiting.delete(immediate);
    clear(immediate);
  };
  return {
    get waiting() {
      return waiting.size;
    },
    turn: () => new Promise((resolve) => set(resolve)),
    stopCounting() {
      Object.assign(globalThis, { setImmediate: set, clearImmediate: clear });
    },
  };
}
