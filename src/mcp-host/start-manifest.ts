/** From a manifest's file to its running servers: read, compared with the lock beside it, started. */
import { mkdirSync } from 'node:fs';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Sandbox } from '../kit/process/isolation.ts';
import { ReveilleError, thrownText } from '../wire/errors.ts';
import { bundledPrograms, programFolders } from './bundled-programs.ts';
import { readLockedManifest, rejectDrift } from './drift.ts';
import { type HostLimits, resolveLimits } from './limits.ts';
import type { Manifest } from './manifest.ts';
import { spillFolderPath } from './output-cap.ts';
import type { Variables } from './references.ts';
import { ServerPool } from './server-pool.ts';

export type ManifestStart = {
  manifestPath: string;
  /** The values for references in the manifest; servers get an allow-list of them. */
  variables: Variables;
  /** Contains `mcp-logs/` and `tool-output/`. */
  dataDir: string;
  clock: Clock;
  log: Logger;
  /** Cancels the start. */
  signal?: AbortSignal | undefined;
  /** Limits that override those of the manifest. */
  limits?: Partial<HostLimits> | undefined;
  /** Whether the lock beside the manifest is enforced if it exists; true by default. */
  pinned?: boolean;
  /** Also starts servers that could wait for their first call: for a check of the whole configuration. */
  eager?: boolean | undefined;
  /** Starts only these servers and accepts their tools, whatever the manifest declares: for a review by a person. */
  only?: ReadonlySet<string> | undefined;
  /** More folders that servers need, by their names in error messages. */
  folders?: Readonly<Record<string, string>>;
  /** Paths that child servers must not see. */
  sandbox?: Sandbox | undefined;
  /** Inspects the manifest before anything is started. @throws ReveilleError to cancel the start */
  inspect?: (manifest: Manifest) => void;
};

function makeFolder(name: string, folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new ReveilleError('unavailable', `${name} ${folder} cannot be created: ${thrownText(cause)}`, { cause });
  }
}

const forReview = (servers: Manifest['servers'], only: ReadonlySet<string>) =>
  servers.flatMap((spec) => (only.has(spec.alias) ? [{ ...spec, tools: undefined, required: false }] : []));

/**
 * @throws ReveilleError `invalid_request`: the manifest or lock is invalid, and nothing is started. `conflict`: a
 *   server's tools differ from the declared and pinned ones. `unavailable`: a required server does not start.
 */
export async function startManifest(start: ManifestStart): Promise<{ pool: ServerPool; manifest: Manifest }> {
  const { manifestPath, variables, dataDir, clock, log, signal } = start;
  const { manifest: whole, lock, known } = readLockedManifest(manifestPath, variables, start.pinned);
  const { only } = start;
  const manifest = only === undefined ? whole : { ...whole, servers: forReview(whole.servers, only) };
  start.inspect?.(manifest);
  if (lock && only === undefined) rejectDrift({ manifest, lock });
  for (const [name, folder] of Object.entries(start.folders ?? {})) makeFolder(name, folder);
  // A files server that serves this folder does not start without it.
  makeFolder('the folder for tool output', spillFolderPath(dataDir));
  const pool = await ServerPool.start(manifest, {
    ...{ clock, log, dataDir, sandbox: start.sandbox, programs: bundledPrograms(), programFolders: programFolders() },
    ...(lock && { lock }),
    ...(!start.eager && only === undefined && { known }),
    ...(signal && { signal }),
    ...resolveLimits(start.limits, manifest.limits),
  });
  return { pool, manifest };
}
