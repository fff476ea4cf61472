/** The operating system's idle time, after the user's consent: one query at a time, shared by all callers. */
import { type Clock, wait } from '../kit/clock/clock.ts';
import type { IdleReading } from './idle/idle.ts';
import type { Idle } from './idle/open-idle.ts';
import type { LazyProfile } from './lazy-profile.ts';

/** Time limit of a tool call. All probes together may take longer; the heartbeat still gets their answer. */
const CALL_TIMEOUT_MS = 3000;

export type ConsentedIdle = {
  /** @returns `undefined` without consent in the profile before and after the query; never rejects */
  read(): Promise<IdleReading | undefined>;
  /** As {@link read}, but ends after a few seconds or when the signal aborts. */
  readSoon(signal: AbortSignal): Promise<IdleReading | undefined>;
  /** Stops the query. Resolves when it has ended. */
  close(): Promise<void>;
};

/** @param open loads the probes; called once, after consent */
export function consentedIdle(profile: LazyProfile, open: () => Promise<Idle>, clock: Clock): ConsentedIdle {
  const stop = new AbortController();
  let idle: Idle | undefined;
  let pending: Promise<IdleReading> | undefined;

  async function consents(): Promise<boolean> {
    await profile.ready();
    return profile.read().profile.osIdleConsent;
  }

  async function query(): Promise<IdleReading> {
    try {
      idle ??= await open();
      return await idle.read(stop.signal);
    } catch {
      // The error may contain a sample.
      return { unavailable: 'the probes could not be loaded' };
    } finally {
      pending = undefined;
    }
  }

  async function shared(
    during: (query: Promise<IdleReading>) => Promise<IdleReading>,
  ): Promise<IdleReading | undefined> {
    if (!(await consents())) return undefined;
    pending ??= query();
    const reading = await during(pending);
    return (await consents()) ? reading : undefined;
  }

  const withTimeout = (query: Promise<IdleReading>, signal: AbortSignal): Promise<IdleReading> => {
    const done = new AbortController();
    const timeout = wait(clock, CALL_TIMEOUT_MS, AbortSignal.any([signal, done.signal])).then(
      (): IdleReading => ({ unavailable: `no probe has answered within ${CALL_TIMEOUT_MS / 1000} s` }),
    );
    return Promise.race([query, timeout]).finally(() => done.abort());
  };

  return {
    read: () => shared((query) => query),
    readSoon: (signal) => shared((query) => withTimeout(query, signal)),
    async close() {
      stop.abort();
      await pending;
    },
  };
}
