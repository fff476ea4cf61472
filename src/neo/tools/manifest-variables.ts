/** What a manifest of somebody's own needs around it; known before anything is started. */
import type { Settings } from '../../wire/settings.ts';
import type { ToolConfig } from './settings.ts';

/**
 * The variables that the servers of the manifest refer to; none for the one that ships, which runs with what Neo has.
 *
 * @param variables as the manifest will be read with
 * @throws ReveilleError `invalid_request` for a manifest that is wrong, naming every place
 */
export async function manifestVariables(
  { manifest, workspace }: ToolConfig,
  variables: Settings,
): Promise<readonly string[]> {
  if (manifest === undefined || manifest === 'bundled') return [];
  const { loadManifest } = await import('../../mcp-host/manifest.ts');
  // Where both really are matters to servers that run, and to nothing here.
  const folders = { NEO_WORKSPACE: workspace, NEO_TOOL_OUTPUT: workspace };
  const { servers } = loadManifest(manifest.path, { ...variables, ...folders });
  return [...new Set(servers.flatMap((server) => server.variables))];
}
