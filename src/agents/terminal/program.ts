/** Finds the program of a preset, with readable errors for a missing one. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { programEnvironment } from '../../router/providers/child-environment.ts';
import type { CommandSpec } from '../../router/providers/command.ts';
import { MachineUnavailable } from '../../router/providers/provider.ts';
import { folderProblem } from '../../router/providers/start-command.ts';
import type { TerminalPreset } from '../preset.ts';

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * @param bin a name that is searched on `path`, or an absolute path
 * @param path folders in the form of `PATH`
 * @param remedy how to install it, or to register its path
 * @returns the program's path
 * @throws MachineUnavailable with the searched folders, or that it is not executable, and a remedy
 */
export async function findProgram(bin: string, path: string | undefined, remedy: string): Promise<string> {
  if (isAbsolute(bin)) {
    if (!(await isFile(bin)))
      throw new MachineUnavailable(`the program ${bin} does not exist; register the machine with another --bin`);
    if (!(await isExecutable(bin)))
      throw new MachineUnavailable(`the program ${bin} is not executable; try: chmod +x ${bin}`);
    return bin;
  }
  const folders = (path ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
  let forbidden: string | undefined;
  for (const folder of folders) {
    const candidate = join(folder, bin);
    if (!(await isFile(candidate))) continue;
    if (await isExecutable(candidate)) return candidate;
    forbidden ??= candidate;
  }
  if (forbidden !== undefined)
    throw new MachineUnavailable(`the program ${forbidden} is not executable; try: chmod +x ${forbidden}`);
  const where = folders.length === 0 ? ', which has no folders' : '';
  throw new MachineUnavailable(
    `the program ${JSON.stringify(bin)} is not on the PATH of the router${where}; ${remedy}`,
  );
}

/** @throws MachineUnavailable when there is no such folder */
export async function checkFolder(path: string): Promise<void> {
  const problem = await folderProblem(path);
  if (problem !== undefined) throw new MachineUnavailable(problem);
}

/** The paths of a preset's `state`, for a program with these variables. */
export function statePaths(paths: readonly string[], env: Readonly<Record<string, string>>): string[] {
  return paths.flatMap((path) => {
    const [, variable, rest] = /^(~|\$\w+)?(\/.*)$/.exec(path) ?? [];
    if (rest === undefined) return [];
    if (variable === undefined) return [rest];
    const base = env[variable === '~' ? 'HOME' : variable.slice(1)];
    return base?.startsWith('/') ? [`${base}${rest}`] : [];
  });
}

/** A program that can be started, with its folder and environment. */
export type Program = { path: string; env: Record<string, string> };

/**
 * @param inherited the router's own environment
 * @throws MachineUnavailable with the missing part and a remedy
 */
export async function programOf(
  { bin, install, environment }: TerminalPreset,
  spec: CommandSpec,
  inherited: Readonly<Record<string, string | undefined>>,
  spawnId: string,
  conversationId?: string,
): Promise<Program> {
  const env = programEnvironment(inherited, spec.env ?? {}, { passedOn: environment, spawnId, conversationId });
  const remedy = `install it (${install}), or register its path: reveille machine put --provider ${spec.preset} --bin /path/to/${bin}`;
  return { path: await findProgram(spec.bin ?? bin, env.PATH, remedy), env };
}
