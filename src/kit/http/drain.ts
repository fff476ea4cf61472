/** Ends a process on SIGTERM or SIGINT after its work in progress has finished. */
import { constants } from 'node:os';
import type { Clock } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
type TerminationSignal = (typeof SIGNALS)[number];

export type TerminationOptions = {
  log: Logger;
  clock: Clock;
  /** How long `close` may take before the process exits anyway. Default 20 seconds. */
  hardLimitMs?: number;
};

/**
 * On the first signal, runs `close` and exits: status 0 if it succeeded, 1 if it threw or took too long. A second
 * signal exits immediately, with the status that a shell reports for the signal.
 *
 * @returns removes the handlers
 */
export function onTermination(
  close: (signal: TerminationSignal) => Promise<void>,
  { log, clock, hardLimitMs = 20_000 }: TerminationOptions,
): () => void {
  let closing = false;
  const onSignal = (signal: TerminationSignal) => {
    if (closing) process.exit(128 + constants.signals[signal]);
    closing = true;
    log.info({ signal }, 'draining');
    clock.after(hardLimitMs, () => {
      log.error({ hardLimitMs }, 'the drain took too long; exiting now');
      process.exit(1);
    });
    void Promise.resolve()
      .then(() => close(signal))
      .then(
        () => process.exit(0),
        (err: unknown) => {
          log.error({ err }, 'the drain failed');
          process.exit(1);
        },
      );
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return () => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
}
