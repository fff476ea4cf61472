/** A day cut into intervals: active or away, with their sessions. Pure; instants are epoch milliseconds. */
import type { ActiveSpan, Session } from '../state/state.ts';

/** Half-open. */
export type Bounds = { readonly from: number; readonly to: number };

export type Interval = Bounds & {
  readonly kind: 'active' | 'away';
  /** Its session; none between sessions. */
  readonly sessionId?: string;
};

/** Start and end of a session as far as known: an open one ends at its last sign. */
export function extentOf({ startedAt, endedAt, lastSeenAt }: Session): Bounds {
  return { from: startedAt, to: Math.max(startedAt, endedAt ?? lastSeenAt) };
}

/** The part of an interval within another; it may be empty, and then `to` is not after `from`. */
export function within(bounds: Bounds, { from, to }: Bounds): Bounds {
  return { from: Math.max(from, bounds.from), to: Math.min(to, bounds.to) };
}

const isEmpty = ({ from, to }: Bounds) => to <= from;

/** Parts within the bounds, in order; ends are queried in the order of time. */
function inOrder<T extends Bounds>(bounds: Bounds, parts: readonly T[]): T[] {
  return parts
    .map((part) => ({ ...part, ...within(bounds, part) }))
    .filter((part) => !isEmpty(part))
    .sort((one, other) => one.from - other.from);
}

/** Returns for rising instants the part that applies: of overlapping ones, the last started one. */
function currentPart<T extends Bounds>(parts: readonly T[]): (instant: number) => T | undefined {
  const begun: T[] = [];
  let next = 0;
  return (instant) => {
    while (next < parts.length && parts[next]!.from <= instant) begun.push(parts[next++]!);
    while (begun.length > 0 && begun.at(-1)!.to <= instant) begun.pop();
    return begun.at(-1);
  };
}

/**
 * Cuts a day into adjacent intervals, from the first sign of presence to the last. Nothing is counted twice: of
 * overlapping sessions, as after a clock that stepped back, the last started one counts.
 *
 * @param bounds of the day
 * @param spans of presence, in any order
 */
export function intervalsOf(
  bounds: Bounds,
  sessions: readonly Session[],
  spans: readonly ActiveSpan[],
): readonly Interval[] {
  const known = inOrder(
    bounds,
    sessions.map((session) => ({ ...extentOf(session), id: session.id })),
  );
  const active = inOrder(bounds, spans);
  const cuts = [...new Set([...known, ...active].flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b);
  const sessionAt = currentPart(known);
  const activeAt = currentPart(active);
  const intervals: Interval[] = [];
  for (const [at, from] of cuts.slice(0, -1).entries()) {
    const to = cuts[at + 1]!;
    const kind = activeAt(from) ? 'active' : 'away';
    const sessionId = sessionAt(from)?.id;
    const last = intervals.at(-1);
    if (last?.kind === kind && last.sessionId === sessionId) intervals.splice(-1, 1, { ...last, to });
    else intervals.push({ kind, from, to, ...(sessionId !== undefined && { sessionId }) });
  }
  return intervals;
}

/** The total length of intervals, in milliseconds. */
export function lengthOf(intervals: readonly Bounds[]): number {
  return intervals.reduce((sum, { from, to }) => sum + to - from, 0);
}
