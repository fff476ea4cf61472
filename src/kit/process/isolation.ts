/**
 * The sandbox of started programs. The system is read-only for them, other users' files are hidden, and only named
 * folders are writable. {@link viewOf} decides what a program sees. bubblewrap enforces it on Linux, `sandbox-exec` on
 * macOS, and nothing on other systems (docs/concepts/isolation.md).
 */
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { baseFor, bubblewrapCommand, probeBubblewrap } from './bubblewrap.ts';
import { seatbeltCommand } from './seatbelt.ts';
import { isTooBroad, realOrUndefined, toolsOf } from './tools.ts';
import {
  type Base,
  type Grant,
  isWithin,
  PRIVATE_FOLDERS,
  type ProgramUser,
  SANDBOX_VARIABLE,
  type SandboxMechanism,
  type SandboxView,
  type View,
} from './view.ts';

/** `auto`: a sandbox if the system has one. `required`: no program starts without one. `off`: none. */
export const ISOLATION_MODES = ['auto', 'required', 'off'] as const;
export type IsolationMode = (typeof ISOLATION_MODES)[number];

export type SandboxPaths = {
  /** Folders, files and sockets that no program sees. Missing paths are ignored. */
  readonly hidden: readonly string[];
  /** Folders in which a program sees and may write only the subfolders that it names. */
  readonly shared?: readonly string[];
  /** Hidden paths that become visible if a program's command, environment or folder names them. */
  readonly grantable: readonly Grant[];
  /** Read-only even inside writable folders, unless the program's working folder is in it. */
  readonly kept: readonly string[];
  /** Files and folders that no program may write: files that a shell or a desktop runs automatically. */
  readonly never?: readonly string[];
  /** The person's home folder, which is never writable as a whole; by default that of this process. */
  readonly home?: string;
  /** Real paths of programs that build their own sandboxes: Reveille's own command. */
  readonly nesting?: readonly string[];
  /** Readable for every program at any location: Reveille's code. */
  readonly tools?: readonly string[];
};

export const NO_SANDBOX_PATHS: SandboxPaths = { hidden: [], grantable: [], kept: [] };

export type SandboxedProgram = {
  readonly command: readonly string[];
  /** The operator's part of the command: by default all of it. A model's arguments grant no access. */
  readonly words?: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** More hidden paths: the folders of other users. A folder that contains a path of the program is ignored. */
  readonly others?: () => readonly string[];
  /** Files that it does not see, also in its own folders: keys of the program for which it works. */
  readonly keys?: readonly string[];
  /** Granted to this program even if it does not name them. */
  readonly granted?: readonly Grant[];
  /** Folders, and existing files, that it may write besides its working folder. A folder ends with a slash. */
  readonly writable?: readonly string[];
  /** Read-only paths below those. */
  readonly readOnly?: readonly string[];
  /** A closed sandbox with only this view, if bubblewrap works. */
  readonly room?: SandboxView | undefined;
  /** A single command that needs no sandbox of its own: it may make no user namespaces, where that can be forbidden. */
  readonly isCommand?: boolean;
  /** In a closed sandbox: it ends with this process, also if that is killed. */
  readonly endsWithParent?: boolean;
  /** The user that it runs as; by default this process's. */
  readonly user?: ProgramUser;
};

/** Set for a program in a sandbox, so that it need not build its own. */
export const ISOLATED_VARIABLE = 'REVEILLE_SEPARATED';

const SEATBELT = '/usr/bin/sandbox-exec';

/** The path without links, also if its last parts do not exist yet. */
function realOf(path: string): string {
  const real = realOrUndefined(path);
  if (real !== undefined || dirname(path) === path) return real ?? path;
  return join(realOf(dirname(path)), path.slice(dirname(path).length).replace(/^\/+/, ''));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** The paths that are not below another one. */
function outermost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => other !== path && isWithin(path, other)));
}

