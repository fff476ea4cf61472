/**
 * Drift: manifest, lock, registry and skill disagree. This module compares files, without running anything: declared
 * tools, pinned definitions, the tools that servers of this package list, and the tools that a skill names. A server's
 * live tools are compared when it starts (`PinnedTools`).
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runSelftest } from '../chronos-mcp/selftest.ts';
import { ReveilleError } from '../wire/errors.ts';
import { readToolUri } from '../wire/tool-uri.ts';
import { bundledManifest, ownToolsFile } from './bundled-programs.ts';
import { loadManifest, type Manifest, type ServerSpec } from './manifest.ts';
import type { Variables } from './references.ts';
import { type ToolDefinition, toolDefinitionSchema } from './tool-definition.ts';
import {
  type KnownTools,
  lockPathOf,
  PinnedTools,
  readKnownTools,
  readLock,
  type ToolLock,
  type ToolPins,
} from './tool-lock.ts';

/** A manifest and the files beside it. */
export type LockedManifest = { manifest: Manifest; lock: ToolLock | undefined; known: KnownTools | undefined };

/** The tools that a skill names, each with its line. */
export type SkillRequirements = { readonly path: string; readonly entries: readonly { line: number; uri: string }[] };

/**
 * @param pinned whether the lock beside the manifest is used
 * @throws ReveilleError `invalid_request` for an invalid manifest or lock
 */
export function readLockedManifest(manifestPath: string, variables: Variables, pinned = true): LockedManifest {
  const manifest = loadManifest(manifestPath, variables);
  const lock = pinned ? readLock(lockPathOf(manifestPath)) : undefined;
  return { manifest, lock, known: lock && readKnownTools(manifestPath) };
}

/** The pins of one server; `undefined` where the lock does not name it. */
export function pinsOf(lock: ToolLock | undefined, alias: string): ToolPins | undefined {
  return lock && Object.hasOwn(lock.servers, alias) ? lock.servers[alias] : undefined;
}

/** The tools that a server offers before it is started; `undefined` where it must be started first. */
export function offeredBeforeStart(
  spec: ServerSpec,
  { lock, known }: Pick<LockedManifest, 'lock' | 'known'>,
): readonly ToolDefinition[] | undefined {
  const pins = pinsOf(lock, spec.alias);
  if (!spec.isLazy || spec.version === undefined || !known || !pins || !Object.hasOwn(known, spec.alias))
    return undefined;
  const definitions = known[spec.alias]!;
  // Definitions that differ from the pinned ones are not offered; the server lists its tools when it starts.
  return new PinnedTools(spec, pins).differences(definitions).length === 0 ? definitions : undefined;
}

/** Whether servers are started at once, so that they can be compared before the daemon reports ready. */
export function hasServersToStart(files: LockedManifest): boolean {
  return files.manifest.servers.some(
    (spec) =>
      spec.unmetNeed === undefined && spec.missing.length === 0 && offeredBeforeStart(spec, files) === undefined,
  );
}

/**
 * Self-test of the alarm proxy: differences in the other files that ship with it. With a difference the proxy refuses
 * to start, and an agent would be ready without its alarms.
 */
function proxyDrift({ path, servers }: Manifest): string[] {
  const file = servers.map(({ link }) => (link.kind === 'stdio' ? ownToolsFile(link.command) : undefined));
  const toolsFile = file.find((one) => one !== undefined);
  if (toolsFile === undefined) return [];
  const agentsDir = dirname(bundledManifest('neo'));
  const { differences } = runSelftest({ toolsFile, agentsDir, skillsDir: join(dirname(agentsDir), 'skills') });
  return differences.filter((difference) => !difference.startsWith(`${path}: `));
}

const quoted = (name: string) => JSON.stringify(name);

/** The tools that a server of this package lists, read from its own file; `undefined` for other servers. */
function ownTools({ link }: ServerSpec): ToolDefinition[] | undefined {
  const file = link.kind === 'stdio' ? ownToolsFile(link.command) : undefined;
  if (file === undefined) return undefined;
  const { tools } = JSON.parse(readFileSync(file, 'utf8')) as { tools: unknown };
  return toolDefinitionSchema.array().parse(tools) as ToolDefinition[];
}

function serverDrift(spec: ServerSpec, pins: ToolPins | undefined): string[] {
  const own = ownTools(spec);
  if (own) return new PinnedTools(spec, pins).differences(own);
  const { tools } = spec;
  if (!tools || !pins) return [];
  const remedy = 'correct the manifest, or run `reveille tools pin` after you have reviewed the definition';
  return [
    ...[...tools.keys()]
      .filter((name) => !Object.hasOwn(pins, name))
      .map((name) => `${quoted(name)} is declared in the manifest and not pinned: ${remedy}`),
    ...Object.keys(pins)
      .filter((name) => !tools.has(name))
      .map((name) => `${quoted(name)} is pinned and not declared in the manifest: ${remedy}`),
  ];
}

function requirementDrift(uri: string, { path, servers }: Manifest): string | undefined {
  const wanted = readToolUri(uri);
  const server = servers.find(({ alias }) => alias === wanted?.alias);
  if (!wanted) return 'is not a tool URI';
  const { alias, tool, version } = wanted;
  if (!server) return `names the server ${quoted(alias)}, which ${path} does not declare`;
  if (server.tools && !server.tools.has(tool))
    return `names the tool ${quoted(tool)}, which ${path} does not declare for the server ${quoted(alias)}`;
  if (server.version !== undefined && server.version !== version)
    return `names version ${version}, but ${path} declares ${server.version} for ${quoted(alias)}`;
  return undefined;
}

/** Every difference between the files, one sentence each that begins with the file. */
export function findDrift(
  { manifest, lock }: Pick<LockedManifest, 'manifest' | 'lock'>,
  skill?: SkillRequirements,
): string[] {
  const ofServers = manifest.servers.flatMap((spec) =>
    serverDrift(spec, pinsOf(lock, spec.alias)).map((one) => `${manifest.path}: server "${spec.alias}": ${one}`),
  );
  const ofSkill = (skill?.entries ?? []).flatMap(({ line, uri }) => {
    const difference = requirementDrift(uri, manifest);
    return difference === undefined ? [] : [`${skill!.path}:${line}: ${uri} ${difference}`];
  });
  return [...ofServers, ...ofSkill];
}

/**
 * Check of a starting daemon. It must not report ready while its own files or those of its proxy disagree.
 *
 * @throws ReveilleError `conflict` naming every difference
 */
export function rejectAnyDrift(files: Pick<LockedManifest, 'manifest' | 'lock'>, skill?: SkillRequirements): void {
  reject([...findDrift(files, skill), ...proxyDrift(files.manifest)]);
}

/** @throws ReveilleError `conflict` naming every difference */
export function rejectDrift(files: Pick<LockedManifest, 'manifest' | 'lock'>): void {
  reject(findDrift(files));
}

function reject(found: readonly string[]): void {
  if (found.length > 0) throw new ReveilleError('conflict', found.join('\n'), { retryable: false });
}
