/** The state in a SQLite file that several servers share. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../kit/clock/clock.ts';
import { ChronometricError } from '../chronometric-error.ts';
import type { Ended, OpenSession } from './session-table.ts';
import {
  type ActiveSpan,
  activeBetween,
  activeSinceBreak,
  type ChronometricState,
  cut,
  knownAt,
  REAL_BREAK_MS,
  type Session,
} from './state.ts';
import { createStateFile, type Tables } from './state-file.ts';

/** The start of a session or the last prompt in it, and the end of its logical day. */
type LastSign = { readonly at: number; readonly dayEnd: number };

/** The end of presence without a real break, from the last sign on. */
function stayedUntil(sign: LastSign, spans: Iterable<ActiveSpan>, now: number): number {
  let until = Math.min(sign.at, now);
  for (const { from, to } of spans) {
    if (to <= until) continue;
    if (from - until >= REAL_BREAK_MS || from > now) break;
    until = Math.min(to, now);
  }
  return until;
}

/**
 * The user's last presence on the logical day of the last sign. Breaks do not end a session; the day does. A server that
 * runs all night is no evidence of presence in a session that was forgotten in the evening.
 *
 * @returns not later than `now`; not earlier than the sign, unless a clock stepped back before it
 */
export function lastSeen(sign: LastSign, spans: Iterable<ActiveSpan>, now: number): number {
  const end = Math.min(now, sign.dayEnd);
  let seen = sign.at;
  for (const { from, to } of spans) if (from <= end) seen = Math.max(seen, to);
  return Math.min(seen, end);
}

/**
 * Whether a prompt at `now` belongs to a session that was open at the last sign. After a break it does; after a night it
 * does not, because a forgotten session did not last until the next morning. Work through the end of the logical day does.
 */
export function continuesSession(sign: LastSign, spans: Iterable<ActiveSpan>, now: number): boolean {
  return now < sign.dayEnd || now - stayedUntil(sign, spans, now) < REAL_BREAK_MS;
}

export type StateOptions = {
  /** The folder of `chronometric.db`; created if missing. */
  readonly dataDir: string;
  readonly clock: Clock;
  /** The end of the user's logical day with an instant; epoch milliseconds. */
  readonly dayEnd: (instant: number) => number;
  /** Time limit for another process's transaction; 2000 ms by default. */
  readonly busyMs?: number;
};

/** A session's active time until `now`, from the spans since it began. */
const activeUntil = (now: number, startedAt: number, spans: readonly ActiveSpan[]) => ({
  activeMs: activeBetween(spans, startedAt, now),
  activeSinceBreakMs: activeSinceBreak(spans, startedAt, now),
});

/**
 * The state of a data folder. Does not touch the disk and does not throw: the first call that needs the file opens it. The
 * next call repeats a failed attempt.
 */
export function openState({ dataDir, clock, dayEnd, busyMs }: StateOptions): ChronometricState {
  const file = createStateFile(dataDir, clock, busyMs);
  const signOf = (at: number): LastSign => ({ at, dayEnd: dayEnd(at) });

  function lastSeenOf({ spans }: Tables, { startedAt, lastSignAt }: OpenSession, now: number): number {
    return Math.max(startedAt, lastSeen(signOf(lastSignAt), spans.iterate(lastSignAt, now), now));
  }

  function openNow(tables: Tables): Session | undefined {
    const open = tables.sessions.open();
    if (!open) return undefined;
    const now = clock.now();
    const { id, intent, startedAt } = open;
    const known = knownAt(now, tables.spans.between(startedAt, now));
    return { id, intent, startedAt, lastSeenAt: lastSeenOf(tables, open, now), ...activeUntil(now, startedAt, known) };
  }

  function continueSession({ sessions, spans }: Tables, { id, lastSignAt }: OpenSession, now: number): void {
    if (continuesSession(signOf(lastSignAt), spans.iterate(lastSignAt, now), now)) sessions.setLastSign(id, now);
  }

  function end({ sessions }: Tables, ended: Ended): Ended {
    sessions.end(ended);
    return ended;
  }

  /** A session that was not ended has ended at its last sign. */
  function autoClose(tables: Tables, open: OpenSession, now: number): Ended {
    const { id, intent, startedAt } = open;
    const endedAt = lastSeenOf(tables, open, now);
    const active = activeUntil(endedAt, startedAt, tables.spans.between(startedAt, endedAt));
    return end(tables, { id, intent, startedAt, lastSeenAt: endedAt, endedAt, ending: 'auto_closed', ...active });
  }

  return {
    prompted(now) {
      const before = file.write('kept', (tables) => {
        const open = tables.sessions.open();
        if (open) continueSession(tables, open, now);
        const last = tables.sessions.lastPromptAt();
        tables.sessions.prompted(now);
        return last;
      });
      return before === undefined ? undefined : Math.min(before, now);
    },

    lastPromptAt: () => file.read(({ sessions }) => sessions.lastPromptAt()),

    beat(now, since = now) {
      file.write('kept', ({ spans }) => spans.add({ from: Math.min(since, now), to: now }));
    },

    open: () => file.read(openNow),

    start(intent, now, overlap) {
      const started = file.write('synced', (tables) => {
        const open = tables.sessions.open();
        if (open && overlap === 'error') {
          continueSession(tables, open, now);
          return undefined;
        }
        const autoClosed = open && autoClose(tables, open, now);
        const session = { id: randomUUID(), intent, startedAt: now };
        tables.sessions.insert({ ...session, lastSignAt: now });
        return {
          session: { ...session, lastSeenAt: now, activeMs: 0, activeSinceBreakMs: 0 },
          ...(autoClosed && { autoClosed }),
        };
      });
      if (started) return started;
      const message = 'a session is open already, and the profile has session_overlap_policy: error';
      throw new ChronometricError('SESSION_ALREADY_OPEN', `${message}; end it with mark_session_end first`);
    },

    end(summary, now) {
      return file.write('synced', (tables) => {
        const open = tables.sessions.open();
        if (!open) {
          throw new ChronometricError('NO_OPEN_SESSION', 'no session is open; start one with mark_session_start');
        }
        const { id, intent, startedAt } = open;
        const endedAt = Math.max(startedAt, now);
        const known = knownAt(endedAt, tables.spans.between(startedAt, endedAt));
        const active = activeUntil(endedAt, startedAt, known);
        const summaryPart = summary === undefined ? {} : { summary };
        return end(tables, {
          id,
          intent,
          startedAt,
          lastSeenAt: endedAt,
          endedAt,
          ending: 'ended',
          ...summaryPart,
          ...active,
        });
      });
    },

    sessionsBetween: (from, to) =>
      file.read((tables) => {
        const open = openNow(tables);
        return [...tables.sessions.endedBetween(from, to), ...(open && open.startedAt < to ? [open] : [])];
      }) ?? [],

    spansBetween: (from, to) => file.read(({ spans }) => cut(spans.between(from, to), from, to)) ?? [],

    close: () => file.close(),
  };
}
