/** Waiting for what comes about by itself. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';

const LOOK_EVERY_MS = 5;
/** Enough for a computer that is busy with other things: only what never comes about fails. */
const LIMIT_MS = 60_000;

/**
 * Looks every few milliseconds until there is something to see.
 *
 * @param what a sentence about what is waited for; the failure says that it did not come about
 * @returns what was seen, neither `false` nor `undefined`
 */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  limitMs: number = LIMIT_MS,
): Promise<T> {
  const end = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    assert.ok(performance.now() < end, `it did not come about within ${limitMs} ms: ${what}`);
    await delay(LOOK_EVERY_MS);
  }
}
