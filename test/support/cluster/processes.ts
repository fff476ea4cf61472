/** Starting real processes and waiting for them. */
import { createServer } from 'node:net';
import { join } from 'node:path';

/** The program under test: the sources, unless a test of the package names the installed one. */
export const PROGRAM =
  process.env.REVEILLE_TEST_PROGRAM ?? join(import.meta.dirname, '..', '..', '..', 'bin', 'reveille.mjs');
export const START_LIMIT_MS = 60_000;

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return address.port;
}
