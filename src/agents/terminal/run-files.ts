/**
 * The input and output files of a turn's program. With pipes the program would die with the router; from files the next
 * router reads how the turn ended. Of a long output only the beginning and the end are read.
 */
import { constants, openSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ReveilleError, systemCodeOf, thrownText } from '../../wire/errors.ts';
import type { Captured, Output } from './readers.ts';

/** The beginning contains the session id in some formats. */
const HEAD_BYTES = 64 * 1024;
const TAIL_BYTES = 4 * 1024 * 1024;

const { O_APPEND, O_CREAT, O_WRONLY } = constants;
/** Windows has no such flag. */
const O_NOFOLLOW = constants.O_NOFOLLOW ?? 0;

const OUTPUTS = ['stdout', 'stderr'] as const;
type OutputName = (typeof OUTPUTS)[number];

async function readAt(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.max(0, to - from));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
  return buffer.subarray(0, bytesRead);
}

/** Beginning and end of a file, and the number of bytes between them. */
async function readEnds(file: FileHandle): Promise<{ head: Buffer; tail: Buffer; between: number }> {
  const { size } = await file.stat();
  const head = await readAt(file, 0, Math.min(size, HEAD_BYTES));
  const from = Math.max(head.length, size - TAIL_BYTES);
  return { head, tail: await readAt(file, from, size), between: from - head.length };
}

const omitted = (bytes: number) => Buffer.from(`\n[${bytes} bytes omitted]\n`);

/** Invalid UTF-8, and a character that a cut divided, become U+FFFD. */
function textOf({ head, tail, between }: { head: Buffer; tail: Buffer; between: number }): string {
  return Buffer.concat(between === 0 ? [head, tail] : [head, omitted(between), tail]).toString('utf8');
}

export class RunFiles {
  readonly #folder: string;

  /** @param turnId created by the router, never a name from outside */
  constructor(root: string, turnId: string) {
    this.#folder = join(root, turnId);
  }

  /**
   * Creates the folder (0700) and the file for the program's input.
   *
   * @throws ReveilleError `unavailable` when the disk fails
   */
  async prepare(input: string | undefined): Promise<void> {
    try {
      await rm(this.#folder, { recursive: true, force: true });
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      if (input !== undefined) await writeFile(join(this.#folder, 'stdin'), input, { mode: 0o600 });
    } catch (cause) {
      throw unusable(this.#folder, cause);
    }
  }

  /** Opens the descriptors of a program; the caller closes them. */
  openAll(withInput: boolean): { input: number | undefined; output: number; errors: number } {
    const write = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW;
    try {
      return {
        input: withInput ? openSync(join(this.#folder, 'stdin'), 'r') : undefined,
        output: openSync(join(this.#folder, 'stdout'), write, 0o600),
        errors: openSync(join(this.#folder, 'stderr'), write, 0o600),
      };
    } catch (cause) {
      throw unusable(this.#folder, cause);
    }
  }

  /** The number of bytes that the program has written so far. */
  async written(): Promise<number> {
    const sizes = await Promise.all(OUTPUTS.map(async (name) => (await stat(join(this.#folder, name))).size));
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /** The program's output; empty if it was never started. */
  async read(): Promise<Output> {
    const [stdout, stderr] = await Promise.all(OUTPUTS.map((name) => this.#captured(name)));
    return { stdout: stdout!, stderr: stderr! };
  }

  remove(): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  async #captured(name: OutputName): Promise<Captured> {
    let file: FileHandle;
    try {
      file = await open(join(this.#folder, name), 'r');
    } catch (thrown) {
      if (systemCodeOf(thrown) === 'ENOENT') return { text: '', whole: true };
      throw thrown;
    }
    try {
      const ends = await readEnds(file);
      return { text: textOf(ends), whole: ends.between === 0 };
    } finally {
      await file.close();
    }
  }
}

function unusable(path: string, cause: unknown): ReveilleError {
  const why = thrownText(cause);
  return new ReveilleError('unavailable', `the folder ${path} of a turn cannot be used: ${why}`, { cause });
}

/** Removes the files of turns that have ended. */
export async function removeOthers(root: string, unfinished: ReadonlySet<string>): Promise<void> {
  const found = await readdir(root).catch(() => []);
  await Promise.all(
    found.filter((turnId) => !unfinished.has(turnId)).map((turnId) => new RunFiles(root, turnId).remove()),
  );
}
