/** Windows: the tick of the session's last input against the tick of now. */
import { ReveilleError } from '../../wire/errors.ts';
import type { IdleProbe } from './idle.ts';

/** Unsigned, 32 bits, milliseconds. */
type TickCounts = { readonly lastInput: number; readonly now: number };

/** Loads koffi and finds the calls. @throws `unavailable` when koffi is not installed for this processor */
export async function loadTickCounts(): Promise<() => TickCounts> {
  const { default: koffi } = await import('koffi').catch((cause) => {
    throw new ReveilleError('unavailable', 'the package koffi cannot be loaded', { cause });
  });
  const info = koffi.struct({ cbSize: 'uint32_t', dwTime: 'uint32_t' });
  const infoPointer = koffi.inout(koffi.pointer(info));
  const getLastInputInfo = koffi.load('user32.dll').func('__stdcall', 'GetLastInputInfo', 'int', [infoPointer]);
  const getTickCount = koffi.load('kernel32.dll').func('__stdcall', 'GetTickCount', 'uint32_t', []);
  return () => {
    const answer = { cbSize: koffi.sizeof(info), dwTime: 0 };
    if (getLastInputInfo(answer) === 0) throw new ReveilleError('unavailable', 'GetLastInputInfo failed');
    // In this order the counter is not behind the input.
    return { lastInput: answer.dwTime, now: getTickCount() };
  };
}

/** Ticks are milliseconds since the system started, in 32 bits: they restart at 0 every 49.7 days. */
const TICKS = 2 ** 32;
/** The tick of an input may be slightly ahead of the counter. */
const AHEAD_MS = 60_000;

/** @param load returns the system calls; first called by the first reading */
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
 * @param lastInput and `now`: unsigned, 32 bits
 * @returns NaN for other numbers
 */
export function idleBetween(lastInput: number, now: number): number {
  if (![lastInput, now].every((tick) => Number.isInteger(tick) && tick >= 0 && tick < TICKS)) return Number.NaN;
  const passed = (now - lastInput) >>> 0;
  return passed > TICKS - AHEAD_MS ? 0 : passed;
}
