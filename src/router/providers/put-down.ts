/** Bringing a machine that somebody else runs to rest: asking, and looking until nothing of it runs. */
import type { Clock } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { looksAt } from './looks.ts';
import type { RemoteDriver, RemoteSpec, Target } from './remote-driver.ts';

const STOP_MS = 25_000;
/** A machine that still runs is asked again to end after this. */
const ASK_AGAIN_MS = 10_000;

export type PutDownOptions<Spec extends RemoteSpec> = {
  driver: RemoteDriver<Spec>;
  clock: Clock;
  target: Target<Spec>;
  /** As its specification wants it, or for good. */
  how: 'sleep' | 'end';
  /** Gives up. */
  signal: AbortSignal;
};

/**
 * Resolves when nothing of the machine runs; tells in the driver's words what it is then, or nothing when it was at rest already.
 *
 * @throws the signal's reason; ReveilleError `internal` in the driver's words when it does not come to rest in 25 seconds
 */
export async function putDown<Spec extends RemoteSpec>(options: PutDownOptions<Spec>): Promise<string | undefined> {
  const { driver, clock, target, how } = options;
  const tooLong = new AbortController();
  const cancel = clock.after(STOP_MS, () => tooLong.abort());
  const signal = AbortSignal.any([options.signal, tooLong.signal]);
  let words = 'it could not be looked at';
  const tell = (said: string) => {
    words = said;
  };
  let askedAt: number | undefined;
  try {
    await looksAt(driver, { clock, signal, tell }).until(async () => {
      const sight = await driver.look(target, signal);
      tell(sight.words);
      if (sight.state === 'down' || sight.state === 'lost') return true;
      if (sight.state === 'changing') return undefined;
      if (askedAt !== undefined && clock.monotonic() - askedAt < ASK_AGAIN_MS) return undefined;
      await (sight.state === 'up' ? sight[how] : sight.end)(signal);
      askedAt = clock.monotonic();
      return undefined;
    });
    return askedAt === undefined ? undefined : words;
  } catch (cause) {
    options.signal.throwIfAborted();
    const late = tooLong.signal.aborted ? ` (after ${STOP_MS / 1000} s)` : '';
    const why = late === '' && cause instanceof Error ? cause.message : words;
    throw new ReveilleError('internal', `the machine could not be stopped: ${why}${late}`, { cause });
  } finally {
    cancel();
  }
}
