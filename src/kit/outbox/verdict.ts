/** What chronosd's answer to a receipt means for it. Pure. */

/** A receipt that nobody has taken for this long is given up. */
const KEPT_MS = 24 * 3600 * 1000;
/** A fire that is not known yet may be: a wake can be accepted a moment before its database shows it to every replica. */
const YOUNG_MS = 60_000;

export type Verdict =
  /** It is recorded, now or before. */
  | 'taken'
  /** It will never be taken. */
  | 'given_up'
  /** This one may be taken later; what else waits may be taken now. */
  | 'later'
  /** Nothing will be taken at present. */
  | 'all_later';

/**
 * @param status of the answer; `undefined` when there was none
 * @param ageMs how long ago the earliest of the reported stages was
 */
export function verdictOf(status: number | undefined, ageMs: number): Verdict {
  if (status !== undefined && status >= 200 && status <= 299) return 'taken';
  if (ageMs >= KEPT_MS) return 'given_up';
  if (status === undefined || status >= 500 || status === 429 || status === 408) return 'all_later';
  // Not the receipt's fault: a token that was replaced is known over there in a moment, a clock or a name (Host) can be put right.
  if (status === 401 || status === 403) return 'later';
  if (status === 404) return ageMs < YOUNG_MS ? 'later' : 'given_up';
  // A redirect is somebody else's answer.
  if (status < 400) return 'later';
  return 'given_up';
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/**
 * When to try again after some failures in a row: twice as late each time, spread over the upper half of it.
 *
 * @param failures counts from 1
 * @param draw uniform in [0, 1)
 */
export function pauseMs(failures: number, draw: number): number {
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 20));
  return longest / 2 + (longest / 2) * draw;
}
