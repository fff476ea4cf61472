/**
 * Stand-ins for terminal agents: executables that follow the contracts of docs/reference/wake-targets.md. They store sessions as
 * files below HOME, record their calls, and misbehave on request.
 */
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readProc, sendSignal } from '../../../../src/kit/process/process-info.ts';

/** One recorded call of a stand-in. */
export type Call = {
  name: string;
  pid: number;
  argv: string[];
  stdin: string | undefined;
  cwd: string;
  env: Record<string, string>;
};

/**
 * A stand-in's behaviour instead of its work; `text` and `code` by mode. A mode ends after `times` calls, and stays
 * without it.
 */
export type Mode = { mode: string; text?: string; code?: number; times?: number };

const CALLS = 'calls.jsonl';
const MODE = 'mode.json';

/** Makes an executable in a folder that is then put on a PATH. */
export function installAgent(folder: string, name: 'claude' | 'codex' | 'gemini' | 'plain'): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  const script = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  writeFileSync(path, `#!${process.execPath}\nimport(${JSON.stringify(script)});\n`);
  chmodSync(path, 0o755);
  return path;
}

/** The calls with this HOME, in order. */
export function callsIn(home: string): Call[] {
  const path = join(home, CALLS);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Call);
}

/** Ends the stand-ins with this HOME: they continue when their router stops. Another process may have their pid by now. */
export function endAgents(home: string): void {
  for (const { pid } of callsIn(home))
    if (readProc(`${pid}/environ`)?.split('\0').includes(`HOME=${home}`)) sendSignal(pid, 'SIGKILL');
}

/** Sets the behaviour of the stand-ins with this HOME from now on; without an argument, the normal one. */
export function behave(home: string, mode?: Mode): void {
  writeFileSync(join(home, MODE), JSON.stringify(mode ?? { mode: 'well' }));
}

// The code below runs inside the stand-ins.

const home = () => process.env.HOME ?? '/';

/** Records the call. Its mode has been read by then: a reader of the call may end the program. */
export function noteCall(name: string, stdin?: string): void {
  const env = Object.fromEntries(Object.entries(process.env).map(([key, value]) => [key, value ?? '']));
  const call: Call = { name, pid: process.pid, argv: process.argv.slice(2), stdin, cwd: process.cwd(), env };
  // In the sandbox only the state folder of the real agent is writable.
  const state = join(home(), `.${name}`);
  mkdirSync(state, { recursive: true });
  for (const folder of [state, home()]) appendFileSync(join(folder, CALLS), `${JSON.stringify(call)}\n`);
}

export function readStdin(): string {
  return readFileSync(0, 'utf8');
}

export function takeMode(): Mode {
  const path = join(home(), MODE);
  const mode: Mode = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { mode: 'well' };
  if (mode.times !== undefined) {
    const left = mode.times - 1;
    writeFileSync(path, JSON.stringify(left > 0 ? { ...mode, times: left } : { mode: 'well' }));
  }
  return mode;
}

/** The file of a session: below HOME, and below its folder. */
export function sessionFile(agent: string, session: string): string {
  const folder = join(home(), `.${agent}`, process.cwd().replaceAll('/', '-'));
  mkdirSync(folder, { recursive: true });
  return join(folder, `${session}.jsonl`);
}

/** The misbehaviour that all of them share; `true` when the stand-in is to do nothing else. */
export async function misbehave({ mode, text = '', code = 0 }: Mode): Promise<boolean> {
  switch (mode) {
    case 'hang':
      setInterval(() => {}, 1000);
      return true;
    case 'hang-hard':
      process.on('SIGTERM', () => {});
      setInterval(() => {}, 1000);
      return true;
    case 'garbage':
      process.stdout.write(Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a, 0x7b, 0x22, 0xc3, 0x28]));
      process.exitCode = code;
      return true;
    case 'says':
      process.stderr.write(text);
      process.exitCode = code;
      return true;
    case 'flood':
      await flood();
      return false;
    case 'wait':
      // Waits until the file exists: a long turn.
      while (!existsSync(join(home(), 'go'))) await new Promise((resolve) => setTimeout(resolve, 10));
      return false;
    default:
      return false;
  }
}

/** 100 MB of output before the answer. */
async function flood(): Promise<void> {
  const chunk = Buffer.alloc(1024 * 1024, 'noise of a long night ');
  chunk[chunk.length - 1] = 0x0a;
  for (let written = 0; written < 100; written++) {
    await new Promise<void>((resolve, reject) => {
      process.stdout.write(chunk, (error) => (error ? reject(error) : resolve()));
    });
  }
}
