/**
 * Pings an address regularly, so that a monitor outside notices when chronosd is gone or does not fire: a dead process
 * cannot report itself. Compatible with healthchecks.io: the address itself means success, and `/fail` below it failure.
 */
import type { CancelTimer, Clock } from '../kit/clock/clock.ts';
import { exchange, reasonOf } from '../kit/http/exchange.ts';
import { plainTransport } from '../kit/http/plain-transport.ts';
import type { Logger } from '../kit/log/log.ts';
import type { AlarmStore } from './store/store.ts';

/** The time limit of one ping. */
const TIMEOUT_MS = 10_000;
/** chronosd has failed when an occurrence has been due for so long and nothing has claimed it. */
export const OVERDUE_MS = 60_000;

export type PingOptions = {
  url: string;
  everyMs: number;
  store: Pick<AlarmStore, 'countDue' | 'now'>;
  clock: Clock;
  log: Logger;
};

/** Starts the pings. @returns stops them */
export function startPings({ url, everyMs, store, clock, log }: PingOptions): () => void {
  let isStopped = false;
  let cancel: CancelTimer = () => {};
  const stopping = new AbortController();

  const fires = async (): Promise<boolean> => {
    try {
      return (await store.countDue({ now: store.now() - OVERDUE_MS, atMost: 1 })) === 0;
    } catch (err) {
      log.warn({ err }, 'the store could not be read for the ping');
      return false;
    }
  };

  const ping = async () => {
    const target = (await fires()) ? url : `${url}/fail`;
    const answer = await exchange(plainTransport, {
      ...{ method: 'GET' as const, url: new URL(target), maxBytes: 1024, signal: stopping.signal },
      limit: { clock, ms: TIMEOUT_MS },
    });
    if (isStopped) return;
    // The monitor reports a missing ping; the log says why it is missing. The address may contain a secret.
    if (answer.result !== 'answered') log.warn({ reason: reasonOf(answer.error) }, 'the ping was not answered');
    else if (answer.status > 299) log.warn({ status: answer.status }, 'the ping was refused');
  };

  const next = () => {
    cancel = clock.after(everyMs, next);
    void ping();
  };
  next();
  return () => {
    isStopped = true;
    cancel();
    stopping.abort(new Error('chronosd stops'));
  };
}
