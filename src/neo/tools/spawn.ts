/** Starting what the configuration declares, as a tool surface. */

import type { ToolConfig } from './settings.ts';
import { readSkill } from './skill.ts';
import { type HostOptions, startHost } from './start-host.ts';
import type { ToolSurface } from './surface.ts';
import { createToolSet, type ToolSetOptions } from './tool-set.ts';

export type SpawnOptions = Omit<HostOptions, 'config'> &
  Pick<ToolSetOptions, 'delegate' | 'recall' | 'warnings'> & { config: ToolConfig };

/**
 * Starts the servers of the manifest and makes the surface over them and Neo's own functions.
 *
 * @throws ReveilleError as `readSkill` and `startHost` do
 */
export async function spawnTools(options: SpawnOptions): Promise<ToolSurface> {
  const { config, delegate, recall, warnings = [], log } = options;
  const { manifest, patterns } = config;
  const skill = config.skill === undefined ? undefined : readSkill(config.skill);
  const host = manifest === undefined ? undefined : await startHost({ ...options, config: { ...config, manifest } });
  return createToolSet({ host: host?.pool, patterns, skill, delegate, recall, warnings, log });
}
