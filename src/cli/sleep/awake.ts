/**
 * Keeps the computer awake with a program of the system, run as a child that reads from us. When this process ends, the
 * child reads the end of its input, ends, and releases the computer. It also ends by itself after a while.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Settings } from '../../wire/settings.ts';

/** Limit of one request to stay awake. */
export const HOLD_LIMIT_SECONDS = 30 * 60;
const SAYS = 'held';
/** A child that does not end in this time is killed. */
const END_MS = 3000;
/** A child without output for this long has failed. */
const ANSWER_MS = 5000;
/** Delay before a rejected request is repeated. */
const AGAIN_MS = 30_000;

/** What logind is asked to inhibit, from most to least: some need rights of a user at the seat. */
const LOGIND_STEPS = ['sleep:idle:handle-lid-switch', 'sleep:idle', 'idle'] as const;
const LOOSE = [
  undefined,
  'closing the lid still puts the computer to sleep: logind asks for more rights',
  'only idling is kept from putting the computer to sleep: logind asks for more rights',
] as const;

/** Reads until its input ends or the limit. See SetThreadExecutionState: ES_CONTINUOUS and ES_SYSTEM_REQUIRED. */
const POWERSHELL = `$ErrorActionPreference = 'Stop'
$held = Add-Type -Name Power -Namespace Reveille -PassThru -MemberDefinition '[DllImport("kernel32.dll")] public static extern uint SetThreadExecutionState(uint flags);'
if ($held::SetThreadExecutionState([uint32]'0x80000001') -eq 0) { exit 1 }
[Console]::Out.WriteLine('${SAYS}')
[void][Console]::In.ReadLineAsync().Wait(${HOLD_LIMIT_SECONDS * 1000})`;

type Way = { readonly command: readonly [string, ...string[]]; readonly loose?: string | undefined };

/**
 * Programs that keep a computer awake, best first. Each prints a line once it does, or is trusted.
 *
 * @param pid the process to watch, where a program needs it
 */
export function waysToHold(platform: NodeJS.Platform, pid: number): readonly Way[] {
  if (platform === 'darwin')
    return [{ command: ['caffeinate', '-i', '-s', '-t', String(HOLD_LIMIT_SECONDS), '-w', String(pid)] }];
  if (platform === 'win32')
    return [{ command: ['powershell', '-NoProfile', '-NonInteractive', '-Command', POWERSHELL] }];
  if (platform !== 'linux') return [];
  return LOGIND_STEPS.map((what, at) => ({
    command: [
      ...(['systemd-inhibit', `--what=${what}`, '--who=Reveille', '--why=An alarm fires', '--mode=block'] as const),
      ...['sh', '-c', `echo ${SAYS}; exec timeout ${HOLD_LIMIT_SECONDS} cat`],
    ],
    loose: LOOSE[at],
  }));
}

const SILENT = `the program for it printed nothing within ${ANSWER_MS / 1000} s`;

export class Awake {
  readonly #environment: Settings;
  readonly #clock: Clock;
  readonly #platform: NodeJS.Platform;
  #child: ChildProcess | undefined;
  #asked: Promise<void> | undefined;
  /** Monotonic: no request before. */
  #notBefore = 0;

  /** Why the computer is not kept awake, or not fully, as far as tried. */
  loose: string | undefined;

  constructor(environment: Settings, clock: Clock, platform: NodeJS.Platform = process.platform) {
    this.#environment = environment;
    this.#clock = clock;
    this.#platform = platform;
  }

  get isHeld(): boolean {
    return this.#child !== undefined;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when the computer is kept awake, or every way failed: then {@link loose} has the reason. */
  hold(): Promise<void> {
    this.#asked ??= this.#hold().finally(() => {
      this.#asked = undefined;
    });
    return this.#asked;
  }

  async release(): Promise<void> {
    await this.#asked;
    const child = this.#child;
    this.#child = undefined;
    if (!child) return;
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.stdin?.destroy();
    // caffeinate reads nothing; systemd-inhibit ends with its child.
    if (this.#platform !== 'linux') child.kill();
    const over = new AbortController();
    await Promise.race([ended, wait(this.#clock, END_MS, over.signal).then(() => child.kill('SIGKILL'))]);
    over.abort();
  }

  async #hold(): Promise<void> {
    if (this.#child || this.#clock.monotonic() < this.#notBefore) return;
    let why = `Reveille supports no program for it on ${this.#platform}`;
    for (const { command, loose } of waysToHold(this.#platform, process.pid)) {
      const begun = await this.#begin(command);
      if (begun === undefined) {
        this.loose = loose;
        return;
      }
      why = begun;
      if (begun === SILENT) break;
    }
    this.#notBefore = this.#clock.monotonic() + AGAIN_MS;
    this.loose = `the computer is not kept awake: ${why}`;
  }

  /** @returns the reason of a failure; `undefined` on success */
  #begin([program, ...words]: Way['command']): Promise<string | undefined> {
    const child = spawn(program, words, { env: this.#environment, stdio: ['pipe', 'pipe', 'pipe'] });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-400);
    });
    child.stdin.on('error', () => {});
    return new Promise((done) => {
      const resolve = (why: string | undefined) => {
        cancel();
        done(why);
      };
      const cancel = this.#clock.after(ANSWER_MS, () => {
        child.kill('SIGKILL');
        done(SILENT);
      });
      const holds = () => {
        this.#child = child;
        resolve(undefined);
      };
      child.once('error', (error) => resolve(error.message.replace(/^spawn /, '')));
      if (this.#platform === 'darwin') child.once('spawn', holds);
      else child.stdout.once('data', holds);
      child.once('close', (code) => {
        if (this.#child === child) this.#child = undefined;
        resolve(said.trim().split('\n').at(-1) || `${program} ended with ${code}`);
      });
    });
  }
}
