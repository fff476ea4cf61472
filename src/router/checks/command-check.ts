/** A check by a command: it runs in a closed sandbox, and its exit code or last line decides. */
import type { Clock } from '../../kit/clock/clock.ts';
import { type ProgramEnd, runBounded } from '../../kit/process/bounded-program.ts';
import { exitOf } from '../../kit/process/bubblewrap.ts';
import { inheritedVariables, isWithheld } from '../../kit/process/inherited-variables.ts';
import { isProgram } from '../../kit/process/tools.ts';
import { type Check, COMMAND_SECONDS, OUTPUT_MAX_BYTES, VALUE_MAX_BYTES } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isObject } from '../../wire/json.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { utf8Bytes } from '../../wire/text.ts';
import type { Wake } from '../../wire/wake.ts';
import { folderOfCommands, type Machine } from '../machines/machine.ts';
import { resolvedVariable } from '../providers/child-environment.ts';
import type { Isolation } from '../providers/isolation.ts';
import { folderProblem } from '../providers/start-command.ts';
import { type Finding, NotAllowed, outputOf, storedValue, Undecided } from './finding.ts';

type CommandCheck = NonNullable<Check['command']>;

export type CommandParts = {
  isolation: Isolation;
  /** The environment from which the search path, and variables of machines that refer to it, are taken. */
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
};

const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';
/** Processes and threads of one sandbox. Linux counts only those of the sandbox, and none of root. */
const PROCESSES_MAX = 256;
/** Exit codes of the wrapper: 1 of the command becomes another one, because a sandbox that cannot start exits with 1. */
const SAID_NO = 101;
const MISSING = 127;
/** bash and dash or busybox name the option for the limit differently. */
const WRAPPER = `ulimit -u ${PROCESSES_MAX} 2>/dev/null || ulimit -p ${PROCESSES_MAX} 2>/dev/null
"$@"
code=$?
case $code in 1) exit ${SAID_NO};; ${SAID_NO}) exit 102;; *) exit $code;; esac`;
const FIND = 'command -v -- "$1" >/dev/null || exit 127';

const FIND_MS = 10_000;

const ENDED = {
  timeout: 'it was ended at its time limit',
  flood: 'it was ended because it wrote too much',
  cancelled: 'it was ended because the router stops',
};

/** The folder of a machine's commands. @throws NotAllowed when commands cannot run for it */
function folderFor(machine: Machine): string {
  const { provider, spec, userId } = machine;
  if (provider !== 'process' && provider !== 'command')
    throw new NotAllowed(`commands need a machine of this computer; that of ${userId} has provider ${provider}`);
  if ('run_as' in spec && spec.run_as !== undefined)
    throw new NotAllowed(`no command is run beside a machine with --run-as; check an address or a path instead`);
  const folder = folderOfCommands(machine);
  if (folder === undefined)
    throw new NotAllowed(`the machine of ${userId} has no folder for commands; register it with --dir`);
  return folder;
}

/** The variables of a command: none of the router or of the agent, except the ones named by the check. */
function environmentOf(
  { environment }: CommandParts,
  machine: Machine,
  folder: string,
  names: readonly string[],
): Record<string, string> {
  const own: Readonly<Record<string, string>> = ('env' in machine.spec && machine.spec.env) || {};
  const named = names.map((name) => {
    const value = isWithheld(name) || !Object.hasOwn(own, name) ? undefined : own[name];
    if (value === undefined) throw new NotAllowed(`the machine has no variable ${name}, which the check names in env`);
    try {
      return [name, resolvedVariable(name, value, environment)] as const;
    } catch (thrown) {
      throw new Undecided((thrown as Error).message);
    }
  });
  const path = inheritedVariables(environment).PATH || DEFAULT_PATH;
  return { PATH: path, HOME: folder, LANG: 'C.UTF-8', TMPDIR: '/tmp', ...Object.fromEntries(named) };
}

async function runEnclosed(
  parts: CommandParts,
  machine: Machine,
  words: readonly string[],
  { command, variables = {}, timeoutMs, signal }: Enclosed,
): Promise<ProgramEnd> {
  const { isolation, clock } = parts;
  const cwd = folderFor(machine);
  const env = { ...environmentOf(parts, machine, cwd, command.env ?? []), ...variables };
  const { writable } = machine.spec as { writable?: readonly string[] };
  let isolated: Awaited<ReturnType<Isolation['enclose']>>;
  try {
    const network = command.network === true;
    isolated = await isolation.enclose({ userId: machine.userId, command: words, cwd, env, network, writable });
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw new NotAllowed(thrown.message);
  }
  const [program, ...args] = isolated.command as [string, ...string[]];
  const limits = { timeoutMs, keptBytes: OUTPUT_MAX_BYTES, signal };
  const end = await runBounded(clock, { command: [program, ...args], cwd, env: isolated.env, ...limits });
  const exit = exitOf(end.code, end.signal, isolated.isWrapped);
  return 'signal' in exit ? { ...end, code: null, signal: exit.signal } : end;
}

