/**
 * The interface of the state that several servers on one computer share: sessions, presence, and the last prompt. It is
 * stored in SQLite; every write is one transaction. A busy, full or read-only disk makes writes throw ReveilleError
 * `unavailable` with nothing stored, and the next call tries again. Reads create no folder and no file. They throw
 * `unavailable` when the file cannot be read, and find nothing without one. Instants are epoch milliseconds by the wall
 * clock, which may step back: then nothing is counted twice and nothing becomes negative.
 */

export type Session = {
  /** UUIDv4 */
  readonly id: string;
  /** Unchanged. */
  readonly intent: string;
  readonly startedAt: number;
  /** The last prompt, or the last heartbeat on the same logical day. */
  readonly lastSeenAt: number;
  readonly endedAt?: number;
  readonly summary?: string;
  /** `ended` by the tool, `auto_closed` by the next start. */
  readonly ending?: 'ended' | 'auto_closed';
  /** Active time in milliseconds: awake, and not away where that is known. */
  readonly activeMs: number;
  /** Active time since it began or since the last break of five minutes or more. */
  readonly activeSinceBreakMs: number;
};

/** An interval of presence. */
export type ActiveSpan = { readonly from: number; readonly to: number };

export type ChronometricState = {
  /**
   * The user sent a prompt, by a client's prompt hook. Continues the open session.
   *
   * @returns the time of the previous prompt; `undefined` without one; never later than `now`
   */
  prompted(now: number): number | undefined;
  /** The time of the user's last prompt in any program; `undefined` without one. Only reads. */
  lastPromptAt(): number | undefined;
  /**
   * The process runs, and the user is present as far as known. Called every {@link BEAT_MS}.
   *
   * @param since the user was present from then on, although no beat recorded it
   */
  beat(now: number, since?: number): void;
  /** The open session, at the state's current time. Only reads. */
  open(): Session | undefined;
  /**
   * Opens a session. An open one is closed at its last sign.
   *
   * @throws ChronometricError `SESSION_ALREADY_OPEN` when one is open and `overlap` is `error`
   */
  start(intent: string, now: number, overlap: 'auto_close' | 'error'): { session: Session; autoClosed?: Session };
  /** @throws ChronometricError `NO_OPEN_SESSION` */
  end(summary: string | undefined, now: number): Session;
  /** Sessions that overlap `[from, to)`, oldest first; the open one if it started before `to`. Only reads. */
  sessionsBetween(from: number, to: number): readonly Session[];
  /** Cut to `[from, to]`, oldest first, without touching entries. Only reads. */
  spansBetween(from: number, to: number): readonly ActiveSpan[];
  close(): void;
};

/** Between two heartbeats. */
export const BEAT_MS = 15_000;
/** Wall time between two beats beyond which the process was asleep or stopped. */
export const ASLEEP_AFTER_MS = 60_000;
/** A longer absence is a break that restarts the count. */
export const REAL_BREAK_MS = 5 * 60_000;

// Counts time from heartbeats. Pure. Spans are an ordered list without touching entries: the result is independent of
// the order and number of beats.

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
