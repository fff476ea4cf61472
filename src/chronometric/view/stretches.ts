/**
 * A day cut into stretches: active or away, and the session that each belongs to. Pure; instants are epoch
 * milliseconds.
 */
import type { ActiveSpan, Session } from '../state/state.ts';

/** Half-open. */
export type Bounds = { readonly from: number; readonly to: number };

export type Stretch = Bounds & {
  readonly kind: 'active' | 'away';
  /** The session that it belongs to; none between sessions. */
  readonly sessionId?: string;
};

/** From when until when a session goes, as far as that is known: an open one until it was last seen. */
export function extentOf({ startedAt, endedAt, lastSeenAt }: Session): Bounds {
  return { from: startedAt, to: Math.max(startedAt, endedAt ?? lastSeenAt) };
}

/** What of a stretch of time lies in another; it may be empty, and then `to` is not after `from`. */
export function within(bounds: Bounds, { from, to }: Bounds): Bounds {
  return { from: Math.max(from, bounds.from), to: Math.min(to, bounds.to) };
}

const isEmpty = ({ from, to }: Bounds) => to <= from;

/** Parts that lie in the bounds, in order; their ends are never asked for in another order than that of time. */
function inOrder<T extends Bounds>(bounds: Bounds, parts: readonly T[]): T[] {
  return parts
    .map((part) => ({ ...part, ...within(bounds, part) }))
    .filter((part) => !isEmpty(part))
    .sort((one, other) => one.from - other.from);
}

/** Answers for rising instants which part holds there: of several that lie over each other, the one that began last. */
function holding<T extends Bounds>(parts: readonly T[]): (instant: number) => T | undefined {
  const begun: T[] = [];
  let next = 0;
  return (instant) => {
    while (next < parts.length && parts[next]!.from <= instant) begun.push(parts[next++]!);
    while (begun.length > 0 && begun.at(-1)!.to <= instant) begun.pop();
    return begun.at(-1);
  };
}

/**
 * Cuts a day into stretches that follow one another without a gap, from the first sign of somebody to the last. Nothing
 * is counted twice: of sessions that lie over each other, as they do after the clock has stepped back, the one that
 * began last counts.
 *
 * @param bounds of the day
 * @param spans when somebody was there, in any order
 */
export function stretchesOf(
  bounds: Bounds,
  sessions: readonly Session[],
  spans: readonly ActiveSpan[],
): readonly Stretch[] {
  const known = inOrder(
    bounds,
    sessions.map((session) => ({ ...extentOf(session), id: session.id })),
  );
  const active = inOrder(bounds, spans);
  const cuts = [...new Set([...known, ...active].flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b);
  const sessionAt = holding(known);
  const activeAt = holding(active);
  const stretches: Stretch[] = [];
  for (const [at, from] of cuts.slice(0, -1).entries()) {
    const to = cuts[at + 1]!;
    const kind = activeAt(from) ? 'active' : 'away';
    const sessionId = sessionAt(from)?.id;
    const last = stretches.at(-1);
    if (last?.kind === kind && last.sessionId === sessionId) stretches.splice(-1, 1, { ...last, to });
    else stretches.push({ kind, from, to, ...(sessionId !== undefined && { sessionId }) });
  }
  return stretches;
}

/** How long stretches are together, in milliseconds. */
export function lengthOf(stretches: readonly Bounds[]): number {
  return stretches.reduce((sum, { from, to }) => sum + to - from, 0);
}
