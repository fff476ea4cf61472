/**
 * The tool `run` of `shell`: a command in the workspace. It runs in a closed sandbox (`kit/process/view.ts`) that has
 * the workspace, programs, and no network; without one only when the operator has said so.
 */
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Clock } from '../kit/clock/clock.ts';
import { ReveilleError } from '../wire/errors.ts';
import { type ProgramEnd, runBounded } from './bounded-program.ts';
import { cleanVariables, type Workspace } from './workspace.ts';

const DEFAULT_SECONDS = 60;
const LONGEST_SECONDS = 600;
const KEPT_BYTES = 64 * 1024;
/** Processes and threads of a room at a time. Linux counts those of the room alone, and none of root's. */
const MOST_PROCESSES = 1024;
/** What sets that bound is called one thing by bash, another by dash and busybox. */
const WITH_BOUND = `ulimit -u ${MOST_PROCESSES} 2>/dev/null || ulimit -p ${MOST_PROCESSES} 2>/dev/null; exec /bin/sh -c "$1"`;

const schema = z.strictObject({
  command: z.string().min(1).max(16_384).describe('a command for /bin/sh'),
  folder: z.string().max(1024).optional().describe('where to run it, relative to the workspace'),
  timeout_seconds: z.int().min(1).max(LONGEST_SECONDS).optional().describe('when it is ended; 60 unless told'),
});

const endSchema = z.object({
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  ended: z.enum(['timeout', 'flood', 'cancelled']).optional(),
  stdout: z.string(),
  stderr: z.string(),
  left_processes: z.int(),
});

const END_TEXT = {
  timeout: 'it was ended because its time was over',
  flood: 'it was ended because it wrote too much',
  cancelled: 'it was called off',
};

function resultText({ code, signal, ended, stdout, stderr, left }: ProgramEnd): string {
  const how = ended ? END_TEXT[ended] : signal ? `it was ended by ${signal}` : `exit code ${code}`;
  const behind = left > 0 ? `; ${left} processes that it left behind were ended` : '';
  return [`[${how}${behind}]`, stdout, stderr && `[stderr]\n${stderr}`].filter(Boolean).join('\n');
}

export type ShellOptions = {
  clock: Clock;
  workspace: Workspace;
  /** Where programs are looked for. */
  path: string | undefined;
  /** Whether commands may run although there is no room. */
  isOpen: boolean;
  /** Whether this process is in a room. */
  isSandboxed: boolean;
};

/** Adds the tool to a server. */
export function addShell(server: McpServer, { clock, workspace, path, isOpen, isSandboxed }: ShellOptions): void {
  /** One after the other: what a command leaves behind is ended with it. */
  let last: Promise<unknown> = Promise.resolve();
  const run = async (given: z.output<typeof schema>, signal: AbortSignal) => {
    if (!isSandboxed && !isOpen)
      throw new ReveilleError(
        'unavailable',
        'no command was run: there are no walls around the shell here; install bubblewrap, or set REVEILLE_SHELL_WITHOUT_WALLS=1 to run commands as the user of the executor',
      );
    const cwd = workspace.folder(given.folder);
    const timeoutMs = (given.timeout_seconds ?? DEFAULT_SECONDS) * 1000;
    const command: readonly [string, ...string[]] = [
      '/bin/sh',
      '-c',
      ...(isSandboxed ? [WITH_BOUND, 'sh'] : []),
      given.command,
    ];
    return runBounded(clock, {
      ...{ command, cwd, timeoutMs, signal, isSandboxed: isSandboxed },
      env: cleanVariables(workspace, path),
      keptBytes: KEPT_BYTES,
    });
  };
  server.registerTool(
    'run',
    {
      title: 'Run a command',
      description:
        'Runs a command with /bin/sh in the workspace, and gives back what it wrote and its exit code. It has no network, no variables of the person and no files but those of the workspace and the programs of the system. Everything that it has started ends with it.',
      inputSchema: schema,
      outputSchema: endSchema,
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
    },
    async (given, { mcpReq: { signal } }) => {
      const turn = last.then(() => run(given, signal));
      last = turn.catch(() => {});
      const ending = await turn;
      const { code, signal: by, ended, stdout, stderr, left } = ending;
      return {
        content: [{ type: 'text', text: resultText(ending) }],
        structuredContent: {
          exit_code: code,
          signal: by,
          ...(ended && { ended }),
          stdout,
          stderr,
          left_processes: left,
        },
        isError: ended !== undefined || code !== 0,
      };
    },
  );
}
