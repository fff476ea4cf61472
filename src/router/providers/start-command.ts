/** Starts a program without a shell, with readable errors. */
import { type ChildProcess, spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { ReveilleError } from '../../wire/errors.ts';

/** Why a program cannot work in this folder; `undefined` when it can. */
export async function folderProblem(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return undefined;
  return `the machine's folder ${JSON.stringify(path)} is not an existing folder; register another with --dir`;
}

/** The environment of a program. */
export type StartOptions = {
  cwd: string | undefined;
  env: Record<string, string>;
  output: number;
  /** The descriptor for its standard error; by default `output`. */
  errors?: number;
  /** The user it runs as; by default the router's. The router's groups are dropped. */
  user?: { uid: number; gid: number } | undefined;
  /** The descriptor for its standard input; empty without it. */
  input?: number | undefined;
  /**
   * Whether it gets a pipe to the router as its descriptor {@link CHANNEL}; the router's end is `stdio[CHANNEL]` of the
   * child.
   */
  channel?: boolean;
};

export const CHANNEL = 3;

/**
 * Starts a command as the leader of its own process group; resolves when it has a pid.
 *
 * @param command the program and its arguments, passed to the kernel unchanged
 * @throws ReveilleError `unavailable` with the reason why it could not be started
 */
export async function startCommand(
  command: readonly string[],
  { cwd, env, output, errors = output, input, user, channel = false }: StartOptions,
): Promise<ChildProcess> {
  const problem = await folderProblem(cwd);
  if (problem !== undefined) throw new ReveilleError('unavailable', problem);
  const [file, ...args] = command;
  const refused = (cause: unknown) => {
    const why = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    const hint = why === 'ENOENT' ? ' (there is no such program on its PATH)' : '';
    const message = `the command ${JSON.stringify(file)} could not be started: ${why}${hint}`;
    return new ReveilleError('unavailable', message, { cause });
  };
  let child: ChildProcess;
  try {
    child = spawn(file!, args, {
      ...(cwd === undefined ? {} : { cwd }),
      env,
      stdio: [input ?? 'ignore', output, errors, ...(channel ? ['pipe' as const] : [])],
      detached: true,
      ...user,
      shell: false,
    });
  } catch (thrown) {
    throw refused(thrown);
  }
  if (child.pid !== undefined) return child;
  throw refused(await new Promise((resolve) => child.once('error', resolve)));
}
