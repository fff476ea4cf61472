/** Manifests for tests: the shipped one with its ledger in a folder of the test, and with optional faults. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const SHIPPED = join(import.meta.dirname, '..', '..', '..', 'agents', 'executor.json');

export type LedgerManifestOptions = {
  /** The fault at each call of `transfer`, as `faulty-ledger.ts` lists it; without it the ledger is the real one. */
  faults?: readonly string[];
  /** For calls of `transfer`. */
  timeoutMs?: number;
};

type Shipped = { servers: [{ tools: { name: string; timeout_ms?: number }[] } & Record<string, unknown>] };

/**
 * Writes a manifest into a folder, with the ledger's data below it.
 *
 * @returns the paths of the manifest and of the ledger's data
 */
export function writeLedgerManifest(
  folder: string,
  { faults, timeoutMs }: LedgerManifestOptions = {},
): { path: string; ledgerDir: string } {
  const ledgerDir = join(folder, 'ledger');
  const manifest = JSON.parse(readFileSync(SHIPPED, 'utf8')) as Shipped;
  const [server] = manifest.servers;
  manifest.servers = [server];
  const env: Record<string, string> = { LEDGER_DATA_DIR: ledgerDir };
  if (faults) {
    env.LEDGER_FAULTS = join(folder, 'faults');
    writeFileSync(env.LEDGER_FAULTS, faults.join('\n'));
    server.command = process.execPath;
    server.args = [join(import.meta.dirname, 'faulty-ledger.ts')];
  }
  server.env = env;
  for (const tool of server.tools) if (tool.name === 'transfer' && timeoutMs !== undefined) tool.timeout_ms = timeoutMs;
  const path = join(folder, 'executor.json');
  writeFileSync(path, JSON.stringify(manifest));
  return { path, ledgerDir };
}
