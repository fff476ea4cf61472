/** From a manifest's file to its running servers: read, held against the lock beside it, started. */
import { mkdirSync } from 'node:fs';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Walls } from '../kit/process/separation.ts';
import { ReveilleError } from '../wire/errors.ts';
import { bundledPrograms, programFolders } from './bundled-programs.ts';
import { readAgreedFiles, refuseDrift } from './drift.ts';
import { type HostLimits, limitsOf } from './limits.ts';
import type { Manifest } from './manifest.ts';
import type { Variables } from './references.ts';
import { ServerPool } from './server-pool.ts';
import { spillFolderPath } from './spill-folder.ts';

export type ManifestStart = {
  manifestPath: string;
  /** What references in the manifest refer to, and what servers get an allow-list of. */
  variables: Variables;
  /** Gets `mcp-logs/` and `tool-output/`. */
  dataDir: string;
  clock: Clock;
  log: Logger;
  /** Calls the start off. */
  signal?: AbortSignal | undefined;
  /** Limits that go before those of the manifest. */
  limits?: Partial<HostLimits> | undefined;
  /** Whether the tools must be those of the lock beside the manifest, where there is one; they must unless told. */
  pinned?: boolean;
  /** Starts servers that could wait for their first call, too: for somebody who looks whether all is as it should be. */
  eager?: boolean | undefined;
  /**
   * Starts these servers alone and takes their tools as they are, whatever the manifest declares: for somebody who is
   * to look at them.
   */
  only?: ReadonlySet<string> | undefined;
  /** More folders that servers need, by what an error calls them. */
  folders?: Readonly<Record<string, string>>;
  /** What servers that run as children must not see. */
  walls?: Walls | undefined;
  /** Looks at the manifest before anything is started. @throws ReveilleError to call the start off */
  inspect?: (manifest: Manifest) => void;
};

function makeFolder(called: string, folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReveilleError('unavailable', `${called} ${folder} cannot be made: ${why}`, { cause });
  }
}

const lookedAt = (servers: Manifest['servers'], only: ReadonlySet<string>) =>
  servers.flatMap((spec) => (only.has(spec.alias) ? [{ ...spec, tools: undefined, required: false }] : []));

/**
 * @throws ReveilleError `invalid_request` for a manifest or lock that is wrong, before anything is started; `conflict`
 *   when a server's
 *   tools are not those that are declared and pinned; `unavailable` when a required server does not start
 */
export async function startManifest(start: ManifestStart): Promise<{ pool: ServerPool; manifest: Manifest }> {
  const { manifestPath, variables, dataDir, clock, log, signal } = start;
  const { manifest: whole, lock, known } = readAgreedFiles(manifestPath, variables, start.pinned);
  const { only } = start;
  const manifest = only === undefined ? whole : { ...whole, servers: lookedAt(whole.servers, only) };
  start.inspect?.(manifest);
  if (lock && only === undefined) refuseDrift({ manifest, lock });
  for (const [called, folder] of Object.entries(start.folders ?? {})) makeFolder(called, folder);
  // A files server that is to show what was cut out of results does not start without it.
  makeFolder('the folder for tool output', spillFolderPath(dataDir));
  const pool = await ServerPool.start(manifest, {
    ...{ clock, log, dataDir, walls: start.walls, programs: bundledPrograms(), programFolders: programFolders() },
    ...(lock && { lock }),
    ...(!start.eager && only === undefined && { known }),
    ...(signal && { signal }),
    ...limitsOf(start.limits, manifest.limits),
  });
  return { pool, manifest };
}
