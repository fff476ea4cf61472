/** A clock that stands still until it is told otherwise. */
import type { Clock } from '../../clock/clock.ts';

export type ManualClock = Clock & {
  /** Moves time on and runs what became due, in order; lets what that sets off settle in between. */
  advance(ms: number): Promise<void>;
  /** How many timers wait. */
  timers(): number;
};

/** One turn of the event loop: everything that is ready has run afterwards. */
export function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function manualClock(startMs = Date.UTC(2026, 5, 15, 8, 10)): ManualClock {
  let now = startMs;
  const timers = new Set<{ at: number; callback: () => void }>();
  return {
    now: () => now,
    monotonic: () => now - startMs,
    after(delayMs, callback) {
      const timer = { at: now + delayMs, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(ms) {
      const until = now + ms;
      await eventLoopTurn();
      for (;;) {
        const due = [...timers].filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0];
        if (!due) break;
        timers.delete(due);
        now = Math.max(now, due.at);
        due.callback();
        await eventLoopTurn();
      }
      now = until;
      await eventLoopTurn();
    },
    timers: () => timers.size,
  };
}
