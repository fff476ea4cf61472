/** Runs `reveille` with arguments: in the process of the test, or as a separate process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { CliProcess } from '../../src/cli/cli-process.ts';
import { PROGRAM } from '../../src/cli/home/package-root.ts';
import { runCli } from '../../src/cli/run.ts';
import { atEnd, type Owner } from './temporary.ts';

export type Outcome = { status: number | null; stdout: string; stderr: string };

/** The zone of every child process, independent of the computer's. */
const ZONE = 'Europe/Berlin';

export type RunOptions = {
  env?: Readonly<Record<string, string>>;
  /** Standard input of the command; empty by default. */
  input?: string | Buffer;
  /** Whether standard input is a terminal; not available in a separate process. */
  isTerminal?: boolean;
  cwd?: string;
};

function environmentOf(home: string, { env = {} }: RunOptions): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: home, TZ: ZONE, REVEILLE_HOME: home, ...env };
}

function childOf(home: string, args: readonly string[], options: RunOptions): ChildProcess {
  const { cwd } = options;
  return spawn(process.execPath, [PROGRAM, ...args], {
    env: environmentOf(home, options),
    ...(cwd === undefined ? {} : { cwd }),
    stdio: 'pipe',
  });
}

function collect(child: Pick<ChildProcess, 'stdout' | 'stderr'>): Outcome {
  const outcome: Outcome = { status: null, stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    outcome.stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    outcome.stderr += text;
  });
  return outcome;
}

/**
 * Runs `reveille` with these arguments below a home folder, and resolves when it has ended. It runs in this process, at
 * a tenth of the cost of a process, unless it has a folder or reads a file as input (`-`). Daemons, and commands that
 * end with `process.exit`, need {@link reveilleProcess}.
 */
export async function reveille(home: string, args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const readsDescriptor = options.input !== undefined && args.includes('-');
  if (readsDescriptor || options.cwd !== undefined) return reveilleProcess(home, args, options);
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const given = {
    env: environmentOf(home, options),
    stdin: Object.assign(stdin.end(options.input ?? ''), { isTTY: options.isTerminal === true }),
    ...{ stdout, stderr },
    cwd: () => process.cwd(),
  } as unknown as CliProcess;
  const outcome = collect(given);
  outcome.status = await runCli(args, given);
  await Promise.all([stdout, stderr].map((stream) => finished(stream.end())));
  return outcome;
}

/** Runs `reveille` as a process with these arguments below a home folder, and resolves when it has ended. */
export async function reveilleProcess(
  home: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Outcome> {
  const child = childOf(home, args, options);
  const outcome = collect(child);
  // A command that fails early does not read its input.
  child.stdin?.on('error', () => {}).end(options.input ?? '');
  await new Promise<void>((resolve) => child.once('close', () => resolve()));
  outcome.status = child.exitCode;
  return outcome;
}

/** A running command: its output so far, and a function that ends it. */
export type RunningCommand = {
  outcome: Outcome;
  /** Resolves when `done` holds for the output, which is checked at each new piece. */
  until(done: (outcome: Outcome) => boolean): Promise<void>;
  /** Writes a line to its standard input. */
  type(line: string): void;
  end(signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): Promise<Outcome>;
  /** Resolves when it has ended by itself. */
  ended: Promise<void>;
};

export function startReveille(
  owner: Owner,
  home: string,
  args: readonly string[],
  options: Omit<RunOptions, 'input'> = {},
): RunningCommand {
  const child = childOf(home, args, options);
  const outcome = collect(child);
  const ended = new Promise<void>((resolve) =>
    child.once('close', () => {
      outcome.status = child.exitCode;
      resolve();
    }),
  );
  atEnd(owner, async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    outcome,
    ended,
    until: (done) =>
      new Promise((resolve, reject) => {
        const check = () => done(outcome) && resolve();
        child.stdout?.on('data', check);
        child.stderr?.on('data', check);
        child.once('close', () => reject(new Error(`it ended too early: ${JSON.stringify(outcome)}`)));
        check();
      }),
    type: (line) => void child.stdin?.write(`${line}\n`),
    async end(signal) {
      child.kill(signal);
      await ended;
      return outcome;
    },
  };
}
