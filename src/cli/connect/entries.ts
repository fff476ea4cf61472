/**
 * Our entries in the configuration of a client: two MCP servers, and a hook that prints the time. They contain no secret:
 * the programs find the home with keys and tokens by themselves.
 */
import { realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { shellWord } from '../../kit/identity/private-file.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';

/** How a client starts an MCP server. */
export type ServerEntry = {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

/** The servers by their names in clients, and the `reveille` command of each. */
export const SERVERS = { chronos: 'mcp', chronometric: 'chronometric' } as const;
export type ServerName = keyof typeof SERVERS;

export type Entries = {
  readonly servers: Readonly<Partial<Record<ServerName, ServerEntry>>>;
  /** The words of the hook, without its format; `undefined` omits it. */
  readonly hook: readonly string[] | undefined;
};

/** Parts that can be omitted. */
export const PARTS = ['alarms', 'time', 'hook'] as const;
export type Part = (typeof PARTS)[number];

/** Variables with the location of the program's data, when it is not the default. None is a secret. */
const PLACES = ['REVEILLE_HOME', 'REVEILLE_PROFILE', 'CHRONOMETRIC_DATA_DIR'] as const;
export const PLACE_NAMES: readonly string[] = PLACES;

/** Folders of `npx`, `pnpm dlx`, `yarn dlx` and `bunx`, which are temporary. */
const CACHES = /[/\\](?:_npx|dlx(?:-[^/\\]*)?|xfs-[^/\\]+|bunx-[^/\\]+)[/\\]/;

export const isCached = (path: string): boolean => CACHES.test(path);

/**
 * @returns the path
 * @throws ReveilleError `conflict` for a temporary one
 */
function lasting(path: string): string {
  if (!isCached(path)) return path;
  throw new ReveilleError(
    'conflict',
    `${path} is a cache that is emptied some day; a client needs a permanent program. ` +
      'Install it (npm install --global reveille, or reveille service install), and connect again',
  );
}

/** Node by the name that outlives its updates, such as `/opt/homebrew/bin/node`, if the PATH has one. */
function nodeProgram(execPath: string, path: string): string {
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const isIt = (candidate: string) => {
    try {
      return realpathSync(candidate) === realpathSync(execPath);
    } catch {
      return false;
    }
  };
  const found = path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !folder.includes('node_modules'))
    .map((folder) => join(folder, name))
    .find(isIt);
  return found ?? execPath;
}

export type Installation = {
  /** The entry of the running program. */
  readonly program: string;
  /** The Node that runs it. */
  readonly execPath: string;
  readonly environment: Settings;
};

/**
 * @param without parts to omit
 * @throws ReveilleError `conflict` when the program runs from a cache
 */
export function entriesOf({ program, execPath, environment }: Installation, without: readonly Part[]): Entries {
  const words = [lasting(nodeProgram(execPath, environment.PATH ?? '')), lasting(program)] as const;
  const places = PLACES.flatMap((name) => {
    const value = environment[name];
    return value ? [[name, resolve(value)] as const] : [];
  });
  const env = places.length === 0 ? {} : { env: Object.fromEntries(places) };
  const server = (name: ServerName) => ({ command: words[0], args: [words[1], SERVERS[name]], ...env });
  // cmd has no syntax for a variable of one command.
  const canHook = places.length === 0 || process.platform !== 'win32';
  const hook = [...places.map(([name, value]) => `${name}=${shellWord(value)}`), ...words.map(shellWordOf)];
  return {
    servers: {
      ...(without.includes('alarms') ? {} : { chronos: server('chronos') }),
      ...(without.includes('time') ? {} : { chronometric: server('chronometric') }),
    },
    hook: without.includes('hook') || !canHook ? undefined : [...hook, 'time', 'hook'],
  };
}

/** A word for the shell of the client's hooks. */
function shellWordOf(word: string): string {
  return process.platform === 'win32' ? `"${word}"` : shellWord(word);
}

const isProgram = (word: unknown) =>
  typeof word === 'string' && /(?:^|[/\\])reveille(?:\.mjs|\.cmd|@[^/\\]*)?$/.test(word);

/** Whether an entry of a client starts our server, from any location. */
export function isOurServer(name: ServerName, entry: unknown): boolean {
  const { command, args } = (entry ?? {}) as { command?: unknown; args?: unknown };
  const words = [command, ...(Array.isArray(args) ? args : [])];
  return words.some(isProgram) && words.includes(SERVERS[name]);
}

export function isOurHook(command: unknown): command is string {
  return typeof command === 'string' && /reveille/.test(command) && /\stime hook(?:\s|$)/.test(command);
}