type Enclosed = {
  command: CommandCheck;
  variables?: Readonly<Record<string, string>>;
  timeoutMs: number;
  signal: AbortSignal;
};

/** @throws NotAllowed when its program is missing, or when it cannot be run at all */
export async function findProgram(
  parts: CommandParts,
  machine: Machine,
  command: CommandCheck,
  signal: AbortSignal,
): Promise<void> {
  const [program = ''] = command.argv;
  const words = ['/bin/sh', '-c', FIND, 'sh', program];
  const { code } = await runEnclosed(parts, machine, words, { command, timeoutMs: FIND_MS, signal });
  if (code === MISSING) throw new NotAllowed(missing(program));
}

/**
 * Requires the program of an alarm's command. Unlike a check, it may run without a sandbox.
 *
 * @throws NotAllowed when its program or its folder is missing
 */
export async function requireProgram({ environment }: CommandParts, machine: Machine, program: string): Promise<void> {
  const folder = folderFor(machine);
  const problem = await folderProblem(folder);
  if (problem !== undefined) throw new NotAllowed(problem);
  if (isProgram(program, inheritedVariables(environment).PATH || DEFAULT_PATH, folder)) return;
  const name = JSON.stringify(program.slice(0, 100));
  throw new NotAllowed(
    program.includes('/')
      ? `there is no program ${name} in ${folder}, the folder in which it would run; name an executable file`
      : `there is no program ${name} on the PATH of the router; install it, or name its path`,
  );
}

const missing = (program: string) =>
  `there is no program ${JSON.stringify(program.slice(0, 100))} in the sandbox of commands; install it for the system, or put it into the folder of the machine and name it with its path`;

/** The last line with text. */
const lastLineOf = (text: string) => text.trimEnd().split('\n').at(-1)!.trim();

function saysNo(line: string): boolean {
  if (line === 'NO_WORK') return true;
  if (!line.startsWith('{') || !line.includes('wakeAgent')) return false;
  try {
    const read: unknown = JSON.parse(line);
    return isObject(read) && read.wakeAgent === false;
  } catch {
    return false;
  }
}

/** The value of a command is its last line: what it gets the next time. */
function valueOfLine(line: string): { value?: string } {
  if (line === '') return {};
  const clean = line.toWellFormed().replaceAll(/\p{Cc}/gu, ' ');
  return { value: utf8Bytes(clean) <= VALUE_MAX_BYTES ? clean : storedValue(clean) };
}

/** @throws Undecided when it neither says yes nor no, NotAllowed when it may not or cannot run */
export async function lookByCommand(
  parts: CommandParts,
  machine: Machine,
  command: CommandCheck,
  wake: Wake,
  signal: AbortSignal,
): Promise<Finding> {
  const { argv, timeout_seconds = COMMAND_SECONDS } = command;
  const { value, woken_at } = wake.toCheck?.state ?? {};
  const variables = {
    ...(wake.alarm_id !== undefined && { REVEILLE_ALARM_ID: wake.alarm_id }),
    REVEILLE_DUE_AT: formatInstant(wake.scheduled_for),
    ...(woken_at !== undefined && { REVEILLE_LAST_WAKE_AT: formatInstant(woken_at) }),
    ...(value !== undefined && { REVEILLE_LAST_VALUE: value }),
  };
  const about = { command, variables, timeoutMs: timeout_seconds * 1000, signal };
  const end = await runEnclosed(parts, machine, ['/bin/sh', '-c', WRAPPER, 'sh', ...argv], about);
  const output = outputOf([end.stdout, end.stderr].filter((text) => text.trim() !== '').join('\n'));
  const shown = output === undefined ? {} : { output };
  if (end.ended !== undefined) throw new Undecided(`the command has not decided: ${ENDED[end.ended]}`, output);
  if (end.signal !== null) throw new Undecided(`the command was ended by ${end.signal}`, output);
  const line = lastLineOf(end.stdout);
  if (saysNo(line)) return { yes: false, reason: `the command said ${line === 'NO_WORK' ? line : 'wakeAgent: false'}` };
  switch (end.code) {
    case 0:
      return { yes: true, reason: 'the command ended with exit code 0', ...valueOfLine(line), ...shown };
    case SAID_NO:
      return { yes: false, reason: 'the command ended with exit code 1' };
    case MISSING:
      throw new Undecided(`exit code ${MISSING}: ${missing(argv[0]!)}`, output);
    case 1:
      throw new Undecided('the sandbox could not be started', output);
    default:
      throw new Undecided(`the command ended with exit code ${end.code === 102 ? SAID_NO : end.code}`, output);
  }
}
