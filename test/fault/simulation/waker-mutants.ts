/** Defects on the way to the router. */
import type { WakeOutcome, WakeResult, Waker } from '../../../src/chronos/dispatch/waker.ts';
import type { Mutant } from './mutant.ts';

/** A waker that changes results. */
function resulting(waker: Waker, change: (result: WakeResult) => WakeResult): Waker {
  const changed = (result: WakeOutcome) =>
    result.outcome === 'held' || result.outcome === 'skipped' ? result : change(result);
  return { wake: async (claim) => changed(await waker.wake(claim)), close: () => waker.close() };
}

export const WAKER_MUTANTS = {
  'one-at-a-time': {
    defect: 'a wake waits for the one before it',
    // Where other parts fail too, a delay has an excuse.
    shows: ({ calm, conditions, config }) =>
      calm && conditions.slow + conditions.hanging > 0 && config.concurrency >= 64,
    waker(waker) {
      let last: Promise<unknown> = Promise.resolve();
      return {
        wake(claim) {
          const result = last.then(() => waker.wake(claim));
          last = result;
          return result;
        },
        close: () => waker.close(),
      };
    },
  },
  'ignores-gone': {
    defect: 'a target that reported that it is gone for good gets another wake',
    waker: (waker) =>
      resulting(waker, (result) => (result.outcome === 'failed' ? { ...result, final: false } : result)),
  },
  'calls-unknown-delivered': {
    defect: 'a wake without an answer counts as accepted',
    waker: (waker) =>
      resulting(waker, (result) => (result.outcome === 'unknown' ? { outcome: 'delivered', httpStatus: 202 } : result)),
  },
} as const satisfies Record<string, Mutant>;
