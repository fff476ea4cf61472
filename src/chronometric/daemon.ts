/**
 * What stands behind the server: the person's profile, the state that is shared with others, the heartbeat, and the
 * tools over them.
 */
import type { Clock } from '../kit/clock/clock.ts';
import { nextDayAfter } from '../kit/clock/wall-clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { consentedIdle } from './consented-idle.ts';
import { lateProfile } from './late-profile.ts';
import { startHeartbeat } from './state/heartbeat.ts';
import { openState } from './state/open-state.ts';
import { REAL_BREAK_MS } from './state/state.ts';
import { createToolCalls, type ToolCalls } from './tool-calls.ts';
import { occasionOf, usableTime } from './tools/occasion.ts';
import { viewDay, viewWeek } from './view/day-view.ts';

export type ChronometricParts = {
  /** Where `chronometric.db` is kept. */
  readonly dataDir: string;
  /** Says where the profile and the desktop are. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** The machine's own time zone, IANA; `undefined` where it names none. */
  readonly machineZone: () => string | undefined;
  readonly log: Logger;
  /**
   * What says that the person is there, where nothing is known of keyboard and mouse: that this runs, as beside an
   * agent CLI that they sit before; or only a prompt, or a call that does more than tell the time, for a while, as under
   * a daemon that runs day and night.
   */
  readonly presence?: 'running' | 'calls';
};

/** However often these are called, no other answer changes by it. */
const LEAVES_NO_TRACE: ReadonlySet<string> = new Set(['get_time_context', 'idle_status']);

/** What resources show. */
export const VIEWS = ['today', 'week'] as const;
export type ViewName = (typeof VIEWS)[number];

export type Chronometric = {
  readonly call: ToolCalls;
  /**
   * The sessions of the person's day, or of the seven days up to it. Leaves no trace.
   *
   * @throws ChronometricError `INTERNAL_CLOCK_UNAVAILABLE`
   * @throws ReveilleError when the state cannot be read
   */
  view(name: ViewName): Promise<object>;
  /** Stops the heartbeat and the probes. Resolves when nothing runs any more. */
  close(): Promise<void>;
};

/** Needs nothing to be there: a state that cannot be opened is tried again by each call, which says so. */
export function openChronometric(parts: ChronometricParts): Chronometric {
  const { dataDir, environment, clock, machineZone, log, presence = 'running' } = parts;
  const profile = lateProfile(environment, clock);
  const dayEnd = (instant: number) => {
    const { timezone, logicalDayStart } = profile.read().profile;
    // Without any zone no tool answers; what is written until one is known only needs some end.
    return nextDayAfter(timezone ?? machineZone() ?? 'UTC', instant, logicalDayStart);
  };
  const state = openState({ dataDir, clock, dayEnd });
  const idle = consentedIdle(
    profile,
    async () => (await import('./idle/open-idle.ts')).openIdle(environment, clock),
    clock,
  );
  const idleMs = async () => {
    const reading = await idle.read();
    return reading !== undefined && 'idleMs' in reading ? reading.idleMs : undefined;
  };
  let calledAt = Number.NEGATIVE_INFINITY;
  const isRecent = (at: number) => clock.now() >= at && clock.now() - at < REAL_BREAK_MS;
  const hasJustPrompted = () => {
    try {
      return isRecent(state.lastPromptAt() ?? Number.NEGATIVE_INFINITY);
    } catch {
      // Where the file cannot be read nothing is known; the beat that cannot be written says why.
      return false;
    }
  };
  const presumed = () => presence === 'running' || isRecent(calledAt) || hasJustPrompted();
  const heartbeat = startHeartbeat({ state, clock, log, idleMs, presumed });
  const call = createToolCalls({ state, profile, idle, clock, machineZone });
  return {
    call(name, ...given) {
      if (!LEAVES_NO_TRACE.has(name)) calledAt = clock.now();
      return call(name, ...given);
    },
    async view(name) {
      await profile.ready();
      const occasion = occasionOf(usableTime(clock.now()), machineZone(), profile.read());
      return name === 'today' ? viewDay(state, occasion) : viewWeek(state, occasion);
    },
    async close() {
      heartbeat.stop();
      await idle.close();
      state.close();
    },
  };
}
