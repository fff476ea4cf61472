/**
 * Starts sessions, sends prompts in them and ends them, for the given number of rounds or until it is killed. Prints a
 * line for each acknowledgement.
 */
import { writeSync } from 'node:fs';
import { systemClock } from '../../../kit/clock/clock.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { ChronometricError } from '../../chronometric-error.ts';
import { openState } from '../open-state.ts';
import { DAY_MS } from './state-bench.ts';

/** An acknowledged id or instant. */
export type Acknowledgement = {
  readonly started?: string;
  readonly autoClosed?: string;
  readonly ended?: string;
  readonly prompted?: number;
};

const [dataDir, rounds] = process.argv.slice(2);
const state = openState({ dataDir: dataDir!, clock: systemClock, dayEnd: (instant) => instant + DAY_MS });
const print = (acknowledged: Acknowledgement) => writeSync(1, `${JSON.stringify(acknowledged)}\n`);

function attempt(call: () => Acknowledgement): void {
  try {
    print(call());
  } catch (error) {
    // Another process has ended the session, or has locked the file for too long. Nothing was acknowledged.
    if (!(error instanceof ChronometricError || (error instanceof ReveilleError && error.code === 'unavailable')))
      throw error;
  }
}

for (let round = 0; round < Number(rounds); round++) {
  attempt(() => {
    const now = systemClock.now();
    state.prompted(now);
    return { prompted: now };
  });
  attempt(() => {
    const { session, autoClosed } = state.start(`${process.pid} ${round}`, systemClock.now(), 'auto_close');
    return { started: session.id, ...(autoClosed && { autoClosed: autoClosed.id }) };
  });
  attempt(() => {
    state.beat(systemClock.now());
    return {};
  });
  if (round % 3 !== 0) attempt(() => ({ ended: state.end('done', systemClock.now()).id }));
}
state.close();
