/** Runs one command line. Exit status: 0 success, 1 failure, 2 wrong usage. */
import { CommanderError } from 'commander';
import { printable } from '../kit/text/hidden-characters.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import type { CliProcess } from './cli-process.ts';
import { EXIT } from './cli-process.ts';
import { UsageError } from './flags/usage-error.ts';
import { createOutput } from './screens/output.ts';
import { buildProgram } from './tree/program.ts';

/** The reader of the output may have closed the pipe, as in `reveille alarm list | head -1`: the rest is discarded. */
function outliveReaders({ stdout, stderr }: CliProcess): void {
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}

/**
 * Whether this is the command of a prompt hook. Clients discard the prompt on exit status 2, and report others as
 * failures. So every error of a hook, wrong flags included, exits with 0.
 */
function isHook(argv: readonly string[]): boolean {
  const [first, second] = argv.filter((word) => !word.startsWith('-'));
  return first === 'time' && second === 'hook';
}

/**
 * @param argv the words after the program's name
 * @param process with the environment and streams of the command
 * @returns the exit status
 */
export async function runCli(argv: readonly string[], process: CliProcess): Promise<number> {
  outliveReaders(process);
  try {
    await buildProgram(process).parseAsync([...argv], { from: 'user' });
    // A command that was understood and failed has set its exit status.
    return Number(process.exitCode ?? EXIT.done);
  } catch (thrown) {
    // Commander has printed the error.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 || isHook(argv) ? EXIT.done : EXIT.usage;
    const error = toReveilleError(thrown);
    createOutput(process, argv.includes('--json')).failure(error);
    // An error in our code: its trace is needed to fix it.
    if (!(thrown instanceof ReveilleError))
      process.stderr.write(`${printable(String(thrown instanceof Error ? thrown.stack : thrown))}\n`);
    if (isHook(argv)) return EXIT.done;
    return thrown instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}
