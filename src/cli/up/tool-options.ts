/** The options with which commands start an agent's MCP servers. */

import { parseToolConfig, type ToolConfig } from '../../neo/tools/settings.ts';
import type { HostOptions } from '../../neo/tools/start-host.ts';
import { labelOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';

/** The settings with the label of this computer's agent, if it has one. */
export function settingsOfAgent(context: CliContext): CliContext['settings'] {
  const userId = labelOf(context);
  return userId === undefined ? context.settings : { ...context.settings, MATRIX_USER_ID: userId };
}

/** @param manifest the path of a manifest, instead of the configured one */
export async function toolOptions(
  context: CliContext,
  manifest?: string,
): Promise<Omit<HostOptions, 'config'> & { config: ToolConfig }> {
  const settings = settingsOfAgent(context);
  const dataDir = context.settings.NEO_DATA_DIR!;
  const config = parseToolConfig({ ...settings, ...(manifest !== undefined && { NEO_MANIFEST: manifest }) }, dataDir);
  return { config, variables: settings, dataDir, clock: context.clock, log: await context.log('neo', 'error') };
}
