/**
 * Starts the servers of an agent manifest, and pins their tools. The MCP host costs as much to load as the rest of Neo:
 * only this module loads it.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { Sandbox } from '../../../kit/process/isolation.ts';
import type { ServerPool } from '../../../mcp-host/server-pool.ts';
import { ReveilleError, thrownText } from '../../../wire/errors.ts';
import type { Settings } from '../../../wire/settings.ts';
import type { ManifestChoice, ToolConfig } from './settings.ts';
import { readSkill } from './skill.ts';
import type { ToolSurface } from './surface.ts';
import { createToolSet, type ToolSetOptions } from './tool-set.ts';

// Starts the configured servers as a tool surface.

export type SpawnOptions = Omit<HostOptions, 'config'> &
  Pick<ToolSetOptions, 'delegate' | 'recall' | 'warnings' | 'questions'> & { config: ToolConfig };

/**
 * Starts the servers of the manifest and makes the surface over them and Neo's own functions.
 *
 * @throws ReveilleError as `checkFiles`, `startHost` and `checkSkill` do
 */
export async function spawnTools(options: SpawnOptions): Promise<ToolSurface> {
  const { config, delegate, recall, questions, warnings = [], log } = options;
  const { manifest, patterns } = config;
  const { checkFiles, checkSkill } = await import('./file-check.ts');
  checkFiles(config, options.variables, options.dataDir);
  const skill = config.skill === undefined ? undefined : readSkill(config.skill);
  const host =
    manifest === undefined
      ? undefined
      : await startHost({ ...options, config: { ...config, manifest }, asksPerson: questions !== undefined });
  try {
    if (skill && host) checkSkill(skill, host.pool.tools());
  } catch (thrown) {
    await host?.pool.close();
    throw thrown;
  }
  return createToolSet({ host: host?.pool, patterns, skill, delegate, recall, questions, warnings, log });
}

export type HostOptions = {
  config: ToolConfig & { readonly manifest: ManifestChoice };
  /** The values for references in the manifest; servers get an allow-list of them. */
  variables: Settings;
  /** Contains `mcp-logs/` and `tool-output/`. */
  dataDir: string;
  /** Paths that child servers must not see. */
  sandbox?: Sandbox | undefined;
  clock: Clock;
  log: Logger;
  /** Also starts servers that could wait for their first call. */
  eager?: boolean | undefined;
  /** Whether calls may ask the person. */
  asksPerson?: boolean | undefined;
  /** Cancels the start. */
  signal?: AbortSignal | undefined;
};

export type StartedHost = { readonly pool: ServerPool; readonly manifestPath: string };

/**
 * @param pinned whether the lock beside the manifest is enforced if it exists
 * @param only the servers to start for a review, with any tools; by default all of them, with the declared tools
 * @throws ReveilleError `invalid_request`: the manifest or lock is invalid, and nothing is started. `conflict`: a
 *   server's tools differ from the declared and pinned ones. `unavailable`: a required server does not start.
 */
export async function startHost(options: HostOptions, pinned = true, only?: ReadonlySet<string>): Promise<StartedHost> {
  const [{ startManifest }, { manifestPathOf, foldersOf }] = await Promise.all([
    import('../../../mcp-host/server-pool.ts'),
    import('./file-check.ts'),
  ]);
  const { config, variables, ...rest } = options;
  const manifestPath = manifestPathOf(config.manifest);
  const folders = foldersOf(config, options.dataDir);
  const { pool } = await startManifest({
    ...rest,
    ...{ manifestPath, pinned, only, limits: config.limits, folders: { NEO_WORKSPACE: folders.NEO_WORKSPACE } },
    variables: { ...variables, ...folders },
  });
  return { pool, manifestPath };
}

type PinChange = {
  alias: string;
  tool: string;
  change: 'new' | 'changed' | 'same' | 'gone';
};

type PinReport = {
  /** The written lock, beside the manifest. */
  file: string;
  /** Every tool of the running servers, and the pinned ones that were removed. */
  tools: PinChange[];
  /** A sentence for each server that did not start; its pins stay unchanged. */
  unpinned: string[];
};

/**
 * Starts the servers, whatever the present lock contains, and writes a lock for their tools. Tools must still be the
 * declared ones.
 *
 * @throws ReveilleError as `startHost` does; `unavailable` when the lock cannot be written
 */
export async function pinTools(options: HostOptions): Promise<PinReport> {
  const { lockOf, lockPathOf, readKnownTools, readLock, writeKnownTools, writeLock } = await import(
    '../../../mcp-host/tool-lock.ts'
  );
  const { pool, manifestPath } = await startHost(options, false);
  try {
    const file = lockPathOf(manifestPath);
    const before = readLock(file)?.servers ?? {};
    const now = lockOf(pool.tools()).servers;
    const down = pool.servers().filter(({ state }) => state !== 'ready');
    const kept = Object.fromEntries(down.flatMap(({ alias }) => (before[alias] ? [[alias, before[alias]]] : [])));
    const tools = Object.entries(now).flatMap(([alias, pins]) => {
      const old = before[alias] ?? {};
      const present = Object.entries(pins).map(([tool, digest]): PinChange => {
        const change = old[tool] === undefined ? 'new' : old[tool] === digest ? 'same' : 'changed';
        return { alias, tool, change };
      });
      const removed = Object.keys(old).filter((tool) => pins[tool] === undefined);
      return [...present, ...removed.map((tool): PinChange => ({ alias, tool, change: 'gone' }))];
    });
    try {
      writeLock(file, { lock_version: 1, servers: { ...kept, ...now } });
      const known = readKnownTools(manifestPath) ?? {};
      const still = Object.fromEntries(down.flatMap(({ alias }) => (known[alias] ? [[alias, known[alias]]] : [])));
      const liveTools = Object.groupBy(pool.tools(), ({ alias }) => alias);
      const live = Object.entries(liveTools).map(([alias, tools]) => [
        alias,
        tools!.map(({ definition }) => definition),
      ]);
      writeKnownTools(manifestPath, { ...still, ...Object.fromEntries(live) });
    } catch (cause) {
      const reason = thrownText(cause);
      throw new ReveilleError('unavailable', `the tool lock ${file} cannot be written: ${reason}`, { cause });
    }
    // A server that is off keeps its pins.
    const off = pool.off().filter(({ alias }) => before[alias] === undefined);
    const unpinned = [
      ...pool.warnings(),
      ...off.map(({ alias, why: reason }) => `server "${alias}" is off: ${reason}`),
    ];
    return { file, tools, unpinned };
  } finally {
    await pool.close();
  }
}
