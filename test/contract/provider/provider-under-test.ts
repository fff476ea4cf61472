/** The parts of a provider that the contract needs for its tests. */
import { pino } from 'pino';
import type { Logger } from '../../../src/kit/log/log.ts';
import type { DaemonMachine } from '../../../src/router/machines/machine.ts';
import type { Provider } from '../../../src/router/providers/provider.ts';
import type { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';

/** Capabilities of a provider; tests of an absent capability are omitted. */
export type Traits = {
  /** It starts and stops machines; otherwise they are always on. */
  starts: boolean;
  /** Other clients start and stop its machines as well, so that it meets starts and stops in progress. */
  shared: boolean;
};

export type ProviderUnderTest = {
  provider: Provider;
  clock: ShiftingClock;
  /** A machine that sleeps, or that is always on. */
  machine: DaemonMachine;
  /** The same machine with another specification, which needs another daemon. */
  changed: DaemonMachine;
  /** Secrets that no error or log may repeat. */
  canaries: readonly string[];
  /** Everything that was logged. */
  logged(): string;
  /** Number of starts of the machine so far, by any client. */
  starts(): number;
  /** Number of running daemons of the machine. */
  running(): number;
  /** Whether the daemon reports that it is healthy. */
  setHealthy(healthy: boolean): void;
  /** The next start fails, with this text where the provider receives it. */
  failNext(text: string): void;
  /** The daemon's address disappears without notice, as after a crash. */
  crash(): Promise<void>;
  /** Another client starts the machine; it runs when the promise resolves. */
  startElsewhere?(): Promise<void>;
  /** Another client begins to start the machine; it runs when the promise of the returned function resolves. */
  beginElsewhere?(): Promise<() => Promise<void>>;
  /** The backend of the machine answers nothing until the returned function is called. */
  hang?(): () => void;
  /** Another provider on the same records, as the next router has it; the former one is unused from then on. */
  reopen(): Provider;
  close(): Promise<void>;
};

export type OpenProvider = () => Promise<ProviderUnderTest>;

/** Members of a machine that no provider reads. */
export const ABOUT = {
  userId: 'alice',
  state: 'active',
  idleSeconds: null,
  budget: null,
  token: 'canary-token-of-the-machine-0123456789',
  createdAt: 0,
  updatedAt: 0,
} as const;

/** A logger that stores all its records. */
export function keepingLog(): { log: Logger; logged: () => string } {
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  return { log, logged: () => lines.join('') };
}
