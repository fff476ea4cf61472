/**
 * Turns that are a command instead of an agent (`run`): the program of a terminal agent, without a model, without the
 * agent's variables, and with the alarm's message on standard input. Its output is the reply. Pure.
 */
import { isAbsolute, join } from 'node:path';
import { type CommandMachine, folderOfCommands, type Machine } from '../router/machines/machine.ts';
import type { Run } from '../wire/conditions.ts';
import type { TerminalPreset } from './preset.ts';

/** The preset of such turns in the store; no file of a preset has this name. */
export const COMMAND_PRESET = 'run';

/** A longer command is ended, unless it names its own limit. */
const DEFAULT_SECONDS = 300;

/** A command for a machine: the preset and the machine that a terminal agent runs it with, or why there is none. */
export function commandTurn(
  machine: Machine,
  { argv, timeout_seconds = DEFAULT_SECONDS }: Run,
): { preset: TerminalPreset; machine: CommandMachine } | { problem: string } {
  const { provider, spec, ...base } = machine;
  const place = `the machine of ${machine.userId}`;
  if (provider !== 'command' && provider !== 'process')
    return { problem: `run: commands need a machine of this computer; ${place} has provider ${provider}` };
  const cwd = folderOfCommands(machine);
  if (cwd === undefined)
    return { problem: `run: ${place} has no folder for commands; register it with --dir, or set NEO_WORKSPACE` };
  const [program, ...args] = argv as [string, ...string[]];
  const bin = program.includes('/') && !isAbsolute(program) ? join(cwd, program) : program;
  return {
    preset: {
      ...{ name: 'the command', kind: 'terminal', about: 'the command of an alarm', bin, install: 'or name its path' },
      ...{ new: { stdin: ['<args>'] }, words: 'bare', reads: 'plain-text', when_gone: 'fail', wait_seconds: 21_600 },
      ...{ busy: [], gone: [], state: [], read_only: [], environment: [] },
    },
    machine: {
      ...base,
      provider: 'command',
      spec: {
        ...{ preset: COMMAND_PRESET, cwd, args, timeout_seconds },
        ...(spec.writable && { writable: spec.writable }),
        ...(spec.sandbox !== undefined && { sandbox: spec.sandbox }),
      },
    },
  };
}
