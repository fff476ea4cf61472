/**
 * The output of a machine's process, in a bounded number of bounded files. The process writes to the file itself. With
 * a pipe it would die with the router, and the next router could not adopt it.
 */
import { createHash } from 'node:crypto';
import { constants, fstatSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { ReveilleError, systemCodeOf, thrownText } from '../../wire/errors.ts';

/** A larger file is rotated; of a much larger one only the end is kept. */
const LARGEST_BYTES = 1024 * 1024;
/** The most bytes that may be left to copy when the file is emptied: output written during the copy. */
const LAST_BYTES = 128 * 1024;
/** How often the copy continues when the process writes faster than that. */
const MOST_COPIES = 3;
/** The number of rotated files beside the current one: `.1` is the latest. */
const KEPT_FILES = 3;

const { O_APPEND, O_CREAT, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = constants;
/** Windows has no such flag. */
const O_NOFOLLOW = constants.O_NOFOLLOW ?? 0;

async function readFrom(file: FileHandle, position: number, end: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.max(0, end - position));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
  return buffer.subarray(0, bytesRead);
}

/** Copies the rest after `copied` and empties the file, synchronously. */
function emptyInto(rotated: FileHandle, file: FileHandle, copied: number): void {
  const { size } = fstatSync(file.fd);
  const from = Math.max(copied, size - LAST_BYTES);
  const buffer = Buffer.alloc(Math.max(0, size - from));
  writeSync(rotated.fd, buffer, 0, readSync(file.fd, buffer, 0, buffer.length, from), fstatSync(rotated.fd).size);
  ftruncateSync(file.fd, 0);
}

function isMissing(thrown: unknown): boolean {
  return systemCodeOf(thrown) === 'ENOENT';
}

export class ProcessLog {
  readonly path: string;
  /** The length of the file when the process began to write; earlier output belongs to another process. */
  #start = 0;
  /** Whether the file that was rotated last has output of the process. */
  #split = false;
  #rotating = false;

  /** @param folder created (0700) if missing. The file is named by a hash: a user id never becomes a path */
  constructor(folder: string, userId: string) {
    this.path = join(folder, `${createHash('sha256').update(userId).digest('hex').slice(0, 32)}.log`);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /**
   * Opens the file for a process. With O_APPEND every write goes to the end, also after the file was emptied.
   *
   * @returns the descriptor, which the caller closes
   * @throws ReveilleError `unavailable` when the file cannot be opened
   */
  openForProcess(): number {
    try {
      const fd = openSync(this.path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
      this.#start = fstatSync(fd).size;
      return fd;
    } catch (cause) {
      const why = thrownText(cause);
      throw new ReveilleError('unavailable', `the log file ${this.path} cannot be opened: ${why}`, { cause });
    }
  }

  /** The end of the process's output, at most `maxBytes`. */
  async tail(maxBytes: number): Promise<string> {
    const current = await this.#endOf(this.path, this.#start, maxBytes);
    const before = this.#split
      ? await this.#endOf(this.#rotatedFile(1), 0, maxBytes - current.length)
      : Buffer.alloc(0);
    return Buffer.concat([before, current]).toString('utf8');
  }

  /** Rotates a file that has grown too long. Lines written at that moment may be lost. */
  async rotate(): Promise<void> {
    if (this.#rotating) return;
    this.#rotating = true;
    try {
      await this.#rotateNow();
    } finally {
      this.#rotating = false;
    }
  }

  async #rotateNow(): Promise<void> {
    const file = await open(this.path, O_RDWR | O_APPEND | O_NOFOLLOW);
    try {
      const { size } = await file.stat();
      if (size <= LARGEST_BYTES) return;
      for (let n = KEPT_FILES - 1; n >= 1; n--) {
        await rename(this.#rotatedFile(n), this.#rotatedFile(n + 1)).catch((thrown: unknown) => {
          if (!isMissing(thrown)) throw thrown;
        });
      }
      // The process keeps the file open, so it is copied and emptied instead of renamed.
      const rotated = await open(this.#rotatedFile(1), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
      try {
        let copied = size;
        for (let copies = 1; ; copies++) {
          await rotated.truncate(0);
          const most = await readFrom(file, copied - LARGEST_BYTES + LAST_BYTES, copied);
          await rotated.write(most, 0, most.length, 0);
          const { size: grown } = await file.stat();
          if (grown - copied <= LAST_BYTES || copies === MOST_COPIES) break;
          copied = grown;
        }
        emptyInto(rotated, file, copied);
      } finally {
        await rotated.close();
      }
      this.#start = 0;
      this.#split = true;
    } finally {
      await file.close();
    }
  }

  #rotatedFile(n: number): string {
    return `${this.path}.${n}`;
  }

  async #endOf(path: string, from: number, maxBytes: number): Promise<Buffer> {
    const file = await open(path, O_RDONLY | O_NOFOLLOW);
    try {
      const { size } = await file.stat();
      return await readFrom(file, Math.max(from, size - maxBytes), size);
    } finally {
      await file.close();
    }
  }
}
