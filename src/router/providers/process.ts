/** Provider `process`: a daemon that the router starts as a process of this machine. */
import { join } from 'node:path';
import { z } from 'zod';
import {
  argument,
  type Descriptor,
  type Flag,
  folderFlags,
  healthPath,
  healthPathFact,
  healthPathFlag,
  listed,
  port,
  portFact,
  portFlag,
  sandbox,
  sandboxFact,
  sandboxFlag,
  text,
  variableFacts,
  variables,
  variablesFlag,
  writable,
  writableFact,
  writableFlag,
} from './descriptor.ts';
import { plain, shownArguments, shownPath, shownVariables } from './redaction.ts';

const MEMORY_MB = [16, 1_048_576] as const;
const PROCESSES = [1, 100_000] as const;
const OPEN_FILES = [16, 1_048_576] as const;
const NICENESS = [0, 19] as const;
const whole = ([min, max]: readonly [number, number]) => z.int().min(min).max(max).optional();

/** The limits of a process with its descendants; they are ended when they exceed one. */
const processLimitsSchema = z.strictObject({
  /** Resident memory, in MiB, checked once a second. */
  memory_mb: whole(MEMORY_MB),
  /** The number of processes, checked once a second. */
  processes: whole(PROCESSES),
  /** Open files of each process; the kernel enforces it. Linux only. */
  open_files: whole(OPEN_FILES),
  /** Priority: 0 is that of the router, 19 the lowest. */
  niceness: whole(NICENESS),
});
export type ProcessLimits = z.output<typeof processLimitsSchema>;

const userNumber = z.int().min(1, 'must be the number of a user other than root').max(4_294_967_294);
const runAsSchema = z.strictObject({ uid: userNumber, gid: userNumber });
export type RunAs = z.output<typeof runAsSchema>;

export const processSpecSchema = z.strictObject({
  command: z.array(argument.min(1)).min(1),
  cwd: argument.min(1).optional(),
  env: variables,
  port: port.optional(),
  /**
   * Another program listens for it (`docker run -p`), so the router must not require that the listener is the program
   * itself.
   */
  foreign_listener: z.boolean().optional(),
  health_path: healthPath,
  limits: processLimitsSchema.optional(),
  /** The system user that it runs as; the router must be able to become that user. */
  run_as: runAsSchema.optional(),
  writable,
  sandbox,
});

function limitFlag(name: string, range: readonly [number, number], about: string): Flag {
  const kind = { whole: range };
  return { usage: `--${name.replaceAll('_', '-')} <n>`, about, member: `limits.${name}`, kind };
}

/** The limits as command line flags. */
function limitsAsFlags(limits: unknown): string | undefined {
  if (typeof limits !== 'object' || limits === null) return undefined;
  return Object.entries(limits)
    .map(([name, value]) => `--${name.replaceAll('_', '-')} ${value}`)
    .join(' ');
}

export const PROCESS: Descriptor<'process', typeof processSpecSchema> = {
  name: 'process',
  about: 'a command to start',
  schema: processSpecSchema,
  shown: {
    ...{ command: shownArguments, cwd: plain, env: shownVariables, port: plain, foreign_listener: plain },
    ...{ health_path: shownPath, limits: plain, run_as: plain, writable: plain, sandbox: plain },
  },
  identity: ['command', 'cwd'],
  handsToken: true,
  flags: [
    {
      usage: '--',
      about: 'the command',
      member: 'command',
      kind: 'words',
      needed: 'the command is missing; write it after two dashes: --provider process -- node my-agent.js',
    },
    ...folderFlags('the folder in which it runs (default: here)', () => '.'),
    variablesFlag,
    { ...portFlag, about: 'the port of the daemon (default: a free one), passed as PORT' },
    {
      usage: '--foreign-listener',
      about: 'another program listens for it (docker run -p); trust any listener on the port',
      member: 'foreign_listener',
      kind: 'switch',
    },
    healthPathFlag,
    limitFlag('memory_mb', MEMORY_MB, 'end it when it and its children use more memory'),
    limitFlag('processes', PROCESSES, 'end it when it and its children are more processes'),
    limitFlag('open_files', OPEN_FILES, 'the open file limit of each of them'),
    limitFlag('niceness', NICENESS, 'its priority, from 0 (as the router) to 19 (lowest)'),
    {
      usage: '--run-as <user>',
      about: 'run it as another user of the system, by name or uid:gid (the router must be root)',
      member: 'run_as',
      kind: 'user',
    },
    writableFlag,
    sandboxFlag,
  ],
  facts: (spec) => [
    ['command', listed(spec.command)],
    ['folder', text(spec.cwd)],
    portFact(spec),
    ['listens', spec.foreign_listener === true ? 'another program, on its behalf' : undefined],
    healthPathFact(spec),
    ['limits', limitsAsFlags(spec.limits)],
    ['runs as', spec.run_as === undefined ? undefined : Object.values(spec.run_as as object).join(':')],
    writableFact(spec),
    sandboxFact(spec),
    ...variableFacts(spec),
  ],
  async create({ config, file, commits, reaper, ...parts }) {
    const { ProcessProvider } = await import('./process-provider.ts');
    const { ProcessRecords } = await import('./process-records.ts');
    return new ProcessProvider({
      ...parts,
      records: new ProcessRecords(file, commits),
      logFolder: join(config.dataDir, 'machine-logs'),
      outlivesRouter: config.keepMachines,
      onRunning: (some) => (some ? reaper.watch() : reaper.dismiss()),
    });
  },
};
