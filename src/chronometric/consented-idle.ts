/**
 * The idle time of the operating system, for those who have asked for consent: one look at a time, shared by all who
 * want one.
 */
import { type Clock, wait } from '../kit/clock/clock.ts';
import type { IdleReading } from './idle/idle.ts';
import type { Idle } from './idle/open-idle.ts';
import type { LateProfile } from './late-profile.ts';

/** How long a tool call waits. All probes in turn may take longer; then the heartbeat still gets their answer. */
const PATIENCE_MS = 3000;

export type ConsentedIdle = {
  /**
   * @returns `undefined` without consent, by the profile as it is before and after the look; never rejects
   */
  read(): Promise<IdleReading | undefined>;
  /** As {@link read}, but gives up after a few seconds or when the signal aborts. */
  readSoon(signal: AbortSignal): Promise<IdleReading | undefined>;
  /** Stops what is under way. Resolves when it has ended. */
  close(): Promise<void>;
};

/** @param open loads the probes; called once, and not before there is consent */
export function consentedIdle(profile: LateProfile, open: () => Promise<Idle>, clock: Clock): ConsentedIdle {
  const stop = new AbortController();
  let idle: Idle | undefined;
  let underWay: Promise<IdleReading> | undefined;

  async function consents(): Promise<boolean> {
    await profile.ready();
    return profile.read().profile.osIdleConsent;
  }

  async function look(): Promise<IdleReading> {
    try {
      idle ??= await open();
      return await idle.read(stop.signal);
    } catch {
      // What was thrown may carry a sample.
      return { unavailable: 'the probes could not be loaded' };
    } finally {
      underWay = undefined;
    }
  }

  async function shared(
    during: (look: Promise<IdleReading>) => Promise<IdleReading>,
  ): Promise<IdleReading | undefined> {
    if (!(await consents())) return undefined;
    underWay ??= look();
    const reading = await during(underWay);
    return (await consents()) ? reading : undefined;
  }

  const orLate = (under: Promise<IdleReading>, signal: AbortSignal): Promise<IdleReading> => {
    const done = new AbortController();
    const late = wait(clock, PATIENCE_MS, AbortSignal.any([signal, done.signal])).then(
      (): IdleReading => ({ unavailable: `no probe has answered within ${PATIENCE_MS / 1000} s` }),
    );
    return Promise.race([under, late]).finally(() => done.abort());
  };

  return {
    read: () => shared((under) => under),
    readSoon: (signal) => shared((under) => orLate(under, signal)),
    async close() {
      stop.abort();
      await underWay;
    },
  };
}
