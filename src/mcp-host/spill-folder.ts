/** The folder for tool output that is too long for a model, which gets the path of the file. */
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { v7 as uuidv7 } from 'uuid';

/** Beyond this the oldest files are deleted. */
const MOST_BYTES = 256 * 1024 * 1024;

/** Its path below a data folder; absolute, because programs with another working directory get it. */
export function spillFolderPath(dataDir: string): string {
  return resolve(dataDir, 'tool-output');
}

export class SpillFolder {
  readonly #path: string;
  readonly #mostBytes: number;

  /** Created when needed. */
  constructor(path: string, mostBytes = MOST_BYTES) {
    this.#path = path;
    this.#mostBytes = mostBytes;
  }

  /**
   * Stores content, readable by this user only.
   *
   * @returns the path
   * @throws Error when the disk does not accept it
   */
  store(content: string | Uint8Array, extension: string): string {
    mkdirSync(this.#path, { recursive: true, mode: 0o700 });
    // UUIDv7 names sort by time.
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
