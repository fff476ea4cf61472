/** Runs one command line: 0 done, 1 failed, 2 used wrongly. */

import { CommanderError } from 'commander';
import { printable } from '../kit/text/hidden-characters.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import type { CliProcess } from './cli-process.ts';
import { EXIT } from './exit-status.ts';
import { UsageError } from './flags/usage-error.ts';
import { createOutput } from './screens/output.ts';
import { buildProgram } from './tree/program.ts';

/**
 * Whoever read the output may have gone, as in `reveille alarm list | head -1`: what is left to say is not wanted any
 * more.
 */
function outliveReaders({ stdout, stderr }: CliProcess): void {
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}

/**
 * Whether the command line is that of a prompt hook. Agent CLIs take an exit status of 2 as an order to throw the
 * prompt away, and others as a failure: whatever is wrong, even with its flags, it is done.
 */
function isHook(argv: readonly string[]): boolean {
  const [first, second] = argv.filter((word) => !word.startsWith('-'));
  return first === 'time' && second === 'hook';
}

/**
 * @param argv the words after the program's name
 * @param process whose environment and streams the command works with
 * @returns the exit status
 */
export async function runCli(argv: readonly string[], process: CliProcess): Promise<number> {
  outliveReaders(process);
  try {
    await buildProgram(process).parseAsync([...argv], { from: 'user' });
    // A command that has run but not succeeded says so through the exit code it has set.
    return Number(process.exitCode ?? EXIT.done);
  } catch (thrown) {
    // Commander has printed its own words by now.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 || isHook(argv) ? EXIT.done : EXIT.usage;
    const error = toReveilleError(thrown);
    createOutput(process, argv.includes('--json')).failure(error);
    // A defect of ours: without its trace nobody could mend it.
    if (!(thrown instanceof ReveilleError))
      process.stderr.write(`${printable(String(thrown instanceof Error ? thrown.stack : thrown))}\n`);
    if (isHook(argv)) return EXIT.done;
    return thrown instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}
