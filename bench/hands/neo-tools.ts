/** Neo's tools and the MCP host below them, started as Neo starts them. */

import { parseToolConfig } from '../../src/agents/neo/tools/settings.ts';
import { spawnTools, startHost } from '../../src/agents/neo/tools/start-host.ts';
import type { ToolSurface } from '../../src/agents/neo/tools/surface.ts';
import { systemClock } from '../../src/kit/clock/clock.ts';
import { silentLogger } from '../../src/kit/log/log.ts';
import type { ServerPool } from '../../src/mcp-host/server-pool.ts';
import type { DeclaredServers } from './servers.ts';

function optionsFor({ folder, workspace, manifest }: DeclaredServers) {
  const config = parseToolConfig({ NEO_MANIFEST: manifest, NEO_WORKSPACE: workspace }, folder);
  const variables = { PATH: process.env.PATH };
  return { config, variables, dataDir: folder, clock: systemClock, log: silentLogger };
}

export async function startPool(servers: DeclaredServers): Promise<ServerPool> {
  const options = optionsFor(servers);
  const { pool } = await startHost({ ...options, config: { ...options.config, manifest: { path: servers.manifest } } });
  return pool;
}

export function startSurface(servers: DeclaredServers): Promise<ToolSurface> {
  return spawnTools(optionsFor(servers));
}
