/** One thing that the doctor looked at. */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';

/**
 * `ok`: as it should be. `note`: worth knowing, nothing to mend (not running, not made yet). `warning`: works, but not
 * well or not for long. `broken`: does not work.
 */
export type CheckStatus = 'ok' | 'note' | 'warning' | 'broken';

export type Check = {
  name: string;
  status: CheckStatus;
  /** What was found. */
  detail: string;
  /** What to do about it. */
  remedy?: string;
};

/** The check that an error makes; errors of ours carry their remedy in their message. */
export function brokenBy(name: string, error: unknown): Check {
  if (error instanceof ReveilleError) return { name, status: 'broken', detail: error.message };
  throw error;
}

/** What `read` gives, or `undefined` where it fails with an error that another check reports. */
export function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof ReveilleError) return undefined;
    throw error;
  }
}

/** In place of the secrets that `reveille up` makes. */
export const STAND_INS = Object.fromEntries(
  ['TOKEN', 'AGENT_AUTH_SECRET', 'ADMIN_TOKEN', 'WAKE_TOKEN'].map((name) => [
    `CHRONOS_${name}`,
    `stand-in for ${name}`,
  ]),
);

/** Longer than each check's own limits together; with it the doctor ends within 10 s whatever hangs. */
const LIMIT_MS = 8000;

/** A check that ends in time: what hangs is said to. */
export async function inTime<T extends Check | readonly Check[] | undefined>(
  name: string,
  clock: Clock,
  work: () => T | Promise<T>,
): Promise<readonly Check[]> {
  const limit = new AbortController();
  const late = wait(clock, LIMIT_MS, limit.signal).then((): Check => {
    return { name, status: 'broken', detail: `not known: looking took longer than ${LIMIT_MS / 1000} s` };
  });
  try {
    const found = await Promise.race([Promise.resolve().then(work), late]);
    return found === undefined ? [] : [found].flat();
  } finally {
    limit.abort();
  }
}
