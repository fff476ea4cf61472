/** How long to wait before a server is started again. */

const FIRST_MS = 1000;
const LONGEST_MS = 60_000;

/**
 * Doubles from one second to one minute.
 *
 * @param failures how often in a row it has failed, from 1
 * @returns milliseconds
 */
export function restartDelayMs(failures: number): number {
  return Math.min(FIRST_MS * 2 ** Math.max(0, failures - 1), LONGEST_MS);
}
