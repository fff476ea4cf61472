/** The parts behind the server: the user's profile, the shared state, the heartbeat, and the tools. */
import type { Clock } from '../kit/clock/clock.ts';
import { nextDayAfter } from '../kit/clock/wall-clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { consentedIdle } from './consented-idle.ts';
import { lazyProfile } from './lazy-profile.ts';
import { startHeartbeat } from './state/heartbeat.ts';
import { openState } from './state/open-state.ts';
import { REAL_BREAK_MS } from './state/state.ts';
import { createToolCalls, type ToolCalls } from './tool-calls.ts';
import { callContextOf, usableTime } from './tools/call-context.ts';
import { viewDay, viewWeek } from './view/day-view.ts';

export type ChronometricParts = {
  /** The folder of `chronometric.db`. */
  readonly dataDir: string;
  /** Names the profile and the desktop. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** The computer's time zone, IANA; `undefined` when unknown. */
  readonly machineZone: () => string | undefined;
  readonly log: Logger;
  /**
   * Evidence of the user's presence without data about keyboard and mouse. Beside an agent client, the running process
   * counts. In a daemon that always runs, only prompts and calls count for a while, except calls that only read the time.
   */
  readonly presence?: 'running' | 'calls';
};

/** Calls of these tools do not count as presence. */
const UNTRACKED_TOOLS: ReadonlySet<string> = new Set(['get_time_context', 'idle_status']);

/** The content of resources. */
export const VIEWS = ['today', 'week'] as const;
export type ViewName = (typeof VIEWS)[number];

export type Chronometric = {
  readonly call: ToolCalls;
  /**
   * The sessions of the user's day, or of the seven days up to it. Only reads.
   *
   * @throws ChronometricError `INTERNAL_CLOCK_UNAVAILABLE`
   * @throws ReveilleError when the state cannot be read
   */
  view(name: ViewName): Promise<object>;
  /** Stops the heartbeat and the probes. Resolves when both have ended. */
  close(): Promise<void>;
};

/** Needs no existing state: each call tries to open it and reports the error. */
export function openChronometric(parts: ChronometricParts): Chronometric {
  const { dataDir, environment, clock, machineZone, log, presence = 'running' } = parts;
  const profile = lazyProfile(environment, clock);
  const dayEnd = (instant: number) => {
    const { timezone, logicalDayStart } = profile.read().profile;
    // Without a zone no tool answers. Until then any end is valid for stored records.
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
      // Without a readable file nothing is known; the failed heartbeat reports the reason.
      return false;
    }
  };
  const presumed = () => presence === 'running' || isRecent(calledAt) || hasJustPrompted();
  const heartbeat = startHeartbeat({ state, clock, log, idleMs, presumed });
  const call = createToolCalls({ state, profile, idle, clock, machineZone });
  return {
    call(name, ...args) {
      if (!UNTRACKED_TOOLS.has(name)) calledAt = clock.now();
      return call(name, ...args);
    },
    async view(name) {
      await profile.ready();
      const context = callContextOf(usableTime(clock.now()), machineZone(), profile.read());
      return name === 'today' ? viewDay(state, context) : viewWeek(state, context);
    },
    async close() {
      heartbeat.stop();
      await idle.close();
      state.close();
    },
  };
}
