/** Realistic MCP servers: any number of copies of the files server from Neo's shipped manifest. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundledManifest, bundledPrograms } from '../../src/mcp-host/bundled-programs.ts';
import { lockPathOf, readLock, writeLock } from '../../src/mcp-host/tool-lock.ts';

export type DeclaredServers = {
  /** Neo's own folder. */
  folder: string;
  /** The folder that the servers give access to. */
  workspace: string;
  /** A manifest with all of them. Each declares and pins its tools as the shipped manifest does. */
  manifest: string;
  /** The same servers as command lines, for a start without a manifest. */
  commands: [string, ...string[]][];
  /** Number of tools of all servers together. */
  tools: number;
};

const ALIAS = 'fs';
const PROGRAM = 'mcp-server-filesystem';

export const aliasOf = (index: number) => `${ALIAS}${index + 1}`;

/** The declaration and the pins of the files server in the shipped manifest. */
function shipped() {
  const path = bundledManifest('neo');
  const { servers } = JSON.parse(readFileSync(path, 'utf8')) as { servers: { alias: string; tools: object[] }[] };
  const server = servers.find(({ alias }) => alias === ALIAS);
  const pins = readLock(lockPathOf(path))?.servers[ALIAS];
  if (!server || !pins) throw new Error(`${path} and its lock have no server "${ALIAS}" any more`);
  return { server, pins };
}

/** Writes a manifest and its lock into a new folder. */
export function declareServers(folder: string, count: number): DeclaredServers {
  const { server, pins } = shipped();
  const aliases = Array.from({ length: count }, (_, index) => aliasOf(index));
  const manifest = join(folder, 'agent.json');
  const workspace = join(folder, 'workspace');
  mkdirSync(workspace, { recursive: true });
  writeFileSync(manifest, JSON.stringify({ servers: aliases.map((alias) => ({ ...server, alias })) }));
  writeLock(lockPathOf(manifest), {
    lock_version: 1,
    servers: Object.fromEntries(aliases.map((alias) => [alias, pins])),
  });
  const program = bundledPrograms()[PROGRAM]!;
  const commands = aliases.map((): [string, ...string[]] => [...program, workspace]);
  return { folder, workspace, manifest, commands, tools: count * server.tools.length };
}
