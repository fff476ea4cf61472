/**
 * Counts callbacks that wait for the next turn of the event loop, so that simulated time takes no unnecessary turns.
 */

export type Immediates = {
  readonly waiting: number;
  /** Resolves in the next turn. */
  turn(): Promise<void>;
  /** Restores the original function. */
  stopCounting(): void;
};

/** Counts from now on all uses of the global `setImmediate`. */
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
