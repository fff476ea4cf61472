/**
 * The port to what several servers on one machine share: sessions, who was there when, and when a tool was last called.
 * SQLite stands behind it; every method that writes is one transaction. A disk that is busy, full or read-only makes
 * any of them throw ReveilleError `unavailable`, with nothing stored, and the next call tries anew. Instants are epoch
 * milliseconds by the wall clock, which may step back: then nothing is counted twice and nothing becomes negative.
 */

export type Session = {
  /** UUIDv4 */
  readonly id: string;
  /** Verbatim. */
  readonly intent: string;
  readonly startedAt: number;
  /** The last call, or heartbeat without a break since the last call. */
  readonly lastSeenAt: number;
  readonly endedAt?: number;
  readonly summary?: string;
  /** `ended` by the tool, `auto_closed` by the next start. */
  readonly ending?: 'ended' | 'auto_closed';
  /** Active time inside it, in milliseconds: awake, and not away where that is known. */
  readonly activeMs: number;
  /** Active time since it began or since the last break of five minutes or more. */
  readonly activeSinceBreakMs: number;
};

/** A stretch of time in which somebody was there. */
export type ActiveSpan = { readonly from: number; readonly to: number };

export type ChronometricState = {
  /**
   * A tool was called. Carries the open session on, unless a new one is about to take its place.
   *
   * @param by the name of the tool; `mark_session_start` does not carry on the session that it would close
   * @returns when the call before this one was, by whichever server; `undefined` when there was none; never later than
   *   `now`
   */
  touch(now: number, by: string): number | undefined;
  /**
   * The person sent a prompt, as a prompt hook of a client says. Carries the open session on as a call does, but has a
   * marker of its own: {@link ChronometricState.touch} goes on counting calls.
   *
   * @returns when the prompt or the call before this one was, the later of the two; `undefined` when there was none;
   *   never later than `now`
   */
  prompted(now: number): number | undefined;
  /**
   * The process lives, and as far as is known the person is there. Called every {@link BEAT_MS}.
   *
   * @param since they were there all the time from then on, although no beat said so
   */
  beat(now: number, since?: number): void;
  /** The open one, as it is now by the clock that the state was opened with. */
  open(): Session | undefined;
  /**
   * Opens a session. One that is open is closed at the moment it was last seen.
   *
   * @throws ChronometricError `SESSION_ALREADY_OPEN` when one is open and `overlap` is `error`
   */
  start(intent: string, now: number, overlap: 'auto_close' | 'error'): { session: Session; autoClosed?: Session };
  /** @throws ChronometricError `NO_OPEN_SESSION` */
  end(summary: string | undefined, now: number): Session;
  /** Sessions that overlap `[from, to)`, oldest first; the open one where it began before `to`. */
  sessionsBetween(from: number, to: number): readonly Session[];
  /** Cut to `[from, to]`, oldest first, none touching another. */
  spansBetween(from: number, to: number): readonly ActiveSpan[];
  close(): void;
};

/** Between two heartbeats. */
export const BEAT_MS = 15_000;
/** Wall time between two beats beyond which the process did not live through it: sleep, or a stop. */
export const ASLEEP_AFTER_MS = 60_000;
/** From here on a time away is a break that starts the count anew. */
export const REAL_BREAK_MS = 5 * 60_000;
