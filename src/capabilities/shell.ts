/**
 * The tool `run` of `shell`: runs a command in the workspace. The command runs in a closed sandbox
 * (`kit/process/view.ts`) with the workspace, the system's programs and no network. Without a sandbox it runs only with
 * the operator's permission.
 */
import { realpathSync, statSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Clock } from '../kit/clock/clock.ts';
import { type ProgramEnd, runBounded } from '../kit/process/bounded-program.ts';
import { isWithin } from '../kit/process/view.ts';
import { KeyedQueue } from '../kit/queue/keyed-queue.ts';
import { ReveilleError } from '../wire/errors.ts';

/** The folder of a capability: paths outside it are refused. */
export class Workspace {
  readonly root: string;

  /** @throws ReveilleError `invalid_request` when it is not a folder */
  constructor(folder: string) {
    if (!isAbsolute(folder) || !statSync(folder, { throwIfNoEntry: false })?.isDirectory())
      throw new ReveilleError('invalid_request', `the workspace must be a folder (got ${JSON.stringify(folder)})`);
    this.root = realpathSync(folder);
  }

  /**
   * The real path of a folder of the workspace.
   *
   * @param path relative to the workspace; default: the workspace itself
   * @throws ReveilleError `invalid_request` when it does not exist, `forbidden` when it is outside the workspace
   */
  folder(path = '.'): string {
    const shown = JSON.stringify(path.slice(0, 200));
    let real: string;
    try {
      real = realpathSync(resolve(this.root, path));
    } catch {
      throw new ReveilleError('invalid_request', `folder must be a folder of the workspace (${shown} does not exist)`);
    }
    if (!isWithin(real, this.root))
      throw new ReveilleError('forbidden', `folder must be in the workspace (${shown} is outside)`);
    if (!statSync(real).isDirectory()) throw new ReveilleError('invalid_request', `folder: ${shown} is a file`);
    return real;
  }
}

/** The environment of programs in the workspace: only the search path and a home folder. */
function cleanVariables(workspace: Workspace, path: string | undefined): Record<string, string> {
  return { PATH: path || '/usr/local/bin:/usr/bin:/bin', HOME: workspace.root, LANG: 'C.UTF-8', TMPDIR: '/tmp' };
}

const DEFAULT_SECONDS = 60;
const SECONDS_MAX = 600;
const KEPT_BYTES = 64 * 1024;
/** Maximum processes and threads of a sandbox. Linux counts only those of the sandbox, and none of root. */
const PROCESSES_MAX = 1024;
/** bash and dash or busybox name the option for this limit differently. */
const WITH_BOUND = `ulimit -u ${PROCESSES_MAX} 2>/dev/null || ulimit -p ${PROCESSES_MAX} 2>/dev/null; exec /bin/sh -c "$1"`;

const schema = z.strictObject({
  command: z.string().min(1).max(16_384).describe('a command for /bin/sh'),
  folder: z.string().max(1024).optional().describe('where to run it, relative to the workspace'),
  timeout_seconds: z.int().min(1).max(SECONDS_MAX).optional().describe('time limit in seconds; default 60'),
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
  timeout: 'it was ended at its time limit',
  flood: 'it was ended because it wrote too much',
  cancelled: 'it was cancelled',
};

function resultText({ code, signal, ended, stdout, stderr, left }: ProgramEnd): string {
  const endText = ended ? END_TEXT[ended] : signal ? `it was ended by ${signal}` : `exit code ${code}`;
  const leftText = left > 0 ? `; ${left} processes that it left running were ended` : '';
  return [`[${endText}${leftText}]`, stdout, stderr && `[stderr]\n${stderr}`].filter(Boolean).join('\n');
}

export type ShellOptions = {
  clock: Clock;
  workspace: Workspace;
  /** The search path for programs. */
  path: string | undefined;
  /** Whether commands may run without a sandbox. */
  isUnsandboxedAllowed: boolean;
  /** Whether this process runs in a sandbox. */
  isSandboxed: boolean;
};

export function addShell(
  server: McpServer,
  { clock, workspace, path, isUnsandboxedAllowed, isSandboxed }: ShellOptions,
): void {
  /** Commands run one after the other: each ends the processes that it left. */
  const commands = new KeyedQueue();
  const run = async (given: z.output<typeof schema>, signal: AbortSignal) => {
    if (!isSandboxed && !isUnsandboxedAllowed)
      throw new ReveilleError(
        'unavailable',
        'no command was run: the shell has no sandbox here; install bubblewrap, or set REVEILLE_SHELL_WITHOUT_WALLS=1 to run commands as the user of the executor',
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
        'Runs a command with /bin/sh in the workspace and returns its output and exit code. It has no network, none of the environment variables of the person, and only the files of the workspace and of the programs of the system. Every process that it started ends with it.',
      inputSchema: schema,
      outputSchema: endSchema,
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
    },
    async (given, { mcpReq: { signal } }) => {
      const ending = await commands.run('shell', () => run(given, signal));
      const { code, signal: exitSignal, ended, stdout, stderr, left } = ending;
      return {
        content: [{ type: 'text', text: resultText(ending) }],
        structuredContent: {
          exit_code: code,
          signal: exitSignal,
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
