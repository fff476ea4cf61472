/** Waiting for what comes about by itself. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';

/** The first look comes soon; whoever has waited long looks less often, as each look may cost another process work. */
const PAUSE_MS = { least: 5, most: 200, share: 0.1 };
/** Enough for a computer that is busy with other things: only what never comes about fails. */
const LIMIT_MS = 60_000;

/**
 * Looks until there is something to see: every few milliseconds at first, then with pauses that grow with the wait.
 *
 * @param what a sentence about what is waited for; the failure says that it did not come about
 * @returns what was seen, neither `false` nor `undefined`
 */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  limitMs: number = LIMIT_MS,
): Promise<T> {
  const start = performance.now();
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    const waited = performance.now() - start;
    assert.ok(waited < limitMs, `it did not come about within ${limitMs} ms: ${what}`);
    await delay(Math.min(Math.max(waited * PAUSE_MS.share, PAUSE_MS.least), PAUSE_MS.most));
  }
}
