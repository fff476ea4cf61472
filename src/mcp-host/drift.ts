/**
 * Drift: manifest, registry and skill that disagree. What can be known without running anything is compared here, from
 * the files: the tools that a manifest declares, the definitions that its lock pins, those that the servers of this very
 * package list, and what a skill asks for. What a server says of itself is compared when it starts (`agreement.ts`).
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runSelftest } from '../chronos-mcp/selftest.ts';
import { ReveilleError } from '../wire/errors.ts';
import { readToolUri } from '../wire/tool-uri.ts';
import { Agreement } from './agreement.ts';
import { bundledManifest, ownToolsFile } from './bundled-programs.ts';
import { loadManifest, type Manifest, type ServerSpec } from './manifest.ts';
import type { Variables } from './references.ts';
import { type ToolDefinition, toolDefinitionSchema } from './tool-definition.ts';
import { type KnownTools, lockPathOf, readKnownTools, readLock, type ToolLock, type ToolPins } from './tool-lock.ts';

/** A manifest and what stands beside it. */
export type AgreedFiles = { manifest: Manifest; lock: ToolLock | undefined; known: KnownTools | undefined };

/** What a skill asks for, each with the line that it stands on. */
export type SkillNeeds = { readonly path: string; readonly entries: readonly { line: number; uri: string }[] };

/**
 * @param pinned whether the lock beside the manifest counts
 * @throws ReveilleError `invalid_request` for a manifest or a lock that is wrong
 */
export function readAgreedFiles(manifestPath: string, variables: Variables, pinned = true): AgreedFiles {
  const manifest = loadManifest(manifestPath, variables);
  const lock = pinned ? readLock(lockPathOf(manifestPath)) : undefined;
  return { manifest, lock, known: lock && readKnownTools(manifestPath) };
}

/** The pins of one server; `undefined` where the lock does not name it. */
export function pinsOf(lock: ToolLock | undefined, alias: string): ToolPins | undefined {
  return lock && Object.hasOwn(lock.servers, alias) ? lock.servers[alias] : undefined;
}

/** What a server offers before it is started; `undefined` for one that has to be started to know. */
export function offeredBeforeStart(
  spec: ServerSpec,
  { lock, known }: Pick<AgreedFiles, 'lock' | 'known'>,
): readonly ToolDefinition[] | undefined {
  const pins = pinsOf(lock, spec.alias);
  if (!spec.isLazy || spec.version === undefined || !known || !pins || !Object.hasOwn(known, spec.alias))
    return undefined;
  const definitions = known[spec.alias]!;
  // What is not what was agreed on is not offered: the server itself says what it has.
  return new Agreement(spec, pins).differences(definitions).length === 0 ? definitions : undefined;
}

/** Whether servers are started at once, so that they can be compared before anybody is told that all is ready. */
export function hasServersToStart(files: AgreedFiles): boolean {
  return files.manifest.servers.some(
    (spec) => spec.lack === undefined && spec.missing.length === 0 && offeredBeforeStart(spec, files) === undefined,
  );
}

/**
 * What the self-test of our own proxy finds in the other files that ship. With it the proxy refuses to start, so an
 * agent that has the proxy would be ready without its alarms.
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

/** What a server of this package lists, read from where it reads it; `undefined` for all others. */
function ownTools({ link }: ServerSpec): ToolDefinition[] | undefined {
  const file = link.kind === 'stdio' ? ownToolsFile(link.command) : undefined;
  if (file === undefined) return undefined;
  const { tools } = JSON.parse(readFileSync(file, 'utf8')) as { tools: unknown };
  return toolDefinitionSchema.array().parse(tools) as ToolDefinition[];
}

function serverDrift(spec: ServerSpec, pins: ToolPins | undefined): string[] {
  const own = ownTools(spec);
  if (own) return new Agreement(spec, pins).differences(own);
  const { tools } = spec;
  if (!tools || !pins) return [];
  const remedy = 'whatever the server has, one of them is wrong; run `reveille tools pin` after you have looked at it';
  return [
    ...[...tools.keys()]
      .filter((name) => !Object.hasOwn(pins, name))
      .map((name) => `${quoted(name)} is declared in the manifest and not pinned: ${remedy}`),
    ...Object.keys(pins)
      .filter((name) => !tools.has(name))
      .map((name) => `${quoted(name)} is pinned and not declared in the manifest: ${remedy}`),
  ];
}

function needDrift(uri: string, { path, servers }: Manifest): string | undefined {
  const wanted = readToolUri(uri);
  const server = servers.find(({ alias }) => alias === wanted?.alias);
  if (!wanted) return 'is no tool URI';
  const { alias, tool, version } = wanted;
  if (!server) return `names the server ${quoted(alias)}, which ${path} does not declare`;
  if (server.tools && !server.tools.has(tool))
    return `names the tool ${quoted(tool)}, which ${path} does not declare for the server ${quoted(alias)}`;
  if (server.version !== undefined && server.version !== version)
    return `names version ${version}, and ${path} says that ${quoted(alias)} has ${server.version}`;
  return undefined;
}

/** Everything that the files disagree on, a sentence each that begins with the file. */
export function driftOf({ manifest, lock }: Pick<AgreedFiles, 'manifest' | 'lock'>, skill?: SkillNeeds): string[] {
  const ofServers = manifest.servers.flatMap((spec) =>
    serverDrift(spec, pinsOf(lock, spec.alias)).map((one) => `${manifest.path}: server "${spec.alias}": ${one}`),
  );
  const ofSkill = (skill?.entries ?? []).flatMap(({ line, uri }) => {
    const wrong = needDrift(uri, manifest);
    return wrong === undefined ? [] : [`${skill!.path}:${line}: ${uri} ${wrong}`];
  });
  return [...ofServers, ...ofSkill];
}

/**
 * For a daemon that starts: nobody is told that it is ready while its own files, or those that its proxy compares,
 * disagree.
 *
 * @throws ReveilleError `conflict` naming everything that they disagree on
 */
export function refuseAnyDrift(files: Pick<AgreedFiles, 'manifest' | 'lock'>, skill?: SkillNeeds): void {
  refuse([...driftOf(files, skill), ...proxyDrift(files.manifest)]);
}

/** @throws ReveilleError `conflict` naming everything that the files disagree on */
export function refuseDrift(files: Pick<AgreedFiles, 'manifest' | 'lock'>): void {
  refuse(driftOf(files));
}

function refuse(found: readonly string[]): void {
  if (found.length > 0) throw new ReveilleError('conflict', found.join('\n'), { retryable: false });
}
