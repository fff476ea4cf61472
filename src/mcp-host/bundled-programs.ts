/**
 * The programs that ship with this package, by the names that manifests use. They are resolved from the package's own
 * folder. A shipped manifest therefore works offline, without npx or PATH, and runs the tested versions.
 */
import { existsSync, readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';

type Command = readonly [string, ...string[]];

/** MCP servers among the dependencies of this package. */
const SERVER_PACKAGES = ['@modelcontextprotocol/server-filesystem'] as const;

const packageSchema = z.object({ bin: z.record(z.string(), z.string()).optional() });

/** The commands of a package. Each runs with the current Node, because the system's Node may be older. */
function commandsOf(packageFile: string): Record<string, Command> {
  const { bin = {} } = packageSchema.parse(JSON.parse(readFileSync(packageFile, 'utf8')));
  const folder = dirname(packageFile);
  return Object.fromEntries(Object.entries(bin).map(([name, path]) => [name, [process.execPath, join(folder, path)]]));
}

/** The nearest `package.json` above a folder: this package's own, both in the sources and in a build. */
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

export function bundledManifest(agent: 'neo' | 'executor' | 'default'): string {
  const own = ownPackageFile(import.meta.dirname);
  return join(own === undefined ? '.' : dirname(own), 'agents', `${agent}.json`);
}

/** The policy that ships with the executor's manifest. */
export function bundledPolicy(): string {
  return bundledManifest('executor').replace(/\.json$/, '.policy.yaml');
}

/** Servers of this package that list their tools from a file, by their start command. */
const TOOLS_FILES: Readonly<Record<string, string>> = { 'reveille mcp': 'src/chronos-mcp/chronos-tools.json' };

/** The file from which a server of this package lists its tools; `undefined` for other servers. */
export function ownToolsFile(command: readonly string[]): string | undefined {
  const file = TOOLS_FILES[command.slice(0, 2).join(' ')];
  const own = file === undefined ? undefined : ownPackageFile(import.meta.dirname);
  return own === undefined ? undefined : join(dirname(own), file!);
}

/** Paths that the programs of this package read: the package, its dependencies, and Node. */
export function programFolders(): string[] {
  const own = ownPackageFile(import.meta.dirname);
  if (own === undefined) return [process.execPath];
  const folder = dirname(own);
  const above = dirname(folder);
  return [basename(above) === 'node_modules' ? above : folder, process.execPath];
}

/** The commands for `reveille` and for each server that is installed with it. */
export function bundledPrograms(): Readonly<Record<string, Command>> {
  const files = [...SERVER_PACKAGES.map(installed), ownPackageFile(import.meta.dirname)];
  return Object.assign({}, ...files.flatMap((file) => (file === undefined ? [] : [commandsOf(file)])));
}
