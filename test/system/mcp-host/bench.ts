import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { loadManifest } from '../../../src/mcp-host/manifest.ts';
import type { ToolResult } from '../../../src/mcp-host/output-cap.ts';
import { ServerPool, type ServerPoolOptions } from '../../../src/mcp-host/server-pool.ts';
import { COMPILED, LEAN } from '../../support/quick-start.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const fixture = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A server of a manifest, in its file format. */
export type WrittenServer = { alias: string } & Record<string, unknown>;

/** A server of this folder, as a process with a start as cheap as that of the bundled servers. */
const started = (args: readonly string[], more: object) => ({
  command: process.execPath,
  args: [...LEAN, ...args],
  env: COMPILED,
  ...more,
});

export const tame = (alias = 'tame', more: object = {}): WrittenServer => ({
  alias,
  ...started([fixture('tame-server.ts')], more),
});

export const hostile = (mode: string, more: object = {}, file = ''): WrittenServer => ({
  alias: 'hostile',
  ...started([fixture('hostile-server.ts'), mode, file], more),
});

/** Arguments of a pool besides its servers. */
export type BenchOptions = Partial<ServerPoolOptions> & { variables?: Record<string, string> };

/** Starts the servers of a manifest that is written to a real file. */
export async function startPool(
  t: TestContext,
  servers: readonly WrittenServer[],
  { variables = {}, ...options }: BenchOptions = {},
): Promise<ServerPool> {
  const folder = temporaryFolder(t);
  const path = join(folder, 'agent.json');
  writeFileSync(path, JSON.stringify({ servers }));
  const manifest = loadManifest(path, { PATH: process.env.PATH, ...variables });
  const pool = await ServerPool.start(manifest, { clock: systemClock, log: silentLogger, dataDir: folder, ...options });
  t.after(() => pool.close());
  return pool;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process that has ended and is not yet reaped exists by number only.
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The text of a result. */
export function textOf({ content }: ToolResult): string {
  return content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');
}

/** A reference to a variable, as manifests write it. */
export const reference = (variable: string) => `\${${variable}}`;
