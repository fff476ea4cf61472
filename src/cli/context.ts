/** The context of a command: merged settings, the home folder, output, clock and log. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import type { Logger, LogLevel } from '../kit/log/log.ts';
import { SPAWN_ID_VARIABLE } from '../kit/process/inherited-variables.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { Settings } from '../wire/settings.ts';
import type { CliProcess } from './cli-process.ts';
import { type Home, homeAt, type KnownSecrets, readSecrets } from './home/home.ts';
import { readSettingsFile } from './home/settings-file.ts';
import { createOutput, type Output } from './screens/output.ts';

export type GlobalFlags = { json?: boolean };

export type CliContext = {
  /** Flags over environment over `config.yaml` over generated values. */
  settings: Settings;
  /** The environment alone, for child processes. */
  environment: Settings;
  /** The process of the command line. The global `process` is used for signals and process-wide state. */
  process: CliProcess;
  home: Home;
  out: Output;
  clock: Clock;
  /** A logger for a daemon, at the level of `REVEILLE_LOG`, or at `fallback` without it. */
  log(system: string, fallback?: LogLevel): Promise<Logger>;
};

/** Defaults that depend on the home folder. */
function homeDefaults(home: Home, made: KnownSecrets | undefined): Record<string, string> {
  return {
    REVEILLE_HOME: home.path,
    CHRONOS_DATA_DIR: join(home.path, 'chronos'),
    ROUTER_DATA_DIR: join(home.path, 'router'),
    NEO_DATA_DIR: join(home.path, 'neo'),
    EXECUTOR_DATA_DIR: join(home.path, 'executor'),
    CHRONOMETRIC_DATA_DIR: join(home.path, 'chronometric'),
    NOTIFY_DATA_DIR: join(home.path, 'notify'),
    LEDGER_DATA_DIR: join(home.path, 'ledger'),
    ...(existsSync(home.manifestFile) && { NEO_MANIFEST: home.manifestFile }),
    ...made,
    ...(made ? { ROUTER_WAKE_TOKEN: made.CHRONOS_WAKE_TOKEN } : {}),
  };
}

/** The result of `read`; with `tolerant`, an unreadable file counts as missing. */
async function readOr<T>(absent: T, tolerant: boolean, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (tolerant && error instanceof ReveilleError) return absent;
    throw error;
  }
}

/**
 * Gathers the settings of a command. Only this function reads the environment.
 *
 * @param process with the environment
 * @param flags values from the command line, by the names of the variables they override
 * @param tolerant continues without a damaged `config.yaml` or damaged secrets: for the command that reports them
 * @param canBeMachine when a router starts this command, only the environment counts
 */
export async function createContext(
  process: CliProcess,
  globals: GlobalFlags,
  flags: Settings = {},
  { tolerant = false, canBeMachine = false }: { tolerant?: boolean; canBeMachine?: boolean } = {},
): Promise<CliContext> {
  const environment: Settings = process.env;
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
  const home = homeAt(given.REVEILLE_HOME ?? environment.REVEILLE_HOME);
  // A daemon that a router has started gets its own environment; it reads nothing from the operator's home.
  const isMachine = canBeMachine && environment[SPAWN_ID_VARIABLE] !== undefined;
  const file = isMachine ? {} : await readOr({}, tolerant, () => readSettingsFile(home.configFile));
  const made = isMachine ? undefined : await readOr(undefined, tolerant, () => readSecrets(home));
  const set = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const settings: Settings = { ...(isMachine ? {} : homeDefaults(home, made)), ...file, ...set, ...given };

  const authorities = settings.REVEILLE_TLS_CA;
  if (authorities) {
    const { trustAuthorities } = await import('../kit/http/certificate.ts');
    await readOr(undefined, tolerant, () => trustAuthorities(resolve(authorities)));
    // Child processes may have another folder, and no config.yaml.
    process.env.REVEILLE_TLS_CA = resolve(authorities);
  }

  return {
    settings,
    environment,
    process,
    home,
    out: createOutput(process, globals.json === true),
    clock: systemClock,
    async log(system, fallback = 'info') {
      // Loading the logger takes as long as a small command; other commands do not load it.
      const { createLogger, LOG_LEVELS } = await import('../kit/log/log.ts');
      const level = settings.REVEILLE_LOG ?? fallback;
      const known = LOG_LEVELS.find((name) => name === level);
      if (!known)
        throw new ReveilleError(
          'invalid_request',
          `REVEILLE_LOG must be one of ${LOG_LEVELS.join(', ')} (got "${level}")`,
        );
      if (settings.REVEILLE_OTLP_ENDPOINT === undefined) return createLogger(system, known);
      const { logFields } = await import('../kit/trace/trace.ts');
      return createLogger(system, known, logFields);
    },
  };
}
