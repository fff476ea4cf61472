/**
 * The sandbox of programs that we start. The system is read-only for them, what is not theirs is hidden, and only named
 * folders are writable. One place decides what a program sees; bubblewrap enforces it on Linux, `sandbox-exec` on macOS,
 * and nothing elsewhere (docs/decisions/0019-separation.md).
 */
import { execFile } from 'node:child_process';
import { realpathSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { baseFor, bubblewrapCommand, probeBubblewrap } from './bubblewrap.ts';
import { seatbeltCommand } from './seatbelt.ts';
import { isTooBroad, toolsOf } from './tools.ts';
import {
  type Base,
  type Grant,
  isWithin,
  type Means,
  PRIVATE_FOLDERS,
  type ProgramUser,
  ROOM_VARIABLE,
  type Room,
  type View,
} from './view.ts';

/** `auto`: a sandbox where the system has one. `required`: no program is started without. `off`: none. */
export const SEPARATION_MODES = ['auto', 'required', 'off'] as const;
export type SeparationMode = (typeof SEPARATION_MODES)[number];

export type Places = {
  /** Folders, files and sockets that no program sees. A path that does not exist is ignored. */
  readonly hidden: readonly string[];
  /** Folders of which a program sees only what it names below them, and may write there. */
  readonly shared?: readonly string[];
  /** What a program gets back when its command, environment or folder names it. */
  readonly grantable: readonly Grant[];
  /** Read-only also where a program may write around it, unless its working folder is in it. */
  readonly kept: readonly string[];
  /** Files and folders that no program may write, whatever it names: what a shell or a desktop starts by itself. */
  readonly never?: readonly string[];
  /** The person's home folder, which is no program's to write as a whole; that of this process without it. */
  readonly home?: string;
  /** Programs that build sandboxes of their own, by their real paths: our own command. */
  readonly nesting?: readonly string[];
  /** What every program may read wherever it is: our code. */
  readonly tools?: readonly string[];
};

export const NO_PLACES: Places = { hidden: [], grantable: [], kept: [] };

export type WalledProgram = {
  readonly command: readonly string[];
  /** The words of the command that the operator wrote: all of them by default. A model's words must name nothing. */
  readonly words?: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Hidden from this program besides: the folders of other users. Those that it works in itself are ignored. */
  readonly others?: () => readonly string[];
  /** Given to this program, whether it names it or not. */
  readonly granted?: readonly Grant[];
  /** Folders, and files that exist, that it may write besides its working folder. A folder ends with a slash. */
  readonly writable?: readonly string[];
  /** What it may not write below those. */
  readonly readOnly?: readonly string[];
  /** It sees no more than this, where bubblewrap works. */
  readonly room?: Room | undefined;
  /** Whom it runs as; as us without it. */
  readonly user?: ProgramUser;
};

/** Tells a program that it runs in a sandbox: it need not insist on one of its own. */
export const SEPARATED_VARIABLE = 'REVEILLE_SEPARATED';

const SEATBELT = '/usr/bin/sandbox-exec';

function realOrUndefined(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** The path without links, also where its last parts do not exist yet. */
function realOf(path: string): string {
  const real = realOrUndefined(path);
  if (real !== undefined || dirname(path) === path) return real ?? path;
  return join(realOf(dirname(path)), path.slice(dirname(path).length).replace(/^\/+/, ''));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Without those that lie below another one. */
function outermost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => other !== path && isWithin(path, other)));
}

/** Variables of a program whose values are folders that it works in. */
const OWN_FOLDER = /_(?:DATA_DIR|WORKSPACE)$/;
/** Nothing in these is ever writable. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc', '/boot', '/dev', '/proc', '/sys', '/run'];

/** Every absolute path that the operator's words or the environment name. */
function namedPaths({ command, words = command, env }: WalledProgram): string[] {
  // "--folder=/srv/x" names /srv/x, and a list in a variable each of its members.
  const parts = [...words, ...Object.values(env)]
    .flatMap((word) => word.split(delimiter))
    .flatMap((part) => [part, part.slice(part.indexOf('=') + 1)]);
  return [...new Set(parts.filter((part) => isAbsolute(part)))].map((path) => realOf(resolve(path)));
}

/**
 * The folders that a program names as its own, and what its description lets it write. A program that writes in one of
 * them can replace a folder below it by a link, so a path that leaves another own folder through a link is not granted.
 */
function ownPaths({ cwd: given, env, writable = [] }: WalledProgram, cwd: string | undefined): string[] {
  const folders = Object.entries(env).flatMap(([name, value]) => (OWN_FOLDER.test(name) ? [value] : []));
  const declared = writable.filter((path) => path.endsWith('/') || realOrUndefined(path) !== undefined);
  const paths = [...folders, ...declared].filter((path) => isAbsolute(path)).map((path) => resolve(path));
  const around = [...paths, ...(cwd === undefined ? [] : [cwd, resolve(given!)])];
  const leaves = (path: string) =>
    around.some((folder) => folder !== path && isWithin(path, folder) && !isWithin(realOf(path), realOf(folder)));
  return [...(cwd === undefined ? [] : [cwd]), ...paths.filter((path) => !leaves(path)).map(realOf)];
}

