/** Compares Neo's manifest and skill with the files beside them, before anything is started. */
import { resolve } from 'node:path';
import { bundledManifest } from '../../../mcp-host/bundled-programs.ts';
import { hasServersToStart, type LockedManifest, readLockedManifest, rejectAnyDrift } from '../../../mcp-host/drift.ts';
import { spillFolderPath } from '../../../mcp-host/output-cap.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { Settings } from '../../../wire/settings.ts';
import { readToolUri } from '../../../wire/tool-uri.ts';
import type { ManifestChoice, ToolConfig } from './settings.ts';
import { readSkill, type Skill } from './skill.ts';

/** A tool that a URI can name. */
type UriTarget = { alias: string; tool: string; uri: string };

const FORM = 'matrix://tool/mcp/<alias>/<tool>@<version>';

/**
 * Finds the tool that a URI names.
 *
 * @throws ReveilleError `invalid_request` for text that is not a tool URI; `not_found` when there is no such tool,
 *   naming the wrong part
 */
export function resolveToolUri<T extends UriTarget>(text: string, tools: readonly T[]): T {
  const wanted = readToolUri(text);
  if (!wanted)
    throw new ReveilleError('invalid_request', `${JSON.stringify(text)} is not a tool URI; expected ${FORM}`);
  const ofServer = tools.filter(({ alias }) => alias === wanted.alias);
  if (ofServer.length === 0) {
    throw new ReveilleError('not_found', `${text}: no server ${JSON.stringify(wanted.alias)} has tools now`);
  }
  const found = ofServer.find(({ tool }) => tool === wanted.tool);
  if (!found) {
    const has = ofServer.map(({ tool }) => tool).join(', ');
    throw new ReveilleError(
      'not_found',
      `${text}: ${wanted.alias} has no tool ${JSON.stringify(wanted.tool)}; it has ${has}`,
    );
  }
  if (readToolUri(found.uri)?.version !== wanted.version) {
    throw new ReveilleError('not_found', `${text}: wrong version; the tool is ${found.uri}`);
  }
  return found;
}

export function manifestPathOf(manifest: ManifestChoice): string {
  if (typeof manifest === 'object') return manifest.path;
  return bundledManifest(manifest === 'bundled' ? 'neo' : manifest);
}

/** The values for references in the manifest besides Neo's own variables. */
export function foldersOf(config: Pick<ToolConfig, 'workspace'>, dataDir: string) {
  return { NEO_WORKSPACE: resolve(config.workspace), NEO_TOOL_OUTPUT: spillFolderPath(dataDir) };
}

/** A Neo without tools has none that a skill could name. */
const NOTHING: Pick<LockedManifest, 'manifest' | 'lock'> = {
  manifest: { path: 'NEO_MANIFEST=none', sha256: '', agent: undefined, servers: [] },
  lock: undefined,
};

/**
 * @param variables the values for references in the manifest
 * @returns whether servers have to be started before all can be compared
 * @throws ReveilleError `conflict` naming every difference between manifest, lock, registry and skill;
 *   `invalid_request` for an invalid one of them
 */
export function checkFiles(config: ToolConfig, variables: Settings, dataDir: string): boolean {
  const { manifest, skill: path } = config;
  const skill = path === undefined ? undefined : readSkill(path);
  if (manifest === undefined) {
    rejectAnyDrift(NOTHING, skill);
    return false;
  }
  const files = readLockedManifest(manifestPathOf(manifest), { ...variables, ...foldersOf(config, dataDir) });
  rejectAnyDrift(files, skill);
  return hasServersToStart(files);
}

/**
 * Compares a skill with the available tools. A server that is not running cannot be compared.
 *
 * @throws ReveilleError `conflict` naming each tool of the skill that its server does not have
 */
export function checkSkill({ path, entries }: Skill, tools: readonly UriTarget[]): void {
  const runningServers = new Set(tools.map(({ alias }) => `matrix://tool/mcp/${encodeURIComponent(alias)}/`));
  const found = entries.flatMap(({ line, uri }) => {
    if (![...runningServers].some((server) => uri.startsWith(server))) return [];
    try {
      resolveToolUri(uri, tools);
      return [];
    } catch (thrown) {
      return [`${path}:${line}: ${(thrown as Error).message}`];
    }
  });
  if (found.length > 0) throw new ReveilleError('conflict', found.join('\n'), { retryable: false });
}
