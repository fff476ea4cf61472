/**
 * Counting time from heartbeats. Pure. Spans are kept as a list in order, none touching another: whatever the order in
 * which beats of several processes arrive, and however often, the list is the same.
 */
import { type ActiveSpan, ASLEEP_AFTER_MS, BEAT_MS, REAL_BREAK_MS } from './state.ts';

/** A beat may come as late as this and still be expected: until then the person counts as there. */
const PRESENT_MS = 2 * BEAT_MS;

/** Whether two stretches are so close that whoever was there for both was there between them too. */
export function areOne(one: ActiveSpan, other: ActiveSpan): boolean {
  return one.from - other.to <= ASLEEP_AFTER_MS && other.from - one.to <= ASLEEP_AFTER_MS;
}

/** The stretch from the first beginning to the last end. */
export function joined(spans: readonly [ActiveSpan, ...ActiveSpan[]]): ActiveSpan {
  return spans.reduce(({ from, to }, span) => ({ from: Math.min(from, span.from), to: Math.max(to, span.to) }));
}

/** What of the spans lies between two instants. */
export function cut(spans: readonly ActiveSpan[], from: number, to: number): ActiveSpan[] {
  return spans
    .map((span) => ({ from: Math.max(span.from, from), to: Math.min(span.to, to) }))
    .filter((span) => span.from <= span.to);
}

/**
 * The spans as they are known at `now`: none of the future, where a clock that has stepped back may have left some, and
 * the last one up to now while the next beat is still due.
 */
export function knownAt(now: number, spans: readonly ActiveSpan[]): ActiveSpan[] {
  const known = cut(spans, Number.NEGATIVE_INFINITY, now);
  const last = known.pop();
  if (!last) return known;
  return [...known, now - last.to <= PRESENT_MS ? { from: last.from, to: now } : last];
}

const lengthOf = (spans: readonly ActiveSpan[]) => spans.reduce((sum, { from, to }) => sum + to - from, 0);

/** Active time between two instants, in milliseconds; 0 where they are the wrong way round. */
export function activeBetween(spans: readonly ActiveSpan[], from: number, to: number): number {
  return lengthOf(cut(spans, from, to));
}

/**
 * Active time between two instants since the last real break before `to`, in milliseconds. Shorter gaps are not
 * counted, but do not begin the count anew; a break that still goes on at `to` makes it 0.
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
