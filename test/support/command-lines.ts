/** Running processes, without a program that lists them: a new machine may have none. */
import { readdirSync, readFileSync } from 'node:fs';

/** The command lines of the processes of this computer, words with spaces between them. It needs Linux. */
export function commandLines(): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}
