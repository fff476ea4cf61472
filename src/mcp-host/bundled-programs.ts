/**
 * The programs that come with this package, by the names that manifests call them. They are found from where the
 * package lies, so a manifest that ships works offline, without npx and without anything on the PATH, and runs the very
 * version that was tested.
 */
import { existsSync, readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';

type Command = readonly [string, ...string[]];

/** MCP servers among our dependencies. */
const SERVER_PACKAGES = ['@modelcontextprotocol/server-filesystem'] as const;

const packageSchema = z.object({ bin: z.record(z.string(), z.string()).optional() });

/** The commands that a package brings, each run by the Node that runs us: a system's own may be older. */
function commandsOf(packageFile: string): Record<string, Command> {
  const { bin = {} } = packageSchema.parse(JSON.parse(readFileSync(packageFile, 'utf8')));
  const folder = dirname(packageFile);
  return Object.fromEntries(Object.entries(bin).map(([name, path]) => [name, [process.execPath, join(folder, path)]]));
}

/** The nearest `package.json` above a folder: our own, from the sources as well as from a build. */
function ownPackageFile(from: string): string | undefined {
  const file = join(from, 'package.json');
  if (existsSync(file)) return file;
  const above = dirname(from);
  return above === from ? undefined : ownPackageFile(above);
}

/** `undefined` for a package that is not installed. */
function installed(name: string): string | undefined {
  try {
    return findPackageJSON(name, import.meta.url);
  } catch {
    return undefined;
  }
}

/** A manifest that comes with this package. */
export function bundledManifest(agent: 'neo' | 'executor' | 'default'): string {
  const own = ownPackageFile(import.meta.dirname);
  return join(own === undefined ? '.' : dirname(own), 'agents', `${agent}.json`);
}

/** The policy that comes with the executor's manifest. */
export function bundledPolicy(): string {
  return bundledManifest('executor').replace(/\.json$/, '.policy.yaml');
}

/** Servers of this package that list their tools from a file, by the words that start them. */
const TOOLS_FILES: Readonly<Record<string, string>> = { 'reveille mcp': 'src/chronos-mcp/chronos-tools.json' };

/** Where a server of this package reads the tools that it lists; `undefined` for all others. */
export function ownToolsFile(command: readonly string[]): string | undefined {
  const file = TOOLS_FILES[command.slice(0, 2).join(' ')];
  const own = file === undefined ? undefined : ownPackageFile(import.meta.dirname);
  return own === undefined ? undefined : join(dirname(own), file!);
}

/** What the programs of this package read to run: the package, what it is installed with, and Node. */
export function programFolders(): string[] {
  const own = ownPackageFile(import.meta.dirname);
  if (own === undefined) return [process.execPath];
  const folder = dirname(own);
  const above = dirname(folder);
  return [basename(above) === 'node_modules' ? above : folder, process.execPath];
}

/** What to run for `reveille` and for each server that is installed with it. */
export function bundledPrograms(): Readonly<Record<string, Command>> {
  const files = [...SERVER_PACKAGES.map(installed), ownPackageFile(import.meta.dirname)];
  return Object.assign({}, ...files.flatMap((file) => (file === undefined ? [] : [commandsOf(file)])));
}
