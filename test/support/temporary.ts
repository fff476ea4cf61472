/** Resources that end with a test: cleanups in reverse order, folders and servers. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The owner of cleanups: a test, `{ after }` of a file or a suite, or a {@link sharedOwner}. */
export type Owner = { after(cleanup: () => unknown): void };

const cleanups = new WeakMap<Owner, (() => unknown)[]>();

/** Runs at the end of the owner, in reverse order: a router closes before its folder is removed. */
export function atEnd(owner: Owner, cleanup: () => unknown): void {
  const registered = cleanups.get(owner);
  if (registered) {
    registered.unshift(cleanup);
    return;
  }
  const list = [cleanup];
  cleanups.set(owner, list);
  owner.after(async () => {
    for (const run of list) await run();
  });
}

/** The owner of resources that the tests of a suite share; the suite's `after` ends it. */
export function sharedOwner(): Owner & { end(): Promise<void> } {
  const ends: (() => unknown)[] = [];
  return {
    after: (cleanup) => void ends.unshift(cleanup),
    async end() {
      for (const end of ends) await end();
    },
  };
}

/** A folder that is removed with its owner, also when an ending process still writes to it. */
export function temporaryFolder(owner: Owner): string {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-test-'));
  atEnd(owner, () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}

export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** An HTTP server on a free port, closed with its owner. @returns its address */
export async function listening(owner: Owner, server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(owner, () => closeServer(server));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/**
 * The relative paths of everything below a folder, links themselves included. Links are not followed: Node's recursive
 * `readdirSync` follows them, and two links to their own folder then make it endless.
 */
export function namesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => [
    entry.name,
    ...(entry.isDirectory() ? namesBelow(join(folder, entry.name)).map((name) => join(entry.name, name)) : []),
  ]);
}
