/** `machine …`: the machines that the router wakes. */
import type { Command } from 'commander';
import type { MachineChange, PutFlags } from '../commands/machine.ts';
import { addCommand, addGroup } from './command.ts';

const load = () => import('../commands/machine.ts');

const collect = (value: string, before: string[] = []) => [...before, value];

/**
 * Takes the words after `--` as the command of a machine. Commander would count them among the arguments, where the first of
 * them could not be told from a user id.
 */
function takeCommandLine(command: Command): Command {
  const parse = command.parseOptions.bind(command);
  command.parseOptions = (words) => {
    const at = words.indexOf('--');
    if (at < 0) return parse(words);
    command.setOptionValue('command', words.slice(at + 1));
    return parse(words.slice(0, at));
  };
  return command.usage('[options] [user_id] [-- <command> <arguments…>]');
}

const putOptions = (command: Command) =>
  takeCommandLine(command)
    .requiredOption('--provider <provider>', 'http: a daemon that is always on; process: a command to start')
    .option('--url <url>', 'http: where the daemon listens')
    .option('--cwd <folder>', 'process: where the command runs (default: here)')
    .option('--env <NAME=value>', 'process: a variable for the command; may be repeated', collect)
    .option('--port <port>', 'process: the port it listens on (default: a free one, handed over as PORT)')
    .option('--health-path <path>', 'where the daemon answers when it is ready (default: /healthz)')
    .option('--idle-seconds <n>', 'put it to sleep after this long without work')
    .option('--state <state>', 'active or provisioning (default: active)')
    .option('--token <token>', 'the bearer token that the daemon expects (default: a new one, shown once)');

const CHANGES: readonly [name: string, change: MachineChange, summary: string][] = [
  ['suspend', 'suspend', 'stop a machine and refuse its wakes until it is restored'],
  ['restore', 'restore', 'let a suspended machine be woken again'],
  ['delete', 'remove', 'stop a machine and forget its secrets'],
];

export function addMachine(program: Command): void {
  const machine = addGroup(program, 'machine', 'say where agents live and how they are started');
  addCommand<PutFlags>(machine, {
    usage: 'put [user_id]',
    summary: "register a machine (default: this agent's own)",
    example: 'reveille machine put --provider process --idle-seconds 300 -- node my-agent.js',
    options: putOptions,
    run: async (context, flags, [userId]) => (await load()).machinePut(context, flags, userId),
  });
  addCommand(machine, {
    usage: 'list',
    summary: 'list the machines',
    example: 'reveille machine list',
    run: async (context) => (await load()).machineList(context),
  });
  addCommand(machine, {
    usage: 'show [user_id]',
    summary: "show a machine (default: this agent's own)",
    example: 'reveille machine show',
    run: async (context, _flags, [userId]) => (await load()).machineShow(context, userId),
  });
  for (const [name, change, summary] of CHANGES) {
    addCommand(machine, {
      usage: `${name} <user_id>`,
      summary,
      example: `reveille machine ${name} alice`,
      run: async (context, _flags, [userId]) => (await load()).machineChange(context, change, userId!),
    });
  }
  machine.addHelpText('after', '\nExample:\n  $ reveille machine put --provider http --url http://127.0.0.1:8080');
}
