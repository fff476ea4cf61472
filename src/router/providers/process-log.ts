/**
 * The output of a machine's process, in a bounded file. The process writes to the file itself: through a pipe it would die of
 * the router's death, and could not be taken over by the next one.
 */
import { createHash } from 'node:crypto';
import { constants, fstatSync, mkdirSync, openSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';

/** A file that has grown over this is cut down to its last part. */
const LARGEST_BYTES = 1024 * 1024;
const KEPT_BYTES = 256 * 1024;

const { O_APPEND, O_CREAT, O_RDWR, O_WRONLY } = constants;
/** Windows has no such flag. */
const O_NOFOLLOW = constants.O_NOFOLLOW ?? 0;

async function readFrom(file: FileHandle, position: number, end: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.max(0, end - position));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
  return buffer.subarray(0, bytesRead);
}

export class ProcessLog {
  readonly path: string;

  /** @param folder made (0700) when missing. The file is named by a hash: a user id never becomes a path */
  constructor(folder: string, userId: string) {
    this.path = join(folder, `${createHash('sha256').update(userId).digest('hex').slice(0, 32)}.log`);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /**
   * Opens the file for a process to write to. With O_APPEND every write goes to the end, also after the file was cut.
   *
   * @returns the descriptor, which the caller closes, and how long the file was
   * @throws ReveilleError `unavailable` when the file cannot be opened
   */
  openForProcess(): { fd: number; length: number } {
    try {
      const fd = openSync(this.path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
      return { fd, length: fstatSync(fd).size };
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ReveilleError('unavailable', `the log file ${this.path} cannot be opened: ${why}`, { cause });
    }
  }

  /** The end of what was written after the file was `since` bytes long, at most `maxBytes` of it. */
  async tail(since: number, maxBytes: number): Promise<string> {
    const file = await open(this.path, 'r');
    try {
      const { size } = await file.stat();
      const from = size < since ? 0 : since;
      return (await readFrom(file, Math.max(from, size - maxBytes), size)).toString('utf8');
    } finally {
      await file.close();
    }
  }

  /** Cuts a file that has grown too long down to its end. Lines written in that very moment may be lost. */
  async trim(): Promise<void> {
    const file = await open(this.path, O_RDWR | O_APPEND | O_NOFOLLOW);
    try {
      const { size } = await file.stat();
      if (size <= LARGEST_BYTES) return;
      const kept = await readFrom(file, size - KEPT_BYTES, size);
      await file.truncate(0);
      await file.write(kept);
    } finally {
      await file.close();
    }
  }
}
