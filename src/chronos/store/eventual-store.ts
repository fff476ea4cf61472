/** A store whose medium may be unavailable when chronosd starts: it answers `unavailable` until it has been opened. */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { AlarmStore } from './store.ts';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

export type EventualStore = {
  /** Usable at once: every operation rejects with `unavailable` and the reason until the medium is available. */
  store: AlarmStore;
  /** Resolves when the medium is available; stays pending when {@link AlarmStore.close} comes first. */
  opened: Promise<void>;
};

/**
 * Opens a store. After a failure that may be temporary, it retries with increasing delays.
 *
 * @param open rejects with a retryable `ReveilleError` when a retry makes sense; the store may report that it is
 *   outdated, and is then reopened
 * @param options.onClosed called when the last store is closed
 * @returns after the first attempt, whether it succeeded or will be repeated
 * @throws any rejection of `open` when the first attempt shows that an operator must repair something
 */
export async function openEventually(
  open: (onOutdated: () => void) => Promise<AlarmStore>,
  { clock, log, onClosed }: { clock: Clock; log: Logger; onClosed?: () => Promise<void> },
): Promise<EventualStore> {
  let store: AlarmStore | undefined;
  /** Its clock continues when alarms are reopened. */
  let former: AlarmStore | undefined;
  let reason = '';
  const closing = new AbortController();
  /** Settles when every outdated store is closed and its replacement is open, or will not be. */
  let replaced: Promise<unknown> | undefined;

  /** One attempt; returns whether the store is open. */
  const attempt = async (): Promise<boolean> => {
    try {
      let found: AlarmStore | undefined;
      let isOutdated = false;
      found = await open(() => {
        isOutdated = true;
        if (found) outdated(found);
      });
      if (closing.signal.aborted || isOutdated) await found.close();
      else store = found;
      if (isOutdated) reason ||= 'the database was changed while it was being opened';
    } catch (error) {
      const known = toReveilleError(error);
      if (reason === '' && !(error instanceof ReveilleError && error.retryable)) throw error;
      reason = known.message;
      log.warn({ err: error === known ? undefined : error }, `${reason}; retrying`);
    }
    return store !== undefined;
  };
  const keepTrying = async (): Promise<void> => {
    let pauseMs = FIRST_PAUSE_MS;
    do {
      await wait(clock, pauseMs, closing.signal);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    } while (!closing.signal.aborted && !(await attempt()));
  };
  const outdated = (gone: AlarmStore): void => {
    if (store !== gone) return;
    former = gone;
    store = undefined;
    reason = 'the database is being reopened';
    log.info('the database was changed by another program; reopening it');
    const replace = async () => {
      if (!(await attempt())) await keepTrying();
      await gone.close().catch((error: unknown) => log.debug({ err: error }, 'closing an outdated store'));
    };
    replaced = Promise.all([replaced, replace()]);
  };
  const isThere = await attempt();
  const untilThere = async () => {
    await keepTrying();
    if (!store) await new Promise(() => {});
  };
  const opened = isThere ? Promise.resolve() : untilThere();

  const facade = new Proxy({} as AlarmStore, {
    get(_, operation: keyof AlarmStore) {
      if (operation === 'now') return () => (store ?? former)?.now() ?? clock.now();
      if (operation === 'close')
        return async () => {
          closing.abort();
          await store?.close();
          await replaced;
          await onClosed?.();
        };
      if (store) return store[operation];
      return async () => {
        throw new ReveilleError('unavailable', `alarms cannot be read or stored at present: ${reason}`);
      };
    },
  });
  return { store: facade, opened };
}
