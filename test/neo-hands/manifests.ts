/** Agent manifests for tests. */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Writes a manifest with one server that is a file of this folder, run by this Node; gives its path. */
export function manifestWith(
  folder: string,
  alias: string,
  script: string,
  args: readonly string[],
  members: object = {},
): string {
  const path = join(folder, `${alias}.json`);
  const command = process.execPath;
  const server = {
    alias,
    transport: 'stdio',
    command,
    args: [resolve(import.meta.dirname, script), ...args],
    ...members,
  };
  writeFileSync(path, JSON.stringify({ schema_version: '1', agent: 'test', servers: [server] }));
  return path;
}
