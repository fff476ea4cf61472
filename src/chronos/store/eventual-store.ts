/** A store whose medium may be away when chronosd starts: it answers `unavailable` until it has been opened. */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { AlarmStore } from './store.ts';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

export type EventualStore = {
  /** Usable at once: every operation rejects with `unavailable`, and says why, until the medium is there. */
  store: AlarmStore;
  /** Resolves when the medium is there; stays pending when {@link AlarmStore.close} comes first. */
  opened: Promise<void>;
};

/**
 * Opens a store now or, when that fails for a reason that may pass, later and later again.
 *
 * @param open rejects with a retryable `ReveilleError` when it makes sense to try again; the store may say that it is
 *   outdated, and is opened anew then
 * @returns after the first attempt, whether it succeeded or will be repeated
 * @throws whatever `open` rejects with, when the first attempt shows that an operator has to mend something
 */
export async function openEventually(
  open: (onOutdated: () => void) => Promise<AlarmStore>,
  { clock, log }: { clock: Clock; log: Logger },
): Promise<EventualStore> {
  let store: AlarmStore | undefined;
  /** Its clock goes on where alarms are opened anew. */
  let former: AlarmStore | undefined;
  let reason = '';
  const closing = new AbortController();
  /** Settles when every outdated store is closed: another is in its place, or will not be. */
  let replaced: Promise<unknown> | undefined;

  /** One attempt; says whether the store is there. */
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
      if (isOutdated) reason ||= 'they were changed while they were being opened';
    } catch (error) {
      const known = toReveilleError(error);
      if (reason === '' && !(error instanceof ReveilleError && error.retryable)) throw error;
      reason = known.message;
      log.warn({ err: error === known ? undefined : error }, `${reason}; trying again`);
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
    reason = 'they are being opened anew';
    log.info('the store was changed below; opening it anew');
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
        };
      if (store) return store[operation];
      return async () => {
        throw new ReveilleError('unavailable', `alarms cannot be read or stored at present: ${reason}`);
      };
    },
  });
  return { store: facade, opened };
}
