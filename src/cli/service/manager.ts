/** The port to whatever starts services on this system, and which one that is. */
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import type { ServicePlace } from './place.ts';

/** What a service manager is told to run. */
export type ServiceSpec = {
  readonly name: string;
  /** The program and its words. */
  readonly command: readonly string[];
  /** What is run to its end before each start, where the manager can; whatever becomes of it, the start follows. */
  readonly before?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Where output goes that the system keeps nowhere. */
  readonly logFile: string;
};

export type ServiceState = {
  /** `missing`: not installed. `failing`: it ended, and is started again. */
  readonly state: 'missing' | 'stopped' | 'starting' | 'running' | 'failing';
  readonly enabled: boolean;
  readonly pid: number | undefined;
  /** Whether it starts with the computer, and not only when its user logs in; `undefined` when that is not known. */
  readonly atBoot: boolean | undefined;
};

export type ServiceManager = {
  /** As it is called in a sentence. */
  readonly title: string;
  /** The file that makes it a service. */
  readonly file: string;
  /** What it would write. */
  text(spec: ServiceSpec): string;
  /** Writes the file, enables and starts the service. @throws ReveilleError when the manager does not take it */
  install(spec: ServiceSpec): Promise<void>;
  /** Stops the service, disables it and takes the file away; harmless when there is none. */
  uninstall(name: string): Promise<void>;
  start(name: string): Promise<void>;
  stop(name: string): Promise<void>;
  state(name: string): Promise<ServiceState>;
  /** The last lines of its output. */
  lastLines(name: string, count: number): Promise<string[]>;
  /** A program that shows its output, for {@link handOver}. */
  logCommand(name: string, lines: number, follow: boolean): readonly [string, ...string[]];
  /** What to do so that it starts with the computer, in words; `undefined` when it does anyway. */
  readonly bootRemedy: string | undefined;
};

/** What each manager's adapter is made of. */
export type ManagerOptions = {
  readonly environment: Settings;
  readonly place: ServicePlace;
  readonly homePath: string;
};

/**
 * The service manager of this system.
 *
 * @throws ReveilleError `unavailable` when there is none, or it does not answer
 */
export async function serviceManager(
  options: ManagerOptions,
  platform: NodeJS.Platform = process.platform,
): Promise<ServiceManager> {
  if (platform === 'darwin') return (await import('./launchd.ts')).launchd(options);
  if (platform === 'win32') return (await import('./windows-task.ts')).windowsTask(options);
  if (platform === 'linux') return (await import('./systemd.ts')).systemd(options);
  throw noManager(`${platform} has none that Reveille knows`);
}

export function noManager(why: string): ReveilleError {
  const remedy = 'have what starts programs on this computer run "reveille up" (docs/service.md says how)';
  return new ReveilleError('unavailable', `no service manager: ${why}; ${remedy}`, { retryable: false });
}
