/** `machine …`: the machines that the router wakes. */
import type { Command } from 'commander';
import type { HistoryFlags, MachineChange, SetBudgetFlags, TurnFlags } from '../commands/machine.ts';
import type { PutFlags } from '../flags/machine-flags.ts';
import { addCommand, addGroup } from './command.ts';

const load = () => import('../commands/machine.ts');

const collect = (value: string, before: string[] = []) => [...before, value];

/**
 * Takes the words after `--` as the command of a machine. Commander would count them among the arguments, where the
 * first of them could not be told from a user id.
 */
function takeCommandLine(command: Command): Command {
  const parse = command.parseOptions.bind(command);
  command.parseOptions = (words) => {
    const at = words.indexOf('--');
    if (at < 0) return parse(words);
    command.setOptionValue('command', words.slice(at + 1));
    return parse(words.slice(0, at));
  };
  return command.usage('[options] [user_id] [-- <command or more arguments…>]');
}

/** The flags of the providers stand in their descriptors, which are loaded only for `machine put`. */
async function putOptions(command: Command): Promise<void> {
  const { helpOfFlags, helpOfProviders } = await import('../flags/machine-flags.ts');
  takeCommandLine(command).requiredOption('--provider <provider>', helpOfProviders());
  for (const { usage, about, repeated } of helpOfFlags()) {
    if (repeated) command.option(usage, about, collect);
    else command.option(usage, about);
  }
  command
    .option('--idle-seconds <n>', 'put it to sleep after this long without work')
    .option('--state <state>', 'active or provisioning (default: active)')
    .option('--token <token>', 'the bearer token that the daemon expects (default: a new one, shown once)');
  budgetOptions(command);
}

const budgetOptions = (command: Command) =>
  command
    .option('--max-per-hour <n>', 'most wakes in any hour; more are held back until there is room')
    .option('--max-per-day <n>', 'most wakes in any 24 hours')
    .option('--min-gap <duration>', 'from one wake to the next, at least: 90s, 10m')
    .option('--quiet <from-to>', 'hold alarms that are not urgent back from 22:00-07:00')
    .option('--zone <name>', 'time zone of --quiet, such as Europe/Berlin')
    .option('--quiet-days <days>', 'on which days --quiet begins: mon,tue,wed,thu,fri (default: every day)')
    .option('--breaker <n>', 'after so many failed starts in a row try nothing for a while')
    .option('--breaker-pause <duration>', 'how long at first (default: 5m), twice as long each time, up to an hour')
    .option('--unlimited', 'no budget, whatever ROUTER_BUDGET says');

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
    lateOptions: putOptions,
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
  addCommand<TurnFlags>(machine, {
    usage: 'turns [user_id]',
    summary: 'what became of the wakes of an agent without a daemon',
    example: 'reveille machine turns --status unknown',
    options: (command) =>
      command
        .option('--conversation <id>', 'only of this conversation')
        .option('--fire <id>', 'only of this fire, with the whole answer')
        .option('--status <status>', 'only in this state: queued, running, accepted, done, failed, unknown')
        .option('--limit <n>', 'at most so many (default: 20)'),
    run: async (context, flags, [userId]) =>
      (await import('../commands/machine.ts')).machineTurns(context, flags, userId),
  });
  addCommand<SetBudgetFlags>(machine, {
    usage: 'budget [user_id]',
    summary: "say how often and when an agent may be woken (default: this machine's own)",
    example: 'reveille machine budget --max-per-hour 10 --quiet 22:00-07:00 --zone Europe/Berlin',
    options: (command) =>
      budgetOptions(command).option('--default', "take its budget away: the router's own setting applies again"),
    run: async (context, flags, [userId]) =>
      (await import('../commands/machine.ts')).machineBudget(context, flags, userId),
  });
  addCommand<HistoryFlags>(machine, {
    usage: 'history [user_id]',
    summary: "what was done to a machine, by whom (default: this agent's own)",
    example: 'reveille machine history alice',
    options: (command) => command.option('--limit <n>', 'at most so many changes (default: 50)'),
    run: async (context, flags, [userId]) =>
      (await import('../commands/machine.ts')).machineHistory(context, flags, userId),
  });
  addCommand(machine, {
    usage: 'rotate-token <user_id>',
    summary: 'give a machine a new token, shown once',
    example: 'reveille machine rotate-token alice',
    run: async (context, _flags, [userId]) => (await load()).machineRotateToken(context, userId!),
  });
  for (const [name, change, summary] of CHANGES) {
    addCommand(machine, {
      usage: `${name} <user_id>`,
      summary,
      example: `reveille machine ${name} alice`,
      run: async (context, _flags, [userId]) => (await load()).machineChange(context, change, userId!),
    });
  }
  machine.addHelpText('after', '\nExample:\n  $ reveille machine put --provider claude --dir .');
}
