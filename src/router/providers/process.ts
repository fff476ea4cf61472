/** Provider `process`: a daemon that the router starts as a process of this machine. */
import { join } from 'node:path';
import {
  checksFact,
  checksFlag,
  type Descriptor,
  type Flag,
  folderFlags,
  healthPathFact,
  healthPathFlag,
  listed,
  portFact,
  portFlag,
  sandboxFact,
  sandboxFlag,
  text,
  variableFacts,
  variablesFlag,
  writableFact,
  writableFlag,
} from './descriptor.ts';
import { MEMORY_MB, NICENESS, OPEN_FILES, PROCESSES, processSpecSchema } from './process-spec.ts';
import { plain, shownArguments, shownPath, shownVariables } from './redaction.ts';

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
    checks: plain,
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
    checksFlag,
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
    checksFact(spec),
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
