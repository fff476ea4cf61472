/** Health checks of a daemon. */
import type { Dispatcher } from 'undici';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { below, exchange, Overdue, reasonOf } from '../../kit/http/exchange.ts';
import { parseForeignJson } from '../../wire/json.ts';
import { type DaemonHealth, daemonHealthSchema } from '../../wire/wake.ts';
import type { DaemonAddress, OnProgress } from './provider.ts';

/** `nextTurnAt`: when a turn has to be retried, epoch milliseconds. */
type Load = Pick<DaemonHealth, 'busy' | 'queued'> & { nextTurnAt?: number };

/** The result of a health check; `silent`: neither an answer nor a refused connection. */
export type Health = ({ healthy: true } & Load) | { healthy: false; isSilent: boolean; why: string };

/** Whether the daemon answered and has no work now. */
export function isIdle(health: Health): health is Extract<Health, { healthy: true }> {
  return health.healthy && !health.busy && health.queued === 0;
}

const CHECK_MS = 2000;
const MAX_BYTES = 64 * 1024;
/**
 * The first pauses between health checks, in milliseconds. A start of 30 ms must not be rounded up to the full
 * interval.
 */
const FIRST_PAUSE_MS = 5;

export type HealthProbe = {
  /** One health check of at most 2 seconds. Never rejects; a late answer or an abort is `silent`. */
  check(addressOf: DaemonAddress, healthPath: string | undefined, signal?: AbortSignal): Promise<Health>;
  /**
   * Repeats the health check until the daemon is healthy. Rejects with the signal's reason when it aborts first.
   *
   * @param address read before each check: a daemon may report its port itself
   * @param onProgress receives the reason after each failed check
   * @returns the address of the healthy daemon
   */
  untilHealthy(
    addressOf: () => DaemonAddress,
    healthPath: string | undefined,
    signal: AbortSignal,
    onProgress?: OnProgress,
  ): Promise<DaemonAddress>;
};

/** Reads the answer with or without an envelope. An answer in neither form only shows that the daemon is alive. */
function loadOf(body: Buffer): Load {
  let value: unknown;
  try {
    value = parseForeignJson(body.toString('utf8'));
  } catch {
    return { busy: false, queued: 0 };
  }
  const data = typeof value === 'object' && value !== null && 'data' in value ? value.data : value;
  const health = daemonHealthSchema.safeParse(data);
  if (!health.success) return { busy: false, queued: 0 };
  const { busy, queued, next_turn_at: next } = health.data;
  return { busy, queued, ...(next === undefined ? {} : { nextTurnAt: Date.parse(next) }) };
}

export function createHealthProbe(dispatcher: Dispatcher, clock: Clock, intervalMs: number): HealthProbe {
  const check: HealthProbe['check'] = async ({ url, connections }, healthPath = '/healthz', signal) => {
    const answer = await exchange(connections?.healthChecks ?? dispatcher, {
      method: 'GET',
      url: below(url, healthPath),
      headers: { accept: 'application/json' },
      maxBytes: MAX_BYTES,
      signal,
      limit: { clock, ms: CHECK_MS },
    });
    if (answer.result !== 'answered') {
      const isSilent = signal?.aborted === true || answer.error instanceof Overdue;
      return { healthy: false, isSilent, why: reasonOf(answer.error) };
    }
    if (answer.status < 200 || answer.status > 299) {
      return { healthy: false, isSilent: false, why: `${healthPath} answered ${answer.status}` };
    }
    return { healthy: true, ...loadOf(answer.body) };
  };

  const untilHealthy: HealthProbe['untilHealthy'] = async (addressOf, healthPath, signal, onProgress) => {
    let pauseMs = Math.min(FIRST_PAUSE_MS, intervalMs);
    for (;;) {
      signal.throwIfAborted();
      const here = addressOf();
      const health = await check(here, healthPath, signal);
      signal.throwIfAborted();
      if (health.healthy) return here;
      onProgress?.(`the daemon at ${here.url} is not ready: ${health.why}`);
      await wait(clock, pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, intervalMs);
    }
  };

  return { check, untilHealthy };
}
