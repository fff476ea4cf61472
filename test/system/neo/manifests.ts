/** Agent manifests for tests. */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { COMPILED } from '../../support/quick-start.ts';

/** The ledger's tools with the entry that gives them to the model. */
const LEDGER_TOOLS = [
  { name: 'enter', surface: 'natural' },
  { name: 'look', side_effect_class: 'read' },
];

/** Writes a manifest with one server that is a file of this folder, run by this Node. @returns its path */
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
    ...(script === 'ledger-server.ts' && { tools: LEDGER_TOOLS }),
    env: COMPILED,
    ...members,
  };
  writeFileSync(path, JSON.stringify({ schema_version: '1', agent: 'test', servers: [server] }));
  return path;
}