/** Variables whose values are a program's own folders. */
const OWN_FOLDER = /_(?:DATA_DIR|WORKSPACE)$/;
/** System folders, in which nothing is ever writable. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc', '/boot', '/dev', '/proc', '/sys', '/run'];

/** Every absolute path in the operator's arguments or the environment. */
function namedPaths({ command, words: operatorArguments = command, env }: SandboxedProgram): string[] {
  // "--folder=/srv/x" names /srv/x, and a list in a variable each of its members.
  const parts = [...operatorArguments, ...Object.values(env)]
    .flatMap((word) => word.split(delimiter))
    .flatMap((part) => [part, part.slice(part.indexOf('=') + 1)]);
  return [...new Set(parts.filter((part) => isAbsolute(part)))].map((path) => realOf(resolve(path)));
}

/**
 * The folders that a program names as its own, and its declared writable paths. A program can replace a folder below a
 * writable one by a link. A path that leaves another own folder through a link is therefore not granted.
 */
function ownPaths({ cwd: given, env, writable = [] }: SandboxedProgram, cwd: string | undefined): string[] {
  const folders = Object.entries(env).flatMap(([name, value]) => (OWN_FOLDER.test(name) ? [value] : []));
  const declared = writable.filter((path) => path.endsWith('/') || realOrUndefined(path) !== undefined);
  const paths = [...folders, ...declared].filter((path) => isAbsolute(path)).map((path) => resolve(path));
  const around = [...paths, ...(cwd === undefined ? [] : [cwd, resolve(given!)])];
  const leaves = (path: string) =>
    around.some((folder) => folder !== path && isWithin(path, folder) && !isWithin(realOf(path), realOf(folder)));
  return [...(cwd === undefined ? [] : [cwd]), ...paths.filter((path) => !leaves(path)).map(realOf)];
}

/** A program's view, from the hidden paths and the paths that it names. Reads the disk and changes nothing. */
export function viewOf(places: SandboxPaths, program: SandboxedProgram, base: Base = 'everything'): View {
  const { hidden, shared = [], grantable, kept, never = [], tools = [] } = places;
  const cwd = program.cwd === undefined ? undefined : realOf(program.cwd);
  const named = [...namedPaths(program), ...(cwd === undefined ? [] : [cwd])];
  const others = (program.others?.() ?? []).map(realOf).filter((path) => !named.some((own) => isWithin(own, path)));
  const hiding = outermost(
    [...hidden, ...shared, ...others, ...(program.keys ?? [])].flatMap((path) => realOrUndefined(path) ?? []),
  );
  const isHidden = (path: string) => hiding.some((hiddenPath) => isWithin(path, hiddenPath));
  const fromNames = grantable.flatMap(({ path, writable }) => {
    const grant = realOf(path);
    return named.filter((name) => isWithin(name, grant)).map((name) => ({ path: name, writable }));
  });
  const fromShared = shared
    .map(realOf)
    .flatMap((root) =>
      named.filter((name) => name !== root && isWithin(name, root)).map((name) => ({ path: name, writable: true })),
    );
  const own = ownPaths(program, cwd).flatMap((path) => (isHidden(path) ? [] : [{ path, writable: true }]));
  const granted = (program.granted ?? []).map(({ path, writable }) => ({ path: realOf(path), writable }));
  const home = realOf(places.home ?? homedir());
  const forbidden = [...never, ...SYSTEM_FOLDERS].map(realOf);
  const mayWrite = (path: string) =>
    !isTooBroad(path, home) && !forbidden.some((hiddenPath) => isWithin(path, hiddenPath) || hiddenPath === path);
  const all = [...fromNames, ...fromShared, ...own, ...granted];
  const written = [...new Set(all.flatMap(({ path, writable }) => (writable && mayWrite(path) ? [path] : [])))];
  // A read-only grant inside a writable folder does not make it read-only.
  const isReadAnyway = (path: string) => {
    const around = [...hiding, ...written, ...PRIVATE_FOLDERS].filter((folder) => isWithin(path, folder));
    const nearest = around.sort((one, other) => other.length - one.length)[0];
    return nearest === undefined ? base === 'everything' : written.includes(nearest);
  };
  const read = outermost(
    [...fromNames, ...fromShared, ...granted].flatMap(({ path, writable }) =>
      writable || isReadAnyway(path) ? [] : [path],
    ),
  );
  return {
    base,
    hidden: hiding.map((path) => ({ path, isFolder: isFolder(path) })),
    shown: [...written.map((path) => ({ path, writable: true })), ...read.map((path) => ({ path, writable: false }))],
    kept: outermost([
      // A developer of the program has its code as the working folder.
      ...kept
        .flatMap((path) => realOrUndefined(path) ?? [])
        .filter((path) => cwd === undefined || !isWithin(cwd, path) || !written.includes(cwd)),
      ...[...never, ...(program.readOnly ?? [])].flatMap((path) => realOrUndefined(path) ?? []),
    ]),
    tools: outermost([
      ...tools.flatMap((path) => realOrUndefined(path) ?? []),
      ...toolsOf(program.words ?? program.command, program.env, cwd, named, home),
    ]),
  };
}

