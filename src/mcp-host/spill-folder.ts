/** Where tool output goes that is too long for a model: files that it can be told the path of. */
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { v7 as uuidv7 } from 'uuid';

/** Beyond this the oldest files go. */
const MOST_BYTES = 256 * 1024 * 1024;

/** Where it is below a data folder; absolute, because the path is told to programs that may run elsewhere. */
export function spillFolderPath(dataDir: string): string {
  return resolve(dataDir, 'tool-output');
}

export class SpillFolder {
  readonly #path: string;
  readonly #mostBytes: number;

  /** Made when it is needed. */
  constructor(path: string, mostBytes = MOST_BYTES) {
    this.#path = path;
    this.#mostBytes = mostBytes;
  }

  /**
   * Keeps something, readable by this user only.
   *
   * @returns the path
   * @throws Error when the disk does not take it
   */
  keep(content: string | Uint8Array, extension: string): string {
    mkdirSync(this.#path, { recursive: true, mode: 0o700 });
    // UUIDv7: names are in the order of time.
    const path = join(this.#path, `${uuidv7()}.${extension}`);
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' });
    this.#prune(path);
    return path;
  }

  #prune(newest: string): void {
    let bytes = 0;
    for (const name of readdirSync(this.#path).sort().reverse()) {
      const path = join(this.#path, name);
      bytes += statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (bytes > this.#mostBytes && path !== newest) rmSync(path, { force: true });
    }
  }
}
