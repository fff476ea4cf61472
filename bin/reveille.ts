/** The entry: hands argv to the command tree and turns its outcome into an exit status. */
import { runCli } from '../src/cli/run.ts';

process.exitCode = await runCli(process.argv.slice(2), process);
