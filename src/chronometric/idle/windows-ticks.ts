/** The two system calls of the Windows probe. Loaded there alone. */
import { ReveilleError } from '../../wire/errors.ts';

/** Unsigned, 32 bits, milliseconds. */
export type TickCounts = { readonly lastInput: number; readonly now: number };

/**
 * Loads koffi and finds the calls.
 *
 * @throws `unavailable` where koffi was not installed, or not for this processor
 */
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
    // In this order: the counter is not behind the input then.
    return { lastInput: answer.dwTime, now: getTickCount() };
  };
}
