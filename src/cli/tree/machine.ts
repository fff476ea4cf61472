/** `machine …`: the machines that the router starts. */
import type { Command } from 'commander';
import type { HistoryFlags, MachineChange, SetBudgetFlags, TurnFlags } from '../commands/machine.ts';
import type { PutFlags } from '../flags/machine-flags.ts';
import { addCommand, addGroup, several } from './command.ts';

const load = () => import('../commands/machine.ts');

/**
 * Reads the words after `--` as the command of a machine. Commander treats them as arguments, where the first one
 * could be a user id.
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

/** Provider flags come from the provider descriptors, which are loaded only for `machine put`. */
async function putOptions(command: Command): Promise<void> {
  const { helpOfFlags, helpOfProviders } = await import('../flags/machine-flags.ts');
  takeCommandLine(command).requiredOption('--provider <provider>', helpOfProviders());
  for (const { usage, about, repeated } of helpOfFlags()) {
    if (repeated) command.option(usage, about, several);
    else command.option(usage, about);
  }
  command
    .option('--idle-seconds <n>', 'stop the machine after this long without work')
    .option('--state <state>', 'active or provisioning (default: active)')
    .option('--token <token>', 'the bearer token that the daemon expects (default: a new one, shown once)');
  budgetOptions(command);
}

const budgetOptions = (command: Command) =>
  command
    .option('--max-per-hour <n>', 'at most this many wakes in any hour; more are deferred')
    .option('--max-per-day <n>', 'at most this many wakes in any 24 hours')
    .option('--max-tokens-per-turn <n>', 'a turn of Neo ends after this many tokens')
    .option('--max-tokens-per-day <n>', 'more wakes are deferred once turns used this many tokens in 24 hours')
    .option('--max-usd-per-day <amount>', 'the same in US dollars, as far as the cost of turns is known')
    .option('--max-tokens-per-alarm <n>', 'as --max-tokens-per-day, for each alarm by itself')
    .option('--max-usd-per-alarm <amount>', 'as --max-usd-per-day, for each alarm by itself')
    .option('--min-gap <duration>', 'shortest time between two wakes: 90s, 10m')
    .option('--quiet <from-to>', 'quiet hours, such as 22:00-07:00: only urgent alarms are delivered')
    .option('--zone <name>', 'time zone of --quiet, such as Europe/Berlin')
    .option('--quiet-days <days>', 'days on which quiet hours begin: mon,tue,wed,thu,fri (default: every day)')
    .option('--breaker <n>', 'pause wakes after this many failed starts in a row')
    .option('--breaker-pause <duration>', 'length of the first pause (default: 5m); it doubles up to an hour')
    .option('--unlimited', 'no budget; ROUTER_BUDGET does not apply');

const CHANGES: readonly [name: string, change: MachineChange, summary: string][] = [
  ['suspend', 'suspend', 'stop a machine and reject its wakes until it is restored'],
  ['restore', 'restore', 'accept wakes for a suspended machine again'],
  ['delete', 'remove', 'stop a machine and delete its secrets'],
];

export function addMachine(program: Command): void {
  const machine = addGroup(program, 'machine', 'register and manage the machines where agents live', [
    'reveille machine put --provider claude --dir .',
    'reveille machine show',
  ]);
  addCommand<PutFlags>(machine, {
    usage: 'put [user_id]',
    summary: "register or change a machine (default: this agent's machine)",
    examples: [
      'reveille machine put --provider process --idle-seconds 300 -- node my-agent.js',
      'reveille machine put --provider claude --dir .',
    ],
    lateOptions: putOptions,
    run: async (context, flags, [userId]) => (await load()).machinePut(context, flags, userId),
  });
  addCommand(machine, {
    usage: 'list',
    summary: 'list the machines',
    examples: ['reveille machine list', 'reveille machine list --json'],
    run: async (context) => (await load()).machineList(context),
  });
  addCommand(machine, {
    usage: 'show [user_id]',
    summary: "show a machine (default: this agent's machine)",
    examples: ['reveille machine show', 'reveille machine show alice --json'],
    run: async (context, _flags, [userId]) => (await load()).machineShow(context, userId),
  });
  addCommand<TurnFlags>(machine, {
    usage: 'turns [user_id]',
    summary: 'list turns of an agent without a daemon',
    examples: ['reveille machine turns', 'reveille machine turns --status unknown'],
    options: (command) =>
      command
        .option('--conversation <id>', 'only turns of this conversation')
        .option('--fire <id>', 'only the turn of this fire, with its whole reply')
        .option('--status <status>', 'only turns with this status: queued, running, accepted, done, failed, unknown')
        .option('--limit <n>', 'at most this many (default: 20)'),
    run: async (context, flags, [userId]) => (await load()).machineTurns(context, flags, userId),
  });
  addCommand<SetBudgetFlags>(machine, {
    usage: 'budget [user_id]',
    summary: "set how often and when an agent may be woken (default: this agent's machine)",
    examples: [
      'reveille machine budget --max-per-hour 10',
      'reveille machine budget --quiet 22:00-07:00 --zone Europe/Berlin',
    ],
    options: (command) => budgetOptions(command).option('--default', "remove the budget; the router's setting applies"),
    run: async (context, flags, [userId]) => (await load()).machineBudget(context, flags, userId),
  });
  addCommand<HistoryFlags>(machine, {
    usage: 'history [user_id]',
    summary: "list changes of a machine and who made them (default: this agent's machine)",
    examples: ['reveille machine history', 'reveille machine history alice --limit 10'],
    options: (command) => command.option('--limit <n>', 'at most this many changes (default: 50)'),
    run: async (context, flags, [userId]) => (await load()).machineHistory(context, flags, userId),
  });
  addCommand(machine, {
    usage: 'rotate-token <user_id>',
    summary: 'create a new token for a machine, shown once',
    examples: ['reveille machine rotate-token alice', 'reveille machine rotate-token alice --json'],
    run: async (context, _flags, [userId]) => (await load()).machineRotateToken(context, userId!),
  });
  for (const [name, change, summary] of CHANGES) {
    addCommand(machine, {
      usage: `${name} <user_id>`,
      summary,
      examples: [`reveille machine ${name} alice`, `reveille machine ${name} alice --json`],
      run: async (context, _flags, [userId]) => (await load()).machineChange(context, change, userId!),
    });
  }
}
