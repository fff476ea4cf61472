/** One process's connection to the router: the waker over a network that refuses, delays and loses messages. */
import { wakeBody } from '../../../src/chronos/dispatch/http-waker.ts';
import type { WakeResult, Waker } from '../../../src/chronos/dispatch/waker.ts';
import type { Claim } from '../../../src/chronos/store/store.ts';
import type { Dice } from './dice.ts';
import type { Process } from './process.ts';
import type { Reply, Router } from './router.ts';
import type { Timeline } from './timeline.ts';
import type { Weather } from './weather.ts';

export type SimulatedWakerOptions = {
  process: Process;
  router: Router;
  timeline: Timeline;
  weather: Weather;
  dice: Dice;
  timeoutMs: number;
  /** Some requests and answers are lost. */
  lossy: boolean;
  onBegin: (claim: Claim) => void;
  onEnd: (claim: Claim, result: WakeResult) => void;
};

const GIVEN_UP: WakeResult = { outcome: 'unknown', httpStatus: null, error: 'the wake was given up' };
const RESET: WakeResult = { outcome: 'unknown', httpStatus: null, error: 'the connection was reset' };
const TIMED_OUT: WakeResult = { outcome: 'unknown', httpStatus: null, error: 'the router did not answer in time' };
const REFUSED: WakeResult = { outcome: 'failed', httpStatus: null, error: 'connection refused', final: false };

/** The HTTP waker's result for an answer. */
function resultOf({ status, retryAfterSeconds }: Reply): WakeResult {
  if (status < 300) return { outcome: 'delivered', httpStatus: status };
  return {
    outcome: 'failed',
    httpStatus: status,
    error: `the router answered ${status}`,
    final: status === 410,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds: Math.max(1, retryAfterSeconds) }),
  };
}

export function createSimulatedWaker(options: SimulatedWakerOptions): Waker {
  const { process, router, timeline, weather, dice, timeoutMs, lossy, onBegin, onEnd } = options;
  const open = new Set<(result: WakeResult) => void>();
  let closed = false;
  const trip = () => dice.magnitude(0.05, lossy && dice.chance(0.05) ? 2_000 : 5);

  function send(claim: Claim, settle: (result: WakeResult) => void, isOpen: () => boolean): void {
    const { owner } = claim.alarm;
    const body = wakeBody(claim);
    const survives = dice.chance(0.5);
    const loses = lossy && dice.chance(0.02);
    const back = (result: WakeResult) => timeline.after(trip(), () => process.deliver(() => settle(result)));
    const arrive = () => {
      if ((process.isDead || !isOpen()) && !survives) return;
      if (!router.isReachable(owner)) {
        back(REFUSED);
        return;
      }
      router.receive(body, {
        reply: (reply) => {
          if (loses) weather.count('wake answer lost');
          back(loses ? RESET : resultOf(reply));
        },
        reset: () => back(RESET),
      });
    };
    timeline.after(trip(), arrive);
  }

  return {
    wake(claim) {
      if (closed) return Promise.resolve(GIVEN_UP);
      onBegin(claim);
      return new Promise((resolve) => {
        const settle = (result: WakeResult) => {
          if (!open.delete(settle)) return;
          cancelTimeout();
          onEnd(claim, result);
          resolve(result);
        };
        const cancelTimeout = process.clock.after(timeoutMs, () => settle(TIMED_OUT));
        open.add(settle);
        send(claim, settle, () => open.has(settle));
      });
    },
    async close() {
      closed = true;
      for (const settle of [...open]) settle(GIVEN_UP);
    },
  };
}
