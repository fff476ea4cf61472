/** Reads the files of an import. Their content, and the names that they lead to, may be written by others. */
import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from 'node:fs';
import { isWithin } from '../../kit/process/view.ts';
import { thrownText } from '../../wire/errors.ts';
import { UsageError } from '../flags/usage-error.ts';

/** A file of jobs is not larger (docs/guides/import.md). */
export const LARGEST_BYTES = 16 * 1024 * 1024;

/**
 * The text of a regular file, or of standard input for `-`, without a byte order mark. A pipe, a device or an endless
 * file is refused, since it would block the import.
 *
 * @param within a folder that the file must be in, after its links are followed
 * @throws UsageError
 */
export function sourceText(path: string, within?: string): string {
  try {
    if (path === '-') return textOf(0);
    const real = realpathSync(path);
    if (within !== undefined && !isWithin(real, realpathSync(within)))
      throw new Error(`it is a link out of ${within}; name the file itself`);
    const file = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    try {
      if (!fstatSync(file).isFile()) throw new Error('it is no regular file; save its text in one, or use "-"');
      return textOf(file);
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    throw new UsageError(`${path} cannot be read: ${thrownText(cause)}`, cause);
  }
}

function textOf(file: number): string {
  const parts: Buffer[] = [];
  let size = 0;
  for (;;) {
    const part = Buffer.alloc(64 * 1024);
    const read = readSync(file, part);
    if (read === 0) break;
    size += read;
    if (size > LARGEST_BYTES) throw new Error(`it has more than ${LARGEST_BYTES / 1024 / 1024} MiB`);
    parts.push(part.subarray(0, read));
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts));
  } catch (cause) {
    throw new Error('it must be UTF-8 text; it contains other bytes', { cause });
  }
}
