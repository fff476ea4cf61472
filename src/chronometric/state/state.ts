/**
 * The port to what several servers on one machine share: sessions, who was there when, and when the person last sent a
 * prompt. SQLite stands behind it; every method that writes is one transaction. A disk that is busy, full or read-only
 * makes those throw ReveilleError `unavailable`, with nothing stored, and the next call tries anew. What only reads
 * makes no folder and no file, writes nothing and needs no room: it throws `unavailable` where the file cannot be read,
 * and finds nothing where there is none. Instants are epoch milliseconds by the wall clock, which may step back: then
 * nothing is counted twice and nothing becomes negative.
 */

export type Session = {
  /** UUIDv4 */
  readonly id: string;
  /** Verbatim. */
  readonly intent: string;
  readonly startedAt: number;
  /** The last prompt, or the last heartbeat on the same logical day. */
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
   * The person sent a prompt, as a prompt hook of a client says. Carries the open session on.
   *
   * @returns when the prompt before this one was; `undefined` when there was none; never later than `now`
   */
  prompted(now: number): number | undefined;
  /** When the person last sent a prompt, to whichever program; `undefined` when none was told of. Only reads. */
  lastPromptAt(): number | undefined;
  /**
   * The process lives, and as far as is known the person is there. Called every {@link BEAT_MS}.
   *
   * @param since they were there all the time from then on, although no beat said so
   */
  beat(now: number, since?: number): void;
  /** The open one, as it is now by the clock that the state was opened with. Only reads. */
  open(): Session | undefined;
  /**
   * Opens a session. One that is open is closed at the moment it was last seen.
   *
   * @throws ChronometricError `SESSION_ALREADY_OPEN` when one is open and `overlap` is `error`
   */
  start(intent: string, now: number, overlap: 'auto_close' | 'error'): { session: Session; autoClosed?: Session };
  /** @throws ChronometricError `NO_OPEN_SESSION` */
  end(summary: string | undefined, now: number): Session;
  /** Sessions that overlap `[from, to)`, oldest first; the open one where it began before `to`. Only reads. */
  sessionsBetween(from: number, to: number): readonly Session[];
  /** Cut to `[from, to]`, oldest first, none touching another. Only reads. */
  spansBetween(from: number, to: number): readonly ActiveSpan[];
  close(): void;
};

/** Between two heartbeats. */
export const BEAT_MS = 15_000;
/** Wall time between two beats beyond which the process did not live through it: sleep, or a stop. */
export const ASLEEP_AFTER_MS = 60_000;
/** From here on a time away is a break that starts the count anew. */
export const REAL_BREAK_MS = 5 * 60_000;
