/** Compares Neo's manifest and skill with the files beside them, before anything is started. */
import { resolve } from 'node:path';
import { bundledManifest } from '../../../mcp-host/bundled-programs.ts';
import { hasServersToStart, type LockedManifest, readLockedManifest, rejectAnyDrift } from '../../../mcp-host/drift.ts';
import { spillFolderPath } from '../../../mcp-host/spill-folder.ts';
import { resolveToolUri, type UriTarget } from '../../../mcp-host/tool-uri.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { Settings } from '../../../wire/settings.ts';
import type { ManifestChoice, ToolConfig } from './settings.ts';
import { readSkill, type Skill } from './skill.ts';

/** The file of a manifest. */
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
