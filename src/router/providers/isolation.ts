/** Isolates a machine's program with a sandbox, and optionally another system user. */
import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute } from 'node:path';
import { ISOLATED_VARIABLE, reachedBy, type Sandbox } from '../../kit/process/isolation.ts';
import { isProgram, isTooBroad, realOrUndefined } from '../../kit/process/tools.ts';
import { type Grant, isWithin, type ProgramUser } from '../../kit/process/view.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import type { ProviderMachine } from './provider.ts';
import { folderProblem } from './start-command.ts';

export type IsolationOptions = {
  /** By default no sandbox. */
  sandboxer?: Sandbox | undefined;
  /** Paths below hidden folders that a user's machine may read anyway. */
  grantedTo?: ((userId: string) => readonly Grant[]) | undefined;
  /** All machines of the registry. */
  machines: () => Iterable<ProviderMachine>;
};

export type MachineProgram = {
  userId: string;
  command: readonly string[];
  /** The arguments of the command that come from the specification; by default all of them. */
  specArgs?: readonly string[];
  cwd: string | undefined;
  env: Record<string, string>;
  /** The paths that it may write besides its folder, from its specification and its preset. */
  writable?: readonly string[] | undefined;
  /** The paths below them that stay read-only. */
  readOnly?: readonly string[];
  /** The value of the specification. */
  sandbox: boolean | undefined;
  /** The command of an alarm: it is not the agent, so it gets none of the agent's keys. */
  isCommand?: boolean;
  runAs?: ProgramUser | undefined;
};

/** A command that decides or prepares something for a machine, and is not its agent. */
export type EnclosedProgram = {
  userId: string;
  command: readonly string[];
  cwd: string;
  env: Record<string, string>;
  network: boolean;
  /** Folders that it may write besides its working folder. */
  writable?: readonly string[] | undefined;
};

/** The command to start. `wrapped` says how its end is read. */
export type IsolatedProgram = {
  command: readonly string[];
  env: Record<string, string>;
  cwd: string | undefined;
  isWrapped: boolean;
};

/** Variables of a machine whose values are folders or files of its user. */
const OWN_PATH = /_(?:DATA_DIR|WORKSPACE|KEYFILE)$/;

/** The folders and files that a machine uses, from its specification. */
function pathsOf({ spec }: ProviderMachine): string[] {
  const { cwd, env }: { cwd?: string; env?: Readonly<Record<string, string>> } = spec;
  const named = Object.entries(env ?? {}).flatMap(([name, value]) => (OWN_PATH.test(name) ? [value] : []));
  return [...(cwd === undefined ? [] : [cwd]), ...named].filter((path) => path.startsWith('/'));
}

/** The key files of a machine's agent, from its specification. */
function keysOf({ spec }: ProviderMachine): string[] {
  const { env = {} }: { env?: Readonly<Record<string, string>> } = spec;
  return Object.entries(env).flatMap(([name, path]) => (name.endsWith('_KEYFILE') && isAbsolute(path) ? [path] : []));
}

/** Bits of `CapEff` in proc(5): the right to change groups and users. */
const SETGID_AND_SETUID = 0b1100_0000n;

/** The reason why this process cannot run programs as other users; `undefined` when it can. */
export function cannotRunAs(): string | undefined {
  const message = 'run_as needs a router that may become other users: root, or one with CAP_SETUID and CAP_SETGID';
  if (process.geteuid === undefined) return message;
  if (process.geteuid() === 0) return undefined;
  if (process.platform !== 'linux') return message;
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0';
  return (BigInt(`0x${effective}`) & SETGID_AND_SETUID) === SETGID_AND_SETUID ? undefined : message;
}

export class Isolation {
  readonly #options: IsolationOptions;

  constructor(options: IsolationOptions) {
    this.#options = options;
  }