/** What a program finds, by what there is to hide and what it names. Reads the disk and changes nothing. */
export function viewOf(places: Places, program: WalledProgram, base: Base = 'everything'): View {
  const { hidden, shared = [], grantable, kept, never = [], tools = [] } = places;
  const cwd = program.cwd === undefined ? undefined : realOf(program.cwd);
  const named = [...namedPaths(program), ...(cwd === undefined ? [] : [cwd])];
  const others = (program.others?.() ?? []).map(realOf).filter((path) => !named.some((own) => isWithin(own, path)));
  const hiding = outermost(
    [...hidden.map(realOrUndefined), ...shared.map(realOrUndefined), ...others.map(realOrUndefined)].filter(
      (path) => path !== undefined,
    ),
  );
  const isHidden = (path: string) => hiding.some((place) => isWithin(path, place));
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
    !isTooBroad(path, home) && !forbidden.some((place) => isWithin(path, place) || place === path);
  const all = [...fromNames, ...fromShared, ...own, ...granted];
  const written = [...new Set(all.flatMap(({ path, writable }) => (writable && mayWrite(path) ? [path] : [])))];
  // A folder that is read in a place which is writable anyway stays writable.
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
      // Whoever works on the program itself has it as the working folder.
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

/** What a program of a closed sandbox finds. */
function closedView({ readable, writable }: Room, hidden: readonly string[]): View {
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

export class Walls {
  readonly mode: SeparationMode;
  readonly places: Places;
  readonly #path: string | undefined;

  /**
   * @param path where programs are looked for, as `PATH` has it
   */
  constructor(mode: SeparationMode, places: Places, path: string | undefined) {
    this.mode = mode;
    // Also where links led before any program could change them.
    this.places = {
      ...places,
      hidden: [...places.hidden, ...places.hidden.flatMap((path) => realOrUndefined(path) ?? [])],
    };
    this.#path = path;
  }

  /** What enforces the sandbox here. Found out once for each user, by trying; takes some ten milliseconds then. */
  async means(user?: ProgramUser): Promise<Means> {
    if (this.mode === 'off') return { kind: 'none', why: 'REVEILLE_SEPARATION is off' };
    if (process.platform === 'linux') return await probeBubblewrap(this.#path, user);
    if (process.platform === 'darwin' && statSync(SEATBELT, { throwIfNoEntry: false }))
      return { kind: 'seatbelt', path: SEATBELT };
    return { kind: 'none', why: `there is no sandbox for ${process.platform} yet` };
  }

  /**
   * The command that runs a program in the sandbox, or the program's own where there is none.
   *
   * @returns `carried`: the started process is bubblewrap's, which passes the end of the program on
   * @throws Error when the sandbox is required and not available, or when the working folder is hidden
   */
  async around(program: WalledProgram): Promise<{ command: readonly string[]; carried: boolean }> {
    const { command, cwd, env, user, room } = program;
    const means = await this.means(user);
    if (means.kind === 'none') {
      if (this.mode !== 'required') return { command, carried: false };
      throw new Error(`REVEILLE_SEPARATION is required, and programs cannot be isolated here: ${means.why}`);
    }
    if (room && means.kind === 'bubblewrap' && !user) {
      const home = room.writable[0]!;
      for (const folder of room.writable) await mkdir(folder, { recursive: true, mode: 0o700 });
      const inside = bubblewrapCommand(means.path, closedView(room, this.places.hidden), command, {
        ...{ network: room.network, home, cwd: home, withoutVariables: ['XDG_CACHE_HOME'] },
        variables: { HOME: home, TMPDIR: '/tmp', [ROOM_VARIABLE]: '1' },
      });
      return { command: inside, carried: true };
    }
    const view = await this.#view(program);
    const isHidden = (path: string) =>
      view.hidden.some((place) => isWithin(path, place.path)) && !view.shown.some((own) => isWithin(path, own.path));
    if (cwd !== undefined && isHidden(realOf(cwd)))
      throw new Error(`the folder ${cwd} is hidden from programs that Reveille starts; let it work in another one`);
    // Made here, for inside the parent is read-only.
    for (const { path, writable } of view.shown)
      if (writable && !user && realOrUndefined(path) === undefined) await mkdir(path, { recursive: true, mode: 0o700 });
    const existing = { ...view, shown: view.shown.filter(({ path }) => realOrUndefined(path) !== undefined) };
    if (means.kind === 'seatbelt') return { command: seatbeltCommand(means.path, existing, command), carried: false };
    const inside = bubblewrapCommand(means.path, existing, command, {
      ...{ user, home: cwd ?? env.HOME, nests: this.#nests(program) },
      variables: { TMPDIR: '/tmp' },
    });
    return { command: inside, carried: true };
  }

  /** Whether it is a program of ours that builds sandboxes of its own. */
  #nests({ command, words = command }: WalledProgram): boolean {
    return words.some((word) => isAbsolute(word) && this.places.nesting?.includes(realOf(word)));
  }

  /** Bubblewrap of another user cannot name what that user cannot reach, and need not hide it. */
  async #view(program: WalledProgram): Promise<View> {
    const { user } = program;
    const base = baseFor(user);
    if (!user) return viewOf(this.places, program, base);
    const hidden = [...this.places.hidden, `/run/user/${user.uid}`];
    const view = viewOf({ ...this.places, hidden }, program, base);
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

/** Says the index of each of its arguments that exists and can be reached. */
const LOOK = 'i=0; for p; do [ -e "$p" ] && echo $i; i=$((i+1)); done; :';

/**
 * Which of some paths another user can reach, by asking the kernel as that user. @throws Error when we may not be that
 * user
 */
export function reachedBy({ uid, gid }: ProgramUser, paths: readonly string[]): Promise<ReadonlySet<number>> {
  return new Promise((resolved, reject) => {
    execFile('/bin/sh', ['-c', LOOK, 'sh', ...paths], { uid, gid, cwd: '/', env: {} }, (error, said) => {
      if (error) reject(new Error(`nothing can be run as ${uid}:${gid}: ${error.message.split('\n')[0]}`));
      else resolved(new Set(said.split('\n').filter(Boolean).map(Number)));
    });
  });
}
