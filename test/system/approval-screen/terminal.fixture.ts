/**
 * Runs commands of `reveille` in its terminal, one after the other: each connection to the socket, its argument, sends
 * one, and is closed when the command has ended.
 */
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { runCli } from '../../../src/cli/run.ts';

export type TerminalCommand = { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };

const { stdin, stdout, stderr } = process;
// Each command adds its own listener; Node would warn on the screen.
for (const stream of [stdin, stdout, stderr]) stream.setMaxListeners(0);
createServer({ allowHalfOpen: true }, async (connection) => {
  const { args, env } = JSON.parse(await text(connection)) as TerminalCommand;
  await runCli(args, { env, stdin, stdout, stderr, cwd: () => process.cwd() });
  // The last line of a command: its output is on the screen when this is.
  stdout.write('ended\n', () => connection.end());
}).listen(process.argv[2], () => stdout.write('ready\n'));