  /**
   * @throws ReveilleError `unavailable` when the program is missing, may not be isolated this way, or cannot work in
   *   its folder
   */
  async isolate({
    userId,
    command,
    cwd,
    env,
    sandbox,
    runAs,
    isCommand = false,
    ...more
  }: MachineProgram): Promise<IsolatedProgram> {
    const { sandboxer, grantedTo } = this.#options;
    // A sandbox makes missing folders, and would hide the error.
    const problem = await folderProblem(cwd);
    if (problem !== undefined) throw new ReveilleError('unavailable', problem);
    const plain = runAs ? await asUser(runAs, { command, cwd, env }) : { command, cwd, env };
    if (sandboxer === undefined) return { ...plain, isWrapped: false };
    if (sandbox === false) {
      if (sandboxer.mode !== 'required') return { ...plain, isWrapped: false };
      throw refused(
        `REVEILLE_SEPARATION is required where the router runs, and the machine was registered with --no-sandbox`,
      );
    }
    // A wrapper would turn a missing program into an exit code. It is not started without one: a program of the machine
    // could appear there in this moment.
    if (!isProgram(command[0] ?? '', env.PATH, cwd))
      throw new ReveilleError(
        'unavailable',
        `the command ${JSON.stringify(command[0])} could not be started: there is no such program on its PATH`,
      );
    try {
      const wrapped = await sandboxer.wrap({
        ...plain,
        ...{ words: more.specArgs ?? command, writable: more.writable ?? [], readOnly: more.readOnly ?? [] },
        others: () => this.#othersOf(userId),
        ...(isCommand ? { isCommand, keys: this.#keysOf(userId) } : { granted: grantedTo?.(userId) ?? [] }),
        ...(runAs ? { user: runAs } : {}),
      });
      const environment = wrapped.carried ? { ...plain.env, [ISOLATED_VARIABLE]: '1' } : plain.env;
      return { ...plain, command: wrapped.command, env: environment, isWrapped: wrapped.carried };
    } catch (thrown) {
      throw refused(thrownText(thrown), thrown);
    }
  }

  /** Whether a path is in the folder of a machine, or granted to it, and neither hidden nor of another machine. */
  isReadable(userId: string, path: string, folders: readonly string[]): boolean {
    const { sandboxer, grantedTo } = this.#options;
    const { hidden = [], grantable = [] } = sandboxer?.paths ?? {};
    const granted = (grantedTo?.(userId) ?? []).map((grant) => grant.path);
    const given = [...granted, ...grantable.map((grant) => grant.path)];
    // A folder that is hidden itself does not become visible by being the machine's.
    const own = folders.flatMap((folder) => {
      const real = realOrUndefined(folder);
      return real !== undefined && nearest(given, real) >= nearest(hidden, real) ? [real] : [];
    });
    const inside = nearest([...own, ...granted], path);
    return inside >= 0 && inside >= nearest([...hidden, ...this.#othersOf(userId)], path);
  }

  #keysOf(userId: string): string[] {
    return [...this.#options.machines()].flatMap((one) => (one.userId === userId ? keysOf(one) : []));
  }

  /**
   * Whether a machine may write a file, or exchange it by a link on the way to it. It may write in its own, declared
   * and granted folders, except below paths that the sandbox keeps read-only, and what its system user owns.
   */
  isWritable(machine: ProviderMachine, file: string): boolean {
    const { sandboxer, grantedTo } = this.#options;
    const { writable = [], run_as, sandbox = true } = machine.spec as MayWrite;
    const granted = (grantedTo?.(machine.userId) ?? []).flatMap((grant) => (grant.writable ? [grant.path] : []));
    const own = [...pathsOf(machine), ...writable, ...granted];
    const isSandboxed = sandbox && sandboxer !== undefined && sandboxer.mode !== 'off';
    const kept = isSandboxed ? sandboxer.paths.kept : [];
    const mayWrite = (path: string) => {
      const real = realOrUndefined(path);
      if (real === undefined) return false;
      if (run_as !== undefined && statSync(real).uid === run_as.uid) return true;
      return nearest(own, real) > nearest(kept, real);
    };
    return [file, ...foldersAround(file)].some(mayWrite);
  }

  #othersOf(userId: string): string[] {
    return [...this.#options.machines()].flatMap((one) => (one.userId === userId ? [] : pathsOf(one)));
  }

  /**
   * A command in a closed sandbox: the system's programs and some folders, and only the given variables. It ends with
   * the router.
   *
   * @throws ReveilleError `unavailable` when the folder is not usable, or when there is no such sandbox here
   */
  async enclose(program: EnclosedProgram): Promise<IsolatedProgram> {
    const { userId, command, cwd, env, network, writable } = program;
    const { sandboxer } = this.#options;
    const problem = await folderProblem(cwd);
    if (problem !== undefined) throw new ReveilleError('unavailable', problem);
    const real = realOrUndefined(cwd)!;
    if (!this.isReadable(userId, real, [cwd]))
      throw new ReveilleError('unavailable', `the folder ${cwd} is hidden from programs that Reveille starts`);
    // The operator has switched the sandbox off.
    if (sandboxer === undefined || sandboxer.mode === 'off') return { command, env, cwd, isWrapped: false };
    if (isTooBroad(real, sandboxer.paths.home ?? homedir()))
      throw new ReveilleError('unavailable', `the folder ${cwd} is too broad to be written to; choose another --dir`);
    const means = await sandboxer.mechanism();
    if (means.kind !== 'bubblewrap') {
      const why = means.kind === 'none' ? means.why : 'sandbox-exec cannot close one';
      throw new ReveilleError('unavailable', `there is no closed sandbox here: ${why}`);
    }
    const own = (writable ?? []).filter((path) => this.isReadable(userId, realOrUndefined(path) ?? path, [path]));
    const wrapped = await sandboxer.wrap({
      ...{ command, cwd, env, endsWithParent: true, others: () => this.#othersOf(userId) },
      ...{ isCommand: true, keys: this.#keysOf(userId) },
      room: { writable: [real, ...own], readable: [], network },
    });
    return { command: wrapped.command, env, cwd: real, isWrapped: wrapped.carried };
  }
}

type MayWrite = { writable?: readonly string[]; run_as?: ProgramUser; sandbox?: boolean };

function foldersAround(path: string): string[] {
  const folder = dirname(path);
  return folder === path ? [] : [folder, ...foldersAround(folder)];
}

/** The length of the longest of some folders around a path; -1 without one. */
function nearest(folders: readonly string[], path: string): number {
  return Math.max(
    -1,
    ...folders.map((folder) => {
      const real = realOrUndefined(folder);
      return real !== undefined && isWithin(path, real) ? real.length : -1;
    }),
  );
}

function refused(why: string, cause?: unknown): ReveilleError {
  return new ReveilleError('unavailable', `the machine cannot be started: ${why}`, { cause });
}

/**
 * The program for another user: in a folder that the user can enter, and without the variables of the router's user.
 */
async function asUser<T extends Pick<MachineProgram, 'cwd' | 'env'>>(user: ProgramUser, program: T): Promise<T> {
  const why = cannotRunAs();
  if (why !== undefined) throw refused(why);
  const { cwd = '/' } = program;
  try {
    // A path that ends in "/." is reachable for a user who may enter the folder.
    if (!(await reachedBy(user, [`${cwd}/.`])).has(0))
      throw new Error(
        `user ${user.uid}:${user.gid} cannot enter the folder ${cwd}; give it permission, or choose another --dir`,
      );
  } catch (thrown) {
    throw refused(thrownText(thrown), thrown);
  }
  const { USER: _user, LOGNAME: _name, ...env } = program.env;
  return { ...program, cwd, env: { ...env, HOME: cwd } };
}
