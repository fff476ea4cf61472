/** One thing that the doctor looked at. */
import { ReveilleError } from '../../wire/errors.ts';

/**
 * `ok`: as it should be. `note`: worth knowing, nothing to mend (not running, not made yet). `warning`: works, but not well or
 * not for long. `broken`: does not work.
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
