/**
 * Counts time from heartbeats. Pure. Spans are an ordered list without touching entries: the result is independent of the
 * order and number of beats.
 */
import { type ActiveSpan, ASLEEP_AFTER_MS, BEAT_MS, REAL_BREAK_MS } from './state.ts';

/** A beat may be this late: until then the user counts as present. */
const PRESENT_MS = 2 * BEAT_MS;

/** Whether two intervals are so close that presence in both means presence between them. */
export function areOne(one: ActiveSpan, other: ActiveSpan): boolean {
  return one.from - other.to <= ASLEEP_AFTER_MS && other.from - one.to <= ASLEEP_AFTER_MS;
}

/** The interval from the first start to the last end. */
export function joined(spans: readonly [ActiveSpan, ...ActiveSpan[]]): ActiveSpan {
  return spans.reduce(({ from, to }, span) => ({ from: Math.min(from, span.from), to: Math.max(to, span.to) }));
}

/** The part of the spans between two instants. */
export function cut(spans: readonly ActiveSpan[], from: number, to: number): ActiveSpan[] {
  return spans
    .map((span) => ({ from: Math.max(span.from, from), to: Math.min(span.to, to) }))
    .filter((span) => span.from <= span.to);
}

/**
 * The spans at `now`, without spans in the future, which a clock that stepped back may have left. The last one extends to
 * now while the next beat is due.
 */
export function knownAt(now: number, spans: readonly ActiveSpan[]): ActiveSpan[] {
  const known = cut(spans, Number.NEGATIVE_INFINITY, now);
  const last = known.pop();
  if (!last) return known;
  return [...known, now - last.to <= PRESENT_MS ? { from: last.from, to: now } : last];
}

const lengthOf = (spans: readonly ActiveSpan[]) => spans.reduce((sum, { from, to }) => sum + to - from, 0);

/** Active time between two instants, in milliseconds; 0 for a reversed order. */
export function activeBetween(spans: readonly ActiveSpan[], from: number, to: number): number {
  return lengthOf(cut(spans, from, to));
}

/**
 * Active time between two instants since the last real break before `to`, in milliseconds. Shorter gaps do not count and
 * do not restart the count; a break that lasts at `to` makes it 0.
 */
export function activeSinceBreak(spans: readonly ActiveSpan[], from: number, to: number): number {
  const between = cut(spans, from, to);
  let counted = 0;
  let next = to;
  for (const span of between.toReversed()) {
    if (next - span.to >= REAL_BREAK_MS) break;
    counted += span.to - span.from;
    next = span.from;
  }
  return counted;
}
