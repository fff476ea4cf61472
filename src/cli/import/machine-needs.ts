/** Whether the agent's machine has what the command of a job needs. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { baseFor, probeBubblewrap, SYSTEM_FOLDERS } from '../../kit/process/bubblewrap.ts';
import { isProgram, realOrUndefined } from '../../kit/process/tools.ts';
import { isWithin } from '../../kit/process/view.ts';
import { type CommandMachine, folderOfCommands } from '../../router/machines/machine.ts';
import { routerClient } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import type { ImportContext } from './job.ts';

type Lacks = NonNullable<ImportContext['lacks']>;

/**
 * Asks the router of this computer for the machine, which runs commands only here. Without a router, programs and
 * folders are looked for on this computer.
 */
export async function machineNeeds(context: CliContext, userId: string): Promise<Lacks> {
  const { environment, settings } = context;
  const machine = await routerClient(context)
    .show(userId)
    .catch(() => undefined);
  const isHere = machine === undefined || machine.provider === 'process' || machine.provider === 'command';
  if (!isHere) return () => [`commands need a machine of this computer; yours has provider ${machine.provider}`];
  const { spec } = (machine ?? {}) as Partial<CommandMachine>;
  const folder = machine && folderOfCommands(machine as unknown as CommandMachine);
  if (machine && folder === undefined)
    return () => ["your agent's machine has no folder for commands; register it with --dir"];
  const isClosed =
    baseFor(undefined) === 'system' &&
    spec?.sandbox !== false &&
    settings.REVEILLE_SEPARATION !== 'off' &&
    (await probeBubblewrap(environment.PATH)).kind === 'bubblewrap';
  return lacking(environment.PATH, folder, isClosed ? [...SYSTEM_FOLDERS, ...(spec?.writable ?? [])] : undefined);
}

/**
 * @param path the value of PATH
 * @param folder where commands run, if it is known
 * @param seen the folders that a command of root sees besides; absent for all
 */
export function lacking(path: string | undefined, folder: string | undefined, seen?: readonly string[]): Lacks {
  const at = (name: string) => (folder === undefined ? name : resolve(folder, name));
  const absence = (what: string, name: string, isThere: boolean): string[] => {
    if (!isThere) return [`your agent's machine has no ${what} ${name}`];
    const real = realOrUndefined(at(name)) ?? name;
    const isSeen = seen === undefined || !name.includes('/') || [...seen, folder!].some((one) => isWithin(real, one));
    return isSeen ? [] : [`the sandbox of commands hides the ${what} ${name}; put it into the folder of the machine`];
  };
  return ({ program, searchPath = path, folder: own }) => {
    const isKnown = (name: string | undefined) => name?.startsWith('/') || folder !== undefined;
    const isFound = (name: string) =>
      name.includes('/') ? isProgram(resolve(at(own ?? '.'), name), undefined) : isProgram(name, searchPath);
    return [
      ...(own !== undefined && isKnown(own)
        ? absence('folder', own, statSync(at(own), { throwIfNoEntry: false })?.isDirectory() ?? false)
        : []),
      ...(program !== undefined && (!program.includes('/') || isKnown(program))
        ? absence('program', program, isFound(program))
        : []),
    ];
  };
}
