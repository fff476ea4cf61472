/** Terminal agents: a program that runs once for each turn. */
import type { ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { exitOf } from '../../kit/process/bubblewrap.ts';
import { SPAWN_ID_VARIABLE } from '../../kit/process/inherited-variables.ts';
import type { CommandMachine } from '../../router/machines/machine.ts';
import { secretsOf } from '../../router/providers/child-environment.ts';
import type { Isolation } from '../../router/providers/isolation.ts';
import { killProcess, ProcessGroup } from '../../router/providers/process-group.ts';
import { birthOf, findByVariable, isRunning } from '../../router/providers/process-table.ts';
import { startCommand } from '../../router/providers/start-command.ts';
import { type Agent, type Attempt, ProcessStops, TurnEnd } from '../../turns/agent.ts';
import type { Outcome, Turn } from '../../turns/turn.ts';
import { ReveilleError, systemCodeOf, thrownText } from '../../wire/errors.ts';
import { utf8Bytes } from '../../wire/text.ts';
import type { OpenSessions } from '../channel/open-sessions.ts';
import type { AgentMaker, TerminalPreset } from '../preset.ts';
import { termArguments } from '../terms.ts';
import { checkFolder, type Program, programOf, statePaths } from './program.ts';
import type { Exit } from './readers.ts';
import { RunFiles } from './run-files.ts';
import { verdictOf } from './verdict.ts';

type TerminalOptions = {
  /** The folder for the files of running turns. */
  runFolder: string;
  /** The environment from which programs get the allow-listed variables. */
  environment: Readonly<Record<string, string | undefined>>;
  /** The sandbox of a program. */
  isolation: Isolation;
  openSessions: OpenSessions;
  clock: Clock;
  log: Logger;
  /** How long a program may take to end after SIGTERM; by default 8 seconds. */
  graceMs?: number;
};

const DEFAULT_TIMEOUT_SECONDS = 3600;
/** How often the output of a running program is checked, milliseconds. */
const CHECK_MS = 250;
/** A program that writes more than this is ended: it would fill the disk. */
const MOST_OUTPUT_MIB = 256;

class TerminalAgent implements Agent {
  readonly outlivesProcess = false;
  readonly #options: TerminalOptions;
  readonly #preset: TerminalPreset;
  readonly #machine: CommandMachine;

  constructor(options: TerminalOptions, preset: TerminalPreset, machine: CommandMachine) {
    this.#options = options;
    this.#preset = preset;
    this.#machine = machine;
  }

  async check(prompt: string, cwd: string | undefined): Promise<void> {
    await this.#program('');
    if (cwd !== undefined) await checkFolder(cwd);
    // Checked with any session: text that cannot be an argument cannot be one in either form.
    const line = commandLine(this.#preset, prompt, undefined, []);
    if (!('impossible' in line)) return;
    const message = `the preset ${this.#preset.name} passes the message as an argument, and this one ${line.impossible}`;
    throw new ReveilleError('invalid_request', message);
  }

  async run(attempt: Attempt): Promise<Outcome> {
    const { turn, prompt, session, cwd = this.#options.environment.HOME, spawnId, signal } = attempt;
    const { spec } = this.#machine;
    let isBegun = false;
    const begin = async () => {
      if (!isBegun) await attempt.begin();
      isBegun = true;
    };
    if (this.#canTake(attempt)) {
      try {
        await begin();
        const isTaken = await this.#options.openSessions.offer(turn.id, { session: session!, text: prompt }, signal);
        if (isTaken) return taken(session!);
      } catch (thrown) {
        return notStarted(thrown);
      }
    }
    const more = [...(spec.args ?? []), ...termArguments(this.#preset, turn.terms)];
    const line = commandLine(this.#preset, prompt, session, more);
    if ('impossible' in line) return { status: 'failed', error: `the message ${line.impossible}` };
    const files = new RunFiles(this.#options.runFolder, turn.id);
    const { isolation } = this.#options;
    let child: ChildProcess;
    let isWrapped = false;
    try {
      const { path, env } = await this.#program(spawnId, turn.conversationId);
      if (cwd !== undefined) await checkFolder(cwd);
      await files.prepare(line.input);
      if (signal.aborted) return notStarted(signal.reason);
      const { input, output, errors } = files.openAll(line.input !== undefined);
      try {
        await begin();
        const command = [path, ...line.arguments];
        const isolated = await isolation.isolate({
          ...{ userId: this.#machine.userId, command, cwd, env, sandbox: spec.sandbox },
          isCommand: turn.terms?.run !== undefined,
          // The prompt, or the command of an alarm, may contain such names, and they do not grant the program access.
          specArgs: turn.terms?.run === undefined ? [path, ...(spec.args ?? [])] : [],
          writable: [...statePaths(this.#preset.state, env), ...(spec.writable ?? []).map((one) => `${one}/`)],
          readOnly: statePaths(this.#preset.read_only, env),
        });
        isWrapped = isolated.isWrapped;
        child = await startCommand(isolated.command, { cwd: isolated.cwd, env: isolated.env, input, output, errors });
      } finally {
        for (const descriptor of [input, output, errors]) if (descriptor !== undefined) closeSync(descriptor);
      }
    } catch (thrown) {
      return notStarted(thrown);
    }
    const exited = new Promise<Exit>((resolve) => {
      child.once('exit', (code, by) => resolve(exitOf(code, by, isWrapped)));
    });
    const group = ProcessGroup.started(child, this.#options.clock, isWrapped);
    try {
      const birth = birthOf(group.pid);
      // A process that has ended already has no birth; its exit event follows.
      if (birth !== undefined) attempt.recordProcess(group.pid, birth);
    } catch (err) {
      this.#options.log.error({ err, turn_id: turn.id }, 'a program could not be recorded and was ended');
      await group.end(0);
      return {
        status: 'unknown',
        error: 'the program could not be recorded, and was ended right after its start',
      };
    }
    this.#options.log.info({ user_id: turn.userId, turn_id: turn.id, pid: group.pid }, 'a program executes a turn');
    return await this.#attend(group, () => exited, files, attempt);
  }

  async resume(attempt: Attempt): Promise<Outcome> {
    const { turn, spawnId, session } = attempt;
    const files = new RunFiles(this.#options.runFolder, turn.id);
    const { born } = turn;
    const offered = this.#options.openSessions.settle(turn.id);
    if (offered === 'taken' && session !== undefined) return taken(session);
    if (offered === 'withdrawn') return { status: 'not_started', why: 'the open session did not take it' };
    const marked = findByVariable(SPAWN_ID_VARIABLE).get(spawnId) ?? [];
    const recorded = born && isRunning(born.pid, born.birth) ? born : undefined;
    const leader = recorded ?? marked.find(({ leadsGroup }) => leadsGroup);
    if (leader) {
      const group = ProcessGroup.adopted(leader, this.#options.clock);
      this.#options.log.info({ user_id: turn.userId, turn_id: turn.id, pid: group.pid }, 'adopted a program');
      return await this.#attend(group, async () => undefined, files, attempt);
    }
    // A remaining process of the program would disturb the conversation's next turn.
    for (const { pid } of marked) killProcess(pid);
    return verdictOf(this.#preset, {
      output: await files.read(),
      exit: undefined,
      ended: undefined,
      ...this.#about(attempt),
    });
  }

  settled(turn: Turn): Promise<void> {
    this.#options.openSessions.remove(turn.id);
    return new RunFiles(this.#options.runFolder, turn.id).remove();
  }

  /** Whether an open session can take the turn. A turn with limits cannot go there: the router could not enforce them. */
  #canTake({ turn, session }: Attempt): boolean {
    const { openSessions } = this.#options;
    if (this.#preset.channel !== true || session === undefined || turn.terms !== undefined) return false;
    return openSessions.has(session) && !openSessions.wasWithdrawn(turn.id);
  }

  #program(spawnId: string, conversationId?: string): Promise<Program> {
    return programOf(this.#preset, this.#machine.spec, this.#options.environment, spawnId, conversationId);
  }

  #about({ session }: Attempt): { session: string | undefined; secrets: readonly string[] } {
    return { session, secrets: secretsOf(this.#options.environment, this.#machine.spec.env ?? {}) };
  }

  /**
   * Waits for the end of a program, by itself or by the router, and reads its outcome. When the router stops, the program
   * continues, and the next router adopts it.
   */
  async #attend(group: ProcessGroup, exit: () => Promise<Exit>, files: RunFiles, attempt: Attempt): Promise<Outcome> {
    const { clock, log, graceMs = 8000 } = this.#options;
    const over = new AbortController();
    const limitSeconds = this.#machine.spec.timeout_seconds ?? this.#preset.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS;
    const leftMs = attempt.startedAt + limitSeconds * 1000 - clock.now();
    const tooLong = new TurnEnd(`took longer than ${limitSeconds} s and was ended`);
    const cancelLimit = clock.after(Math.max(0, leftMs), () => over.abort(tooLong));
    const left = Promise.withResolvers<'left'>();
    const onEnded = () => {
      if (!(attempt.signal.reason instanceof ProcessStops)) over.abort(attempt.signal.reason);
      // A program that is being ended already would get no SIGKILL without the router.
      else if (!over.signal.aborted) left.resolve('left');
    };
    attempt.signal.addEventListener('abort', onEnded);
    if (attempt.signal.aborted) onEnded();
    const exceeded = new TurnEnd(`wrote more than ${MOST_OUTPUT_MIB} MiB and was ended`);
    const stopWatching = this.#watchOutput(files, () => over.abort(exceeded));
    const end = () => {
      // It may have ended by itself at the same moment.
      if (group.ending === undefined)
        group
          .end(graceMs)
          .catch((err: unknown) => log.error({ err, turn_id: attempt.turn.id }, 'a program could not be ended'));
    };
    over.signal.addEventListener('abort', end);
    if (over.signal.aborted) end();
    const isLeft = (await Promise.race([group.ended, left.promise])) === 'left';
    cancelLimit();
    stopWatching();
    attempt.signal.removeEventListener('abort', onEnded);
    if (isLeft) {
      group.close();
      return { status: 'left' };
    }
    const ended = over.signal.reason instanceof Error ? over.signal.reason.message : undefined;
    const output = await files.read();
    return verdictOf(this.#preset, { output, exit: await exit(), ended, ...this.#about(attempt) });
  }

  /** Checks how much a running program writes. */
  #watchOutput(files: RunFiles, onExceeded: () => void): () => void {
    const { clock, log } = this.#options;
    let stopped = false;
    let cancel = () => {};
    const look = () => {
      cancel = clock.after(CHECK_MS, () => {
        files.written().then(
          (bytes) => {
            if (stopped) return;
            if (bytes > MOST_OUTPUT_MIB * 1024 * 1024) onExceeded();
            look();
          },
          (err: unknown) => log.warn({ err }, 'the output of a program could not be checked'),
        );
      });
    };
    look();
    return () => {
      stopped = true;
      cancel();
    };
  }
}

function taken(session: string): Outcome {
  return { status: 'done', session, reply: 'An open session has taken the wake and executes it.' };
}

function notStarted(thrown: unknown): Outcome {
  const cause = thrown instanceof ReveilleError ? thrown.cause : undefined;
  const why = thrownText(thrown);
  const tooBig = systemCodeOf(cause) === 'E2BIG';
  return tooBig ? { status: 'failed', error: why } : { status: 'not_started', why };
}

export function terminalAgent(options: TerminalOptions): AgentMaker<TerminalPreset, Agent> {
  return (preset, machine) => new TerminalAgent(options, preset, machine);
}

/** The longest argument on Linux (MAX_ARG_STRLEN, 32 pages, including the NUL); other systems allow more. */
const LONGEST_ARGUMENT_BYTES = 32 * 4096 - 1;

/** `input`: the program's standard input; `undefined` when the prompt is an argument. */
type CommandLine = { arguments: string[]; input: string | undefined };

/** Whether text can be an argument. The kernel ends it at a NUL, and a program parses a leading dash as an option. */
function fitsArgument(prompt: string): boolean {
  return !prompt.startsWith('-') && !prompt.includes('\0') && utf8Bytes(prompt) <= LONGEST_ARGUMENT_BYTES;
}

function reasonUnfit(prompt: string): string {
  if (prompt.startsWith('-')) return 'begins with a dash, which the program would parse as an option';
  if (prompt.includes('\0')) return 'contains a NUL character, which an argument cannot';
  return `has ${utf8Bytes(prompt)} bytes with its payload, and an argument holds ${LONGEST_ARGUMENT_BYTES} at most`;
}

function filled(
  template: readonly string[],
  prompt: string,
  session: string | undefined,
  more: readonly string[],
): string[] {
  return template.flatMap((entry) => {
    if (entry === '<args>') return more;
    if (entry === '<message>') return [prompt];
    return [session === undefined ? entry : entry.replaceAll('<session>', () => session)];
  });
}

/**
 * @param session the conversation to continue; without it a new one begins
 * @param more the machine's own arguments, and those for the terms of the turn
 * @returns the command, or a phrase that says why the prompt cannot be passed
 */
export function commandLine(
  preset: TerminalPreset,
  prompt: string,
  session: string | undefined,
  more: readonly string[],
): CommandLine | { impossible: string } {
  // A session's id comes from the output of a program. It is a separate argument, before the message.
  if (session?.startsWith('-'))
    return { impossible: 'is for a session whose id begins with a dash, which the program would parse as an option' };
  const { argument, stdin } = (session === undefined ? undefined : preset.resume) ?? preset.new;
  // All users of the computer can see the arguments of a process, but not its input.
  if (stdin) return { arguments: filled(stdin, prompt, session, more), input: prompt };
  if (argument && fitsArgument(prompt)) {
    return { arguments: filled(argument, prompt, session, more), input: undefined };
  }
  return { impossible: reasonUnfit(prompt) };
}
