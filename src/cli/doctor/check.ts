/** One check of the doctor. */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';

/**
 * `ok`: correct. `note`: information without a problem (not running, not created yet). `warning`: works, but not well or
 * not for long. `broken`: does not work.
 */
export type CheckStatus = 'ok' | 'note' | 'warning' | 'broken';

export type Check = {
  name: string;
  status: CheckStatus;
  detail: string;
  remedy?: string;
};

/** The check of an error; our errors contain their remedy. */
export function brokenBy(name: string, error: unknown): Check {
  if (error instanceof ReveilleError) return { name, status: 'broken', detail: error.message };
  throw error;
}

/** Replaces the secrets that `reveille up` generates. */
export const STAND_INS = Object.fromEntries(
  ['TOKEN', 'AGENT_AUTH_SECRET', 'ADMIN_TOKEN', 'WAKE_TOKEN'].map((name) => [
    `CHRONOS_${name}`,
    `stand-in for ${name}`,
  ]),
);

/** Longer than the limits inside each check, also on a busy computer; it ends the doctor within 20 s. */
const LIMIT_MS = 15_000;

/** A check with a time limit. Its error is reported under its name; our errors contain their remedy. */
export async function inTime<T extends Check | readonly Check[] | undefined>(
  name: string,
  clock: Clock,
  work: () => T | Promise<T>,
): Promise<readonly Check[]> {
  const limit = new AbortController();
  const late = wait(clock, LIMIT_MS, limit.signal).then((): Check => {
    return { name, status: 'broken', detail: `unknown: the check took longer than ${LIMIT_MS / 1000} s` };
  });
  try {
    const found = await Promise.race([Promise.resolve().then(work), late]);
    return found === undefined ? [] : [found].flat();
  } catch (error) {
    return [brokenBy(name, error)];
  } finally {
    limit.abort();
  }
}
