/** A router's registry without the router: the file in which providers store their durable records. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import type { Logger } from '../../../src/kit/log/log.ts';
import { Registry } from '../../../src/router/machines/registry.ts';
import { AwakeRecords } from '../../../src/router/providers/awake-records.ts';

export type RouterRecords = {
  readonly folder: string;
  readonly registry: Registry;
  /** The records of machines that were awake. */
  awake(provider: string, log: Logger): AwakeRecords;
  /** Closes the file and opens it again, as the next router does. */
  reopen(): Registry;
  close(): Promise<void>;
};

export function openRecords(): RouterRecords {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-provider-'));
  let registry = new Registry(folder, systemClock);
  return {
    folder,
    get registry() {
      return registry;
    },
    awake: (provider, log) => new AwakeRecords(provider, { file: registry.file, commits: registry.commits, log }),
    reopen() {
      registry.file.close();
      registry = new Registry(folder, systemClock);
      return registry;
    },
    async close() {
      await registry.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
