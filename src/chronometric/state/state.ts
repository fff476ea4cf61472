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
