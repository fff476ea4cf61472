/** The interface of service managers. */
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import type { ServiceFolders } from './folders.ts';

export type ServiceSpec = {
  readonly name: string;
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** A command that runs before each start, if the manager supports it. The service starts whatever its result is. */
  readonly before?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** The file for output that the system does not store. */
  readonly logFile: string;
};

export type ServiceState = {
  /** `missing`: not installed. `failing`: it ended and is restarted. */
  readonly state: 'missing' | 'stopped' | 'starting' | 'running' | 'failing';
  readonly enabled: boolean;
  readonly pid: number | undefined;
  /** Whether it starts with the computer, not only when its user logs in; `undefined` when unknown. */
  readonly atBoot: boolean | undefined;
};

export type ServiceManager = {
  /** Its name in a sentence. */
  readonly title: string;
  readonly file: string;
  text(spec: ServiceSpec): string;
  /** Writes the file, enables and starts the service. @throws ReveilleError when the manager rejects it */
  install(spec: ServiceSpec): Promise<void>;
  /** Stops and disables the service and removes the file; harmless without a service. */
  uninstall(name: string): Promise<void>;
  start(name: string): Promise<void>;
  stop(name: string): Promise<void>;
  state(name: string): Promise<ServiceState>;
  lastLines(name: string, count: number): Promise<string[]>;
  /** A program that shows its output, for {@link handOver}. */
  logCommand(name: string, lines: number, follow: boolean): readonly [string, ...string[]];
  /** How to start it with the computer, as text; `undefined` when it already does. */
  readonly bootRemedy: string | undefined;
};

/** The parameters of each manager's adapter. */
export type ManagerOptions = {
  readonly environment: Settings;
  readonly place: ServiceFolders;
  readonly homePath: string;
  /** Only its file is asked for: the manager need not answer. */
  readonly isOnlyText?: boolean;
};

export function noManager(why: string): ReveilleError {
  const remedy =
    'let the program that starts services on this computer run "reveille up" (see: reveille docs run as a service)';
  return new ReveilleError('unavailable', `no service manager: ${why}; ${remedy}`, { retryable: false });
}
