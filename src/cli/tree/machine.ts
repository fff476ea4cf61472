/** `machine …`: the machines that the router wakes. */
import type { Command } from 'commander';
import type { MachineChange } from '../commands/machine.ts';
import type { SetBudgetFlags } from '../commands/machine-budget.ts';
import type { HistoryFlags } from '../commands/machine-history.ts';
import type { TurnFlags } from '../commands/machine-turns.ts';
import type { PutFlags } from '../flags/machine-flags.ts';
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
  return command.usage('[options] [user_id] [-- <command or more arguments…>]');
}

const putOptions = (command: Command) =>
  takeCommandLine(command)
    .requiredOption(
      '--provider <provider>',
      'http: a daemon that is always on; process: a command to start; docker, fly: a machine to start; neo: the local Neo again; or an agent: claude, codex, gemini, opencode, openclaw, a2a, webhook, or a preset of your own',
    )
    .option('--url <url>', 'http and agents that are servers: where they listen')
    .option('--dir <folder>', 'agents: the folder of the conversation; process: where it runs (default: here)')
    .option('--cwd <folder>', 'the same as --dir')
    .option('--env <NAME=value>', 'process and agents: a variable for the program; may be repeated', collect)
    .option('--bin <program>', 'agents: another program than the preset names, or its path')
    .option('--timeout-seconds <n>', 'agents: end a turn that takes longer')
    .option('--allow-private', 'webhook: let it go to this computer or a private network')
    .option('--container <name>', 'docker: the container')
    .option('--socket <path>', "docker: the engine's socket (default: where DOCKER_HOST says)")
    .option('--app <name>', 'fly: the app')
    .option('--machine-id <id>', 'fly: the machine')
    .option('--lease-nonce <nonce>', 'fly: of a lease that you hold on the machine')
    .option('--sleep <how>', 'docker: stop or pause (default: stop); fly: suspend or stop (default: suspend)')
    .option('--memory-mb <n>', 'process: end it when it and its children use more memory')
    .option('--processes <n>', 'process: end it when it and its children are more than this')
    .option('--open-files <n>', 'process: how many files each of them may hold open')
    .option('--niceness <n>', 'process: its priority, from 0 (as the router) to 19 (lowest)')
    .option(
      '--run-as <user>',
      'process: run it as another user of the system, by name or uid:gid (the router must be root)',
    )
    .option('--no-sandbox', 'process and agents: no walls around it; it sees what the router sees')
    .option('--port <port>', 'where the daemon listens (process: a free one unless told, handed over as PORT)')
    .option(
      '--foreign-listener',
      'process: another program listens for it (docker run -p); take the word of whatever does',
    )
    .option('--health-path <path>', 'where the daemon answers when it is ready (default: /healthz)')
    .option('--idle-seconds <n>', 'put it to sleep after this long without work')
    .option('--state <state>', 'active or provisioning (default: active)')
    .option('--token <token>', 'the bearer token that the daemon expects (default: a new one, shown once)');

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
    options: (command) => budgetOptions(putOptions(command)),
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
      (await import('../commands/machine-turns.ts')).machineTurns(context, flags, userId),
  });
  addCommand<SetBudgetFlags>(machine, {
    usage: 'budget [user_id]',
    summary: "say how often and when an agent may be woken (default: this machine's own)",
    example: 'reveille machine budget --max-per-hour 10 --quiet 22:00-07:00 --zone Europe/Berlin',
    options: (command) =>
      budgetOptions(command).option('--default', "take its budget away: the router's own setting applies again"),
    run: async (context, flags, [userId]) =>
      (await import('../commands/machine-budget.ts')).machineBudget(context, flags, userId),
  });
  addCommand<HistoryFlags>(machine, {
    usage: 'history [user_id]',
    summary: "what was done to a machine, by whom (default: this agent's own)",
    example: 'reveille machine history alice',
    options: (command) => command.option('--limit <n>', 'at most so many changes (default: 50)'),
    run: async (context, flags, [userId]) =>
      (await import('../commands/machine-history.ts')).machineHistory(context, flags, userId),
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
