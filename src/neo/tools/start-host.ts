/** Starting the servers of an agent manifest. The MCP host costs as much to load as the rest of Neo: only this loads it. */
import { mkdirSync } from 'node:fs';
import type { Clock } from '../../clock/clock.ts';
import type { Logger } from '../../log/log.ts';
import type { ServerPool } from '../../mcp-host/server-pool.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import type { ToolConfig } from './settings.ts';

export type HostOptions = {
  config: ToolConfig & { readonly manifest: object | 'bundled' };
  /** What references in the manifest refer to, and what servers get an allow-list of. */
  variables: Settings;
  /** Gets `mcp-logs/` and `tool-output/`. */
  dataDir: string;
  clock: Clock;
  log: Logger;
  /** Calls the start off. */
  signal?: AbortSignal | undefined;
  /** How long a server may take to start; 30 seconds unless told. */
  startTimeoutMs?: number | undefined;
};

/** A pool and the manifest that it was started from. */
export type StartedHost = { readonly pool: ServerPool; readonly manifestPath: string };

/** @param called what an error calls it */
function makeFolder(called: string, folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReveilleError('unavailable', `${called} ${folder} cannot be made: ${why}`, { cause });
  }
}

/**
 * @param pinned whether the tools must be those of the lock that stands beside the manifest, where there is one
 * @throws ReveilleError `invalid_request` for a manifest or lock that is wrong, before anything is started; `conflict` when a server's
 *   tools are not those that are declared and pinned; `unavailable` when a required server does not start
 */
export async function startHost(options: HostOptions, pinned = true): Promise<StartedHost> {
  const [
    { loadManifest },
    { ServerPool: Pool },
    { lockPathOf, readLock },
    { bundledManifest, bundledPrograms },
    { spillFolderPath },
  ] = await Promise.all([
    import('../../mcp-host/manifest.ts'),
    import('../../mcp-host/server-pool.ts'),
    import('../../mcp-host/tool-lock.ts'),
    import('../../mcp-host/bundled-programs.ts'),
    import('../../mcp-host/spill-folder.ts'),
  ]);
  const { config, variables, clock, log, dataDir, signal, startTimeoutMs } = options;
  const manifestPath = config.manifest === 'bundled' ? bundledManifest('neo') : config.manifest.path;
  const toolOutput = spillFolderPath(dataDir);
  const folders = { NEO_WORKSPACE: config.workspace, NEO_TOOL_OUTPUT: toolOutput };
  const manifest = loadManifest(manifestPath, { ...variables, ...folders });
  const lock = pinned ? readLock(lockPathOf(manifestPath)) : undefined;
  makeFolder('NEO_WORKSPACE', config.workspace);
  // A files server that is to show what was cut out of results does not start without it.
  makeFolder('the folder for tool output', toolOutput);
  const pool = await Pool.start(manifest, {
    ...{ clock, log, dataDir, programs: bundledPrograms() },
    ...(lock && { lock }),
    ...(signal && { signal }),
    ...(startTimeoutMs !== undefined && { startTimeoutMs }),
  });
  return { pool, manifestPath };
}
