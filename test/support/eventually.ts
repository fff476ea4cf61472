/** Waits for conditions. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
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

/** How much of the output of a process that has ended a failure quotes, in characters. */
const QUOTED = 2000;

/**
 * As {@link eventually}, for a condition that a process meets: fails as soon as the process has ended, with the end of
 * its output.
 *
 * @param output what it has printed so far; by default what it prints on its piped stderr from now on
 */
export async function eventuallyBy<T>(
  child: ChildProcess,
  what: string,
  check: () => T | undefined | false | Promise<T | undefined | false>,
  { limitMs, output }: { limitMs?: number; output?: () => string } = {},
): Promise<T> {
  let heard = '';
  const listen = (chunk: unknown) => {
    heard += String(chunk);
  };
  if (!output) child.stderr?.on('data', listen);
  try {
    return await eventually(
      what,
      async () => {
        // Asked first: the condition may hold because of what the process did before its end.
        const hasEnded = child.exitCode !== null || child.signalCode !== null;
        const found = await check();
        if (hasEnded && (found === undefined || found === false))
          assert.fail(
            `the process ended (${child.signalCode ?? child.exitCode}) before this: ${what}\n${(output?.() ?? heard).slice(-QUOTED)}`,
          );
        return found;
      },
      limitMs,
    );
  } finally {
    if (!output) child.stderr?.off('data', listen).resume();
  }
}
