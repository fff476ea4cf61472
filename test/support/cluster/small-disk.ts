/** A disk of a few megabytes, in memory, that can be filled to the last page and freed again. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { needs } from '../tools.ts';

const FILLER = 'filler';
/** Pieces in which it is filled; the last one is a page of memory. */
const PIECES = [1024 * 1024, 64 * 1024, 4096];

/** Unmounts the disk when its owner process has ended in any way. */
const GUARDIAN = 'cat > /dev/null; umount -l "$0" 2> /dev/null; rmdir "$0" 2> /dev/null';

/** The reason why such a disk is not available here, or `false`. */
export function noSmallDisk(): string | false {
  if (process.platform !== 'linux') return 'there is no tmpfs on this system';
  const missing = needs('mount');
  if (missing !== false) return missing;
  const folder = mkdtempSync(join(tmpdir(), 'reveille-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4k', 'reveille-test', folder], { encoding: 'utf8' });
  if (mounted.status === 0) execFileSync('umount', [folder]);
  rmSync(folder, { recursive: true, force: true });
  return mounted.status !== 0 && 'a small disk cannot be mounted here (it needs root)';
}

export class SmallDisk {
  readonly folder: string;
  readonly #guardian: ChildProcess;

  /** Mounts one. @param megabytes its size */
  constructor(megabytes: number) {
    this.folder = mkdtempSync(join(tmpdir(), 'reveille-disk-'));
    // Every account may write: PostgreSQL has its own.
    const options = `size=${megabytes}m,mode=755`;
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'reveille-test', this.folder]);
    this.#guardian = spawn('/bin/sh', ['-c', GUARDIAN, this.folder], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    this.#guardian.unref();
    (this.#guardian.stdin as unknown as { unref(): void }).unref();
  }

  /** Fills it to the last page. */
  fill(): void {
    const file = openSync(join(this.folder, FILLER), 'a');
    try {
      for (const size of PIECES) {
        const piece = Buffer.alloc(size);
        try {
          while (writeSync(file, piece) === size);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
    } finally {
      closeSync(file);
    }
  }

  /** Removes the file of {@link fill}. */
  free(): void {
    rmSync(join(this.folder, FILLER), { force: true });
  }

  /** Unmounts it; its users must have ended. */
  remove(): void {
    execFileSync('umount', [this.folder]);
    rmSync(this.folder, { recursive: true, force: true });
    this.#guardian.stdin?.end();
  }
}
