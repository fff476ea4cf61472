/** Waits for conditions. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';

/** The first checks follow quickly; later checks are rarer, because each may cost another process work. */
const PAUSE_MS = { least: 5, most: 200, share: 0.1 };
/** Enough for a busy computer: only a condition that never holds fails. */
const LIMIT_MS = 60_000;

/**
 * Checks until the condition holds: every few milliseconds at first, then with pauses that grow with the wait.
 *
 * @param what the expected condition as a sentence, which the failure message contains
 * @returns the value of the check, neither `false` nor `undefined`
 */
export async function eventually<T>(
  what: string,
  check: () => T | undefined | false | Promise<T | undefined | false>,
  limitMs: number = LIMIT_MS,
): Promise<T> {
  const start = performance.now();
  for (;;) {
    const found = await check();
    if (found !== undefined && found !== false) return found;
    const waited = performance.now() - start;
    assert.ok(waited < limitMs, `not met within ${limitMs} ms: ${what}`);
    await delay(Math.min(Math.max(waited * PAUSE_MS.share, PAUSE_MS.least), PAUSE_MS.most));
  }
}
