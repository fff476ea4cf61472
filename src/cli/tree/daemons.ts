/** `up`, the daemons one by one, and the MCP servers. */
import type { Command } from 'commander';
import type { ChronometricFlags } from '../commands/chronometric.ts';
import { addCommand, type FlagValue } from './command.ts';

const listenOptions = (command: Command) =>
  command
    .option('--host <address>', 'the address to listen on')
    .option('--port <port>', 'the port to listen on; 0 picks a free one')
    .option('--data-dir <folder>', 'where to keep data');

const text = (flag: FlagValue) => (typeof flag === 'string' ? flag : undefined);

const listenSettings = (prefix: string) => (flags: Record<string, FlagValue>) => ({
  [`${prefix}_HOST`]: text(flags.host),
  [`${prefix}_PORT`]: text(flags.port),
  [`${prefix}_DATA_DIR`]: text(flags.dataDir),
});

export function addDaemons(program: Command): void {
  addCommand<{ once?: boolean }>(program, {
    usage: 'up',
    summary: 'start everything on this machine and ring a welcome alarm on the first run',
    example: 'reveille up',
    options: (command) => command.option('--once', 'set one alarm, wait until its turn has finished, and exit'),
    run: async (context, flags) => (await import('../commands/up.ts')).up(context, flags),
  });
  addCommand(program, {
    usage: 'chronosd',
    summary: 'keep alarms and fire them on time',
    example: 'reveille chronosd --port 9096',
    options: (command) =>
      listenOptions(command)
        .option('--no-api', 'leave the API to other replicas')
        .option('--no-dispatch', 'leave dispatching to other replicas'),
    settings: (flags) => ({
      ...listenSettings('CHRONOS')(flags),
      ...(flags.api === false ? { CHRONOS_API: '0' } : {}),
      ...(flags.dispatch === false ? { CHRONOS_DISPATCH: '0' } : {}),
    }),
    run: async (context) => (await import('../commands/chronosd.ts')).chronosd(context),
  });
  addCommand(program, {
    usage: 'router',
    summary: 'start the machines that alarms wake, and deliver the turns',
    example: 'reveille router --port 8088',
    options: listenOptions,
    settings: listenSettings('ROUTER'),
    run: async (context) => (await import('../commands/router.ts')).router(context),
  });
  addCommand(program, {
    usage: 'executor',
    summary: 'carry out what a person approves, with a receipt that can be checked',
    example: 'EXECUTOR_TOKEN=a-secret-of-my-own reveille executor --port 8081',
    options: (command) =>
      listenOptions(command)
        .option('--manifest <file>', 'the tools that it holds (default: the ones that ship)')
        .option('--policy <file>', 'rules for what is asked, allowed and refused'),
    settings: (flags) => ({
      ...listenSettings('EXECUTOR')(flags),
      EXECUTOR_MANIFEST: text(flags.manifest),
      EXECUTOR_POLICY: text(flags.policy),
    }),
    run: async (context) => (await import('../commands/executor.ts')).runExecutor(context),
  });
  const neo = addCommand(program, {
    usage: 'neo',
    summary: 'a conversational agent daemon',
    example: 'NEO_DAEMON_TOKEN=a-secret-of-my-own reveille neo --port 8080',
    options: listenOptions,
    settings: listenSettings('NEO'),
    canBeMachine: true,
    run: async (context) => (await import('../commands/neo.ts')).neo(context),
  });
  addCommand(neo, {
    usage: 'tools',
    summary: 'what the agent can do: starts the servers of its manifest, shows their tools, and stops them',
    example: 'reveille neo tools',
    settings: listenSettings('NEO'),
    run: async (context) => (await import('../commands/neo-tools.ts')).neoTools(context),
  });
  addCommand(program, {
    usage: 'ledger',
    summary: 'a ledger of play money to try the executor with, as an MCP server on stdin and stdout',
    example: 'reveille ledger --data-dir /tmp/play-money',
    options: (command) => command.option('--data-dir <folder>', 'where to keep the book'),
    settings: (flags) => ({ LEDGER_DATA_DIR: text(flags.dataDir) }),
    run: async (context) => (await import('../commands/ledger.ts')).ledger(context),
  });
  addCommand<ChronometricFlags>(program, {
    usage: 'chronometric',
    summary: 'time and sessions of the person beside the agent, as an MCP server on stdin and stdout',
    example: 'claude mcp add chronometric -- reveille chronometric',
    options: (command) =>
      command
        .option('--data-dir <folder>', 'where to keep sessions')
        .option('--profile <file>', "the person's profile (default: as reveille profile finds it)")
        .option(
          '--by-calls',
          'for a daemon that runs day and night: calls count as the person being there, running does not',
        ),
    settings: (flags) => ({ CHRONOMETRIC_DATA_DIR: text(flags.dataDir), REVEILLE_PROFILE: text(flags.profile) }),
    run: async (context, flags) => (await import('../commands/chronometric.ts')).chronometric(context, flags),
  });
  addCommand<{ selftest?: boolean }>(program, {
    usage: 'mcp',
    summary: 'the three alarm tools, as an MCP server on stdin and stdout',
    example: 'claude mcp add chronos -- reveille mcp',
    options: (command) => command.option('--selftest', 'check offline that tools, manifests and skills agree'),
    run: async (context, flags) => (await import('../commands/mcp.ts')).mcp(context, flags),
  });
}
