/** Windows: the tick of the session's last input against the tick of now. */
import type { IdleProbe } from './idle.ts';
import type { TickCounts } from './windows-ticks.ts';

/** Ticks are milliseconds since the system started, in 32 bits: they begin anew every 49.7 days. */
const TICKS = 2 ** 32;
/** Input carries a tick of its own, which may be a little ahead of the counter. */
const AHEAD_MS = 60_000;

/**
 * @param load brings the system calls; not called before the first reading
 */
export function windowsProbe(load: () => Promise<() => TickCounts>): IdleProbe {
  const name = 'windows';
  return {
    name,
    async read() {
      const { lastInput, now } = (await load())();
      return { idleMs: idleBetween(lastInput, now), source: name };
    },
  };
}

/**
 * Milliseconds from one tick to a later one.
 *
 * @param lastInput and `now`: unsigned, 32 bits; not a number otherwise
 */
export function idleBetween(lastInput: number, now: number): number {
  if (![lastInput, now].every((tick) => Number.isInteger(tick) && tick >= 0 && tick < TICKS)) return Number.NaN;
  const passed = (now - lastInput) >>> 0;
  return passed > TICKS - AHEAD_MS ? 0 : passed;
}
