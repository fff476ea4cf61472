/** What the contract needs to know of a provider to put it to the test. */
import { pino } from 'pino';
import type { Logger } from '../../../src/kit/log/log.ts';
import type { DaemonMachine } from '../../../src/router/machines/machine.ts';
import type { Provider } from '../../../src/router/providers/provider.ts';
import type { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';

/** What a provider can be asked to do; the tests that need it are left out where it cannot. */
export type Traits = {
  /** It starts and stops machines; otherwise they are always on. */
  starts: boolean;
  /** Others start and stop its machines as well, so that it meets what they have begun. */
  shared: boolean;
};

export type ProviderUnderTest = {
  provider: Provider;
  clock: ShiftingClock;
  /** A machine that sleeps, or that is always on. */
  machine: DaemonMachine;
  /** The same machine with another specification, which needs another daemon. */
  changed: DaemonMachine;
  /** What must not be repeated in any error or log. */
  canaries: readonly string[];
  /** Everything that was logged. */
  logged(): string;
  /** How often the machine was started so far, by whomever. */
  starts(): number;
  /** How many daemons of the machine run now. */
  running(): number;
  /** Whether the daemon says that it is healthy. */
  setHealthy(healthy: boolean): void;
  /** The next start fails, with these words where the provider hears of it. */
  failNext(words: string): void;
  /** The daemon's address stops to exist without a word, as after a crash. */
  crash(): Promise<void>;
  /** Somebody else starts the machine; it runs when the promise resolves. */
  startElsewhere?(): Promise<void>;
  /** Somebody else begins to start the machine; it runs when the promise of the returned function resolves. */
  beginElsewhere?(): Promise<() => Promise<void>>;
  /** Whoever runs the machine answers nothing until the returned function is called. */
  hang?(): () => void;
  /** Another provider on the same records, as the next router has it; the former one is done with. */
  reopen(): Provider;
  close(): Promise<void>;
};

export type OpenProvider = () => Promise<ProviderUnderTest>;

/** A machine's members that no provider looks at. */
export const ABOUT = {
  userId: 'alice',
  state: 'active',
  idleSeconds: null,
  budget: null,
  token: 'canary-token-of-the-machine-0123456789',
  createdAt: 0,
  updatedAt: 0,
} as const;

/** A logger that keeps everything it is told. */
export function keepingLog(): { log: Logger; logged: () => string } {
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  return { log, logged: () => lines.join('') };
}
