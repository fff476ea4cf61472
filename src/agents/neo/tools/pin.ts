/** Pinning: stores the current definition of each tool, so that a later change is detected. */
import { ReveilleError, thrownText } from '../../../wire/errors.ts';
import { type HostOptions, startHost } from './start-host.ts';

export type PinChange = {
  alias: string;
  tool: string;
  change: 'new' | 'changed' | 'same' | 'gone';
};

export type PinReport = {
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
