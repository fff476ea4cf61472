/**
 * What one look at the person is worth: a beat, a beat that reaches back over a short pause, or none. Pure. Of how long the operating
 * system was idle nothing comes out of here but that: the instants of beats are those of the looks.
 */
import { ASLEEP_AFTER_MS, BEAT_MS, REAL_BREAK_MS } from './state.ts';

/** What is remembered from one look to the next, in memory only. */
export type Presence = {
  readonly lookedAt: number;
  /** The last beat, where the process has lived through all of the time since. */
  readonly beatAt: number | undefined;
  /** They were seen to be away for as long as a real break, and have not come back yet. */
  readonly onBreak: boolean;
};

export type Beat = { readonly at: number; readonly since: number };

/**
 * @param before the look before this one; `undefined` for the first
 * @param now epoch milliseconds
 * @param idleMs since the last key or pointer movement; `undefined` where nothing is known, and then the person counts as there
 */
export function look(
  before: Presence | undefined,
  now: number,
  idleMs: number | undefined,
): { readonly presence: Presence; readonly beat?: Beat } {
  const past = before && livedThrough(before, now) ? before : undefined;
  if (idleMs === undefined) return { presence: thereAt(now), beat: { at: now, since: now } };
  const onBreak = past?.onBreak === true || idleMs >= REAL_BREAK_MS;
  if (idleMs >= BEAT_MS) return { presence: { lookedAt: now, beatAt: past?.beatAt, onBreak } };
  return { presence: thereAt(now), beat: beatAfter(past?.beatAt, now, onBreak) };
}

const thereAt = (now: number): Presence => ({ lookedAt: now, beatAt: now, onBreak: false });

/** A gap in wall time is sleep or a stop of the process, and a step back of the clock has no length. Nothing is counted over either. */
const livedThrough = ({ lookedAt }: Presence, now: number) => now >= lookedAt && now - lookedAt <= ASLEEP_AFTER_MS;

function beatAfter(last: number | undefined, now: number, onBreak: boolean): Beat {
  if (last === undefined) return { at: now, since: now };
  if (!onBreak) return { at: now, since: last };
  // Looks are a little early or late; what was a real break has to be as long as one between the beats too.
  const at = Math.max(now, last + REAL_BREAK_MS);
  return { at, since: at };
}
