/** Whether the programs in clients' configurations still exist and have this version. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';
import { VERSION } from '../../wire/version.ts';
import { CLIENTS, type ClientFile, type Surroundings } from '../connect/clients.ts';
import { readConfigFile, shortPath } from '../connect/config-file.ts';
import { isOurHook, isOurServer, SERVERS, type ServerName } from '../connect/entries.ts';
import { readJson } from '../connect/json-edit.ts';
import { readToml } from '../connect/toml-edit.ts';
import type { CliContext } from '../context.ts';
import type { Check } from './check.ts';

/** The words of a hook's command, split as by a shell. */
const shellWords = (command: string) =>
  [...command.matchAll(/'((?:[^']|'\\'')*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single?.replaceAll("'\\''", "'") ?? double ?? bare!,
  );

const fieldOf = (value: unknown, name: string): unknown => (value as Record<string, unknown> | undefined)?.[name];

/** The words with which a client's file starts our programs, each with its name there. */
function startsIn(file: ClientFile, value: unknown): { what: string; words: readonly unknown[] }[] {
  return file.parts.flatMap((part): { what: string; words: readonly unknown[] }[] => {
    if (part.kind === 'servers') {
      const servers = fieldOf(value, part.field);
      const names = (Object.keys(SERVERS) as ServerName[]).filter((name) => isOurServer(name, fieldOf(servers, name)));
      return names.map((name) => {
        const { command, args = [] } = fieldOf(servers, name) as { command: unknown; args?: unknown[] };
        return { what: name, words: [command, ...args] };
      });
    }
    const groups = fieldOf(fieldOf(value, 'hooks'), part.event);
    const hooks = (Array.isArray(groups) ? groups : []).flatMap((group) => fieldOf(group, 'hooks') ?? []);
    const commands = hooks.map((hook) => fieldOf(hook, 'command')).filter(isOurHook);
    return commands.map((command) => ({ what: 'the hook', words: shellWords(command) }));
  });
}

/** The version of the package of a program; `undefined` when unknown. */
function versionAround(program: string): string | undefined {
  try {
    return JSON.parse(readFileSync(join(dirname(program), '..', 'package.json'), 'utf8')).version;
  } catch {
    return undefined;
  }
}

/** The problem of an entry; `undefined` without one. */
function faultOf(words: readonly unknown[]): string | undefined {
  const paths = words.filter((word): word is string => typeof word === 'string' && isAbsolute(word));
  const gone = paths.find((path) => !existsSync(path));
  if (gone !== undefined) return `${gone}, which does not exist`;
  const program = paths.find((path) => /[/\\]reveille\.mjs$/.test(path));
  const version = program === undefined ? undefined : versionAround(program);
  return version === undefined || version === VERSION ? undefined : `version ${version}; this is ${VERSION}`;
}

/** Checks the files of each client, for the user and the current folder: one line per problem. */
export function checkClients({ environment, process: started }: Pick<CliContext, 'environment' | 'process'>): Check[] {
  const around: Surroundings = { environment, platform: process.platform, cwd: started.cwd() };
  const checks: Check[] = [];
  const well: string[] = [];
  for (const [name, { title, user, project }] of Object.entries(CLIENTS)) {
    const own = user(around);
    // In the home folder both are the same file.
    const here = (project?.(around) ?? []).filter(({ path }) => !own.some((file) => file.path === path));
    const places = [
      { files: own, flag: '' },
      { files: here, flag: ' --project' },
    ];
    for (const { files, flag } of places) {
      const remedy = `write it again: reveille connect ${name}${flag} (or remove it: add --undo)`;
      const found = files.map((file) => lookAt(file, environment.HOME ?? ''));
      const fault = found.find((one) => one.fault !== undefined)?.fault;
      if (fault !== undefined)
        checks.push({ name: 'clients', status: 'warning', detail: `${title}: ${fault}`, remedy });
      else if (found.some(({ isConnected }) => isConnected)) well.push(`${title}${flag && ' (this folder)'}`);
    }
  }
  if (well.length > 0) checks.unshift({ name: 'clients', status: 'ok', detail: `connected: ${well.join(', ')}` });
  return checks;
}

function lookAt(file: ClientFile, home: string): { isConnected: boolean; fault?: string } {
  if (!existsSync(file.path)) return { isConnected: false };
  try {
    const { text } = readConfigFile(file.path);
    const starts = startsIn(file, file.format === 'toml' ? readToml(text) : readJson(text));
    for (const { what, words } of starts) {
      const fault = faultOf(words);
      if (fault !== undefined)
        return { isConnected: true, fault: `${shortPath(file.path, home)} has ${what} start ${fault}` };
    }
    return { isConnected: starts.length > 0 };
  } catch (thrown) {
    // A foreign file, which may have no entry of ours: "reveille connect" reports its problem.
    if (thrown instanceof ReveilleError) return { isConnected: false };
    throw thrown;
  }
}
