/**
 * Walls around programs that we start: what is not theirs is not there for them. One place decides what a program sees;
 * how that is held is the system's business: bubblewrap on Linux, `sandbox-exec` on macOS, nothing elsewhere
 * (docs/decisions/0019-separation.md).
 *
 * The network stays, and so do the files of the person that have nothing to do with us.
 */
import { execFile } from 'node:child_process';
import { realpathSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { bubblewrapCommand, probeBubblewrap } from './bubblewrap.ts';
import { type Room, roomCommand } from './room.ts';
import { type Grant, isWithin, leadingTo, type Means, type ProgramUser, type View } from './view.ts';

/** A string of the profile's language. */
const quoted = (text: string) => `"${text.replace(/[\\"]/g, '\\$&')}"`;

/**
 * Services that hold the person's keys. Without them, a program that keeps its login in the key store has to be logged
 * in otherwise.
 */
const KEY_STORES = ['com.apple.SecurityServer', 'com.apple.securityd', 'com.apple.securityd.xpc', 'com.apple.secd'];

/** The profile of a view. Pure. */
export function seatbeltProfile({ hidden, shown, kept }: View): string {
  const place = (path: string, isFolder: boolean) => `(${isFolder ? 'subpath' : 'literal'} ${quoted(path)})`;
  return [
    '(version 1)',
    '(allow default)',
    '(deny process-info* (target others))',
    '(deny signal (target others))',
    '(allow signal (target same-sandbox))',
    '(deny mach-priv-task-port)',
    ...KEY_STORES.map((name) => `(deny mach-lookup (global-name ${quoted(name)}))`),
    // To move a folder is to unlink it where it was.
    ...leadingTo({ hidden, kept }).map((path) => `(deny file-write-unlink (literal ${quoted(path)}))`),
    ...kept.map((path) => `(deny file-write* (subpath ${quoted(path)}))`),
    ...hidden.map(({ path, isFolder }) => `(deny file-read* file-write* ${place(path, isFolder)})`),
    // Whoever may open a file must be able to walk there.
    ...hidden.map(({ path }) => `(allow file-read-metadata (literal ${quoted(path)}))`),
    ...shown.map(
      ({ path, writable }) => `(allow file-read*${writable ? ' file-write*' : ''} (subpath ${quoted(path)}))`,
    ),
  ].join('\n');
}

/** The command that runs a program under the profile of a view. */
function seatbeltCommand(seatbelt: string, view: View, command: readonly string[]): string[] {
  return [seatbelt, '-p', seatbeltProfile(view), ...command];
}

/** `auto`: walls where the system has them. `required`: no program is started without. `off`: none. */
export const SEPARATION_MODES = ['auto', 'required', 'off'] as const;
export type SeparationMode = (typeof SEPARATION_MODES)[number];

export type Places = {
  /** Folders, files and sockets that no program sees. What does not exist is passed over. */
  readonly hidden: readonly string[];
  /** Folders of which a program sees only what it names below them, and may write there. */
  readonly shared?: readonly string[];
  /** What a program whose command, environment or folder names it gets back. */
  readonly grantable: readonly Grant[];
  /** What every program may read and none may write. */
  readonly kept: readonly string[];
};

export const NO_PLACES: Places = { hidden: [], grantable: [], kept: [] };

export type WalledProgram = {
  readonly command: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /**
   * Hidden from this program besides: the folders of others, asked for when they matter. Those that it works in itself
   * are passed over.
   */
  readonly others?: () => readonly string[];
  /** Given to this program, whether it names it or not. */
  readonly granted?: readonly Grant[];
  /** It sees no more than this room, where the system has walls to build one. */
  readonly room?: Room | undefined;
  /** Whom it runs as; as us without it. */
  readonly user?: ProgramUser;
};

/** Tells a program that it runs behind walls: it need not insist on walls of its own. */
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

/** Every absolute path that a program's command or environment says. */
function namedPaths({ command, env }: WalledProgram): string[] {
  const words = [...command, ...Object.values(env)];
  // "--folder=/srv/x" names /srv/x, and a list in a variable each of its members.
  const parts = words
    .flatMap((word) => word.split(delimiter))
    .flatMap((part) => [part, part.slice(part.indexOf('=') + 1)]);
  return [...new Set(parts.filter((part) => isAbsolute(part)))].map((path) => realOf(resolve(path)));
}

/** What a program finds, by what there is to hide and what it names. Looks at the disk, and changes nothing. */
export function viewOf({ hidden, shared = [], grantable, kept }: Places, program: WalledProgram): View {
  const cwd = program.cwd === undefined ? undefined : realOf(program.cwd);
  const named = [...namedPaths(program), ...(cwd === undefined ? [] : [cwd])];
  const others = (program.others?.() ?? []).map(realOf).filter((path) => !named.some((own) => isWithin(own, path)));
  const hiding = outermost(
    [...hidden.map(realOrUndefined), ...shared.map(realOrUndefined), ...others.map(realOrUndefined)].filter(
      (path) => path !== undefined,
    ),
  );
  const fromNames = grantable.flatMap(({ path, writable }) => {
    const grant = realOf(path);
    return named.filter((name) => isWithin(name, grant)).map((name) => ({ path: name, writable }));
  });
  const fromShared = shared
    .map(realOf)
    .flatMap((root) =>
      named.filter((name) => name !== root && isWithin(name, root)).map((name) => ({ path: name, writable: true })),
    );
  const granted = [
    ...fromNames,
    ...fromShared,
    ...(program.granted ?? []).map(({ path, writable }) => ({ path: realOf(path), writable })),
  ];
  const below = granted.filter(({ path }) => hiding.some((place) => isWithin(path, place)));
  const paths = outermost(below.map(({ path }) => path));
  return {
    hidden: hiding.map((path) => ({ path, isFolder: isFolder(path) })),
    shown: paths.map((path) => ({ path, writable: below.some((one) => one.path === path && one.writable) })),
    // Whoever works on the program itself has it as the folder to work in.
    kept: outermost(kept.flatMap((path) => realOrUndefined(path) ?? [])).filter(
      (path) => cwd === undefined || !isWithin(cwd, path),
    ),
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

  /** What holds them here. Found out once for each user, by trying; takes some ten milliseconds the first time. */
  async means(user?: ProgramUser): Promise<Means> {
    if (this.mode === 'off') return { kind: 'none', why: 'REVEILLE_SEPARATION is off' };
    if (process.platform === 'linux') return await probeBubblewrap(this.#path, user);
    if (process.platform === 'darwin' && statSync(SEATBELT, { throwIfNoEntry: false }))
      return { kind: 'seatbelt', path: SEATBELT };
    return { kind: 'none', why: `there are no walls for ${process.platform} yet` };
  }

  /**
   * The command that runs a program behind walls, or the program's own where there are none.
   *
   * @returns `carried`: the started process is bubblewrap's, which passes the end of the program on
   * @throws Error when walls are required and cannot be had, or when the program is to work in a hidden folder
   */
  async around(program: WalledProgram): Promise<{ command: readonly string[]; carried: boolean }> {
    const { cwd, user, room } = program;
    const means = await this.means(user);
    if (room && means.kind === 'bubblewrap' && !user) {
      for (const folder of room.writable) await mkdir(folder, { recursive: true, mode: 0o700 });
      return { command: roomCommand(means.path, room, this.places.hidden, program.command), carried: true };
    }
    if (means.kind === 'none') {
      if (this.mode !== 'required') return { command: program.command, carried: false };
      throw new Error(`REVEILLE_SEPARATION is required, and programs cannot be separated here: ${means.why}`);
    }
    const view = await this.#view(program);
    const isHidden = (path: string) =>
      view.hidden.some((place) => isWithin(path, place.path)) && !view.shown.some((own) => isWithin(path, own.path));
    if (cwd !== undefined && isHidden(realOf(cwd)))
      throw new Error(`the folder ${cwd} is hidden from programs that Reveille starts; let it work in another one`);
    // Made here, for below a hidden place the program itself could not.
    for (const { path, writable } of view.shown)
      if (writable && !user && realOrUndefined(path) === undefined) await mkdir(path, { recursive: true, mode: 0o700 });
    const existing = { ...view, shown: view.shown.filter(({ path }) => realOrUndefined(path) !== undefined) };
    if (means.kind === 'seatbelt')
      return { command: seatbeltCommand(means.path, existing, program.command), carried: false };
    return { command: bubblewrapCommand(means.path, existing, program.command, user), carried: true };
  }

  /** What another user cannot reach anyway is hidden from it already; its bubblewrap could not even name it. */
  async #view(program: WalledProgram): Promise<View> {
    const { user } = program;
    if (!user) return viewOf(this.places, program);
    const hidden = [...this.places.hidden, `/run/user/${user.uid}`];
    const view = viewOf({ ...this.places, hidden }, program);
    const reached = await reachedBy(user, [...view.hidden.map(({ path }) => path), ...view.kept]);
    const left = view.hidden.filter((_, index) => reached.has(index));
    return {
      hidden: left,
      shown: view.shown.filter(({ path }) => left.some((place) => isWithin(path, place.path))),
      kept: view.kept.filter((_, index) => reached.has(view.hidden.length + index)),
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