/** The view of a program in a closed sandbox. */
function closedView({ readable, writable }: SandboxView, hidden: readonly string[]): View {
  return {
    base: 'system',
    hidden: outermost(hidden.flatMap((path) => realOrUndefined(path) ?? [])).map((path) => ({
      path,
      isFolder: isFolder(path),
    })),
    shown: [
      ...readable.map((path) => ({ path: realOf(path), writable: false })),
      ...writable.map((path) => ({ path: realOf(path), writable: true })),
    ],
    kept: [],
    tools: [],
  };
}

export class Sandbox {
  readonly mode: IsolationMode;
  readonly paths: SandboxPaths;
  readonly #path: string | undefined;

  /** @param path where programs are looked for, as `PATH` has it */
  constructor(mode: IsolationMode, places: SandboxPaths, path: string | undefined) {
    this.mode = mode;
    // Includes the targets of links, before any program can change them.
    this.paths = {
      ...places,
      hidden: [...places.hidden, ...places.hidden.flatMap((path) => realOrUndefined(path) ?? [])],
    };
    this.#path = path;
  }

  /** The mechanism that enforces the sandbox. Tested once per user, which takes some ten milliseconds. */
  async mechanism(user?: ProgramUser): Promise<SandboxMechanism> {
    if (this.mode === 'off') return { kind: 'none', why: 'REVEILLE_SEPARATION is off' };
    if (process.platform === 'linux') return await probeBubblewrap(this.#path, user);
    if (process.platform === 'darwin' && statSync(SEATBELT, { throwIfNoEntry: false }))
      return { kind: 'seatbelt', path: SEATBELT };
    return { kind: 'none', why: `there is no sandbox for ${process.platform} yet` };
  }

  /**
   * The command that runs a program in the sandbox, or the program's own command if there is none.
   *
   * @returns `carried`: the started process is bubblewrap, which returns the program's exit status
   * @throws Error if the sandbox is required and not available, or if the working folder is hidden
   */
  async wrap(program: SandboxedProgram): Promise<{ command: readonly string[]; carried: boolean }> {
    const { command, cwd, env, user, room, endsWithParent = false, isCommand = false } = program;
    const means = await this.mechanism(user);
    if (means.kind === 'none') {
      if (this.mode !== 'required') return { command, carried: false };
      throw new Error(`REVEILLE_SEPARATION is required, and programs cannot be isolated here: ${means.why}`);
    }
    const forbidsNamespaces = isCommand && means.kind === 'bubblewrap' && means.forbidsNamespaces;
    if (room && means.kind === 'bubblewrap' && !user) {
      const home = room.writable[0]!;
      for (const folder of room.writable) await mkdir(folder, { recursive: true, mode: 0o700 });
      const others = (program.others?.() ?? []).filter((path) => !isWithin(home, path));
      const hidden = [...this.paths.hidden, ...others, ...(program.keys ?? [])];
      const inside = bubblewrapCommand(means.path, closedView(room, hidden), command, {
        ...{
          network: room.network,
          home,
          cwd: home,
          endsWithParent,
          forbidsNamespaces,
          withoutVariables: ['XDG_CACHE_HOME'],
        },
        variables: { HOME: home, TMPDIR: '/tmp', [SANDBOX_VARIABLE]: '1' },
      });
      return { command: inside, carried: true };
    }
    const view = await this.#view(program);
    const isHidden = (path: string) =>
      view.hidden.some((entry) => isWithin(path, entry.path)) && !view.shown.some((own) => isWithin(path, own.path));
    if (cwd !== undefined && isHidden(realOf(cwd)))
      throw new Error(`the folder ${cwd} is hidden from programs that Reveille starts; choose another working folder`);
    const isOpen = (path: string) => [...view.tools, ...view.kept].some((open) => isWithin(path, open));
    // Another argument of an alarm's command is plain text: what it names is simply not there.
    const unseen = (isCommand ? command.slice(0, 1) : command).find((word) => {
      const real = isAbsolute(word) ? realOrUndefined(word) : undefined;
      return real !== undefined && isHidden(real) && !isOpen(real);
    });
    if (unseen !== undefined)
      throw new Error(
        `the sandbox hides ${unseen} from the program, because it is in a folder of Reveille; move it to another folder`,
      );
    // Created here, because the parent is read-only inside.
    for (const { path, writable } of view.shown)
      if (writable && !user && realOrUndefined(path) === undefined) await mkdir(path, { recursive: true, mode: 0o700 });
    const existing = { ...view, shown: view.shown.filter(({ path }) => realOrUndefined(path) !== undefined) };
    if (means.kind === 'seatbelt') return { command: seatbeltCommand(means.path, existing, command), carried: false };
    const inside = bubblewrapCommand(means.path, existing, command, {
      ...{ user, home: cwd ?? env.HOME, nests: !isCommand && this.#nests(program), forbidsNamespaces },
      variables: { TMPDIR: '/tmp' },
    });
    return { command: inside, carried: true };
  }

  /** Whether it is a Reveille program that builds its own sandboxes. */
  #nests({ command, words: operatorArguments = command }: SandboxedProgram): boolean {
    return operatorArguments.some((word) => isAbsolute(word) && this.paths.nesting?.includes(realOf(word)));
  }

  /** For another user, bubblewrap cannot name paths that the user cannot reach, and need not hide them. */
  async #view(program: SandboxedProgram): Promise<View> {
    const { user } = program;
    const base = baseFor(user);
    if (!user) return viewOf(this.paths, program, base);
    const hidden = [...this.paths.hidden, `/run/user/${user.uid}`];
    const view = viewOf({ ...this.paths, hidden }, program, base);
    const lists = [view.hidden.map(({ path }) => path), view.kept, view.tools, view.shown.map(({ path }) => path)];
    const reached = await reachedBy(user, lists.flat());
    const reachable = new Set(lists.flat().filter((_, index) => reached.has(index)));
    return {
      base,
      hidden: view.hidden.filter(({ path }) => reachable.has(path)),
      shown: view.shown.filter(({ path }) => reachable.has(path)),
      kept: view.kept.filter((path) => reachable.has(path)),
      tools: view.tools.filter((path) => reachable.has(path)),
    };
  }
}

/** Prints the index of each argument that exists and can be reached. */
const REACHABLE_SCRIPT = 'i=0; for p; do [ -e "$p" ] && echo $i; i=$((i+1)); done; :';

/**
 * Indexes of the paths that another user can reach, tested by a process of that user. @throws Error if this process may
 * not become that user
 */
export function reachedBy({ uid, gid }: ProgramUser, paths: readonly string[]): Promise<ReadonlySet<number>> {
  return new Promise((resolved, reject) => {
    execFile('/bin/sh', ['-c', REACHABLE_SCRIPT, 'sh', ...paths], { uid, gid, cwd: '/', env: {} }, (error, output) => {
      if (error) reject(new Error(`no program can be run as ${uid}:${gid}: ${error.message.split('\n')[0]}`));
      else resolved(new Set(output.split('\n').filter(Boolean).map(Number)));
    });
  });
}
