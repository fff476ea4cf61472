/** Runs another program and returns its output. */
import { execFile, spawn } from 'node:child_process';
import { constants } from 'node:os';

export type Answer = {
  /** Its exit status; `undefined` when it was ended or does not exist. */
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether the program does not exist. */
  readonly missing: boolean;
};

type Asking = {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Time limit; 20 seconds by default. */
  readonly limitMs?: number;
  readonly cwd?: string;
};

const MOST_BYTES = 4 * 1024 * 1024;

/** Never throws: errors are in the answer. */
export function ask(
  program: string,
  words: readonly string[],
  { env, limitMs = 20_000, cwd }: Asking = {},
): Promise<Answer> {
  return new Promise((resolve) => {
    const options = { timeout: limitMs, maxBuffer: MOST_BYTES, killSignal: 'SIGKILL', encoding: 'utf8' } as const;
    execFile(
      program,
      words,
      { ...options, ...(env && { env }), ...(cwd !== undefined && { cwd }) },
      (error, stdout, stderr) => {
        const { code } = error ?? { code: 0 };
        const status = typeof code === 'number' ? code : undefined;
        resolve({ status, stdout, stderr, missing: (code as unknown) === 'ENOENT' });
      },
    );
  });
}

/** Runs a program with our streams. @returns its exit status, as in a shell */
export function handOver(program: string, words: readonly string[], env: Asking['env']): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { stdio: 'inherit', ...(env && { env }) });
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal!]));
  });
}
