/** `up`, the daemons one by one, and the MCP servers. */

import type { Command } from 'commander';
import type { CapabilityFlags, ChronometricFlags } from '../commands/daemons.ts';
import type { ServerAddFlags } from '../commands/neo-server.ts';
import type { ReviewFlags } from '../commands/neo-server-review.ts';
import { addCommand, addGroup, type FlagValue } from './command.ts';

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

const reviewOptions = (command: Command) =>
  command
    .option('--read <tools...>', 'these only look: the agent may call them')
    .option('--natural <tools...>', 'these the agent may call as well')
    .option('--escalate <tools...>', 'these only the executor calls, after asking')
    .option('--yes-reads', 'new tools: a read where that is proposed, everything else escalated')
    .option('--accept', 'agree to changed tools with the class they have, and to those that are gone');

/** `neo server …`: the MCP servers of Neo's manifest. */
function addServers(neo: Command): void {
  const server = addGroup(neo, 'server', "the MCP servers of the agent's manifest, each tool with your word");
  addCommand<ServerAddFlags>(server, {
    usage: 'add <alias> [command...]',
    summary: 'start a server, show its tools, and put it into the manifest with a class for each',
    example: 'reveille neo server add notes -- npx -y notes-mcp',
    options: (command) =>
      reviewOptions(command)
        .option('--url <address>', 'of a server that is reached over HTTP')
        .option(
          '--env <assignments...>',
          'variables for it, NAME=value; values may refer to variables of yours as manifests do',
        )
        .option('--header <assignments...>', 'headers for it, NAME=value, likewise'),
    run: async (context, flags, words) => (await import('../commands/neo-server.ts')).serverAdd(context, flags, words),
  });
  addCommand<ReviewFlags>(server, {
    usage: 'review [alias]',
    summary: 'show what its tools are and what has changed since, and take your word on it (default: all servers)',
    example: 'reveille neo server review notes',
    options: reviewOptions,
    run: async (context, flags, [alias]) =>
      (await import('../commands/neo-server.ts')).serverReview(context, flags, alias),
  });
  addCommand(server, {
    usage: 'remove <alias>',
    summary: 'take a server out of the manifest',
    example: 'reveille neo server remove notes',
    run: async (context, _flags, [alias]) => (await import('../commands/neo-server.ts')).serverRemove(context, alias!),
  });
}

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
    example: 'CHRONOS_DEV=1 reveille chronosd --port 9096',
    options: (command) =>
      listenOptions(command)
        .option('--no-api', 'leave the API to other replicas')
        .option('--no-dispatch', 'leave dispatching to other replicas'),
    settings: (flags) => ({
      ...listenSettings('CHRONOS')(flags),
      ...(flags.api === false ? { CHRONOS_API: '0' } : {}),
      ...(flags.dispatch === false ? { CHRONOS_DISPATCH: '0' } : {}),
    }),
    run: async (context) => (await import('../commands/daemons.ts')).chronosd(context),
  });
  addCommand(program, {
    usage: 'router',
    summary: 'start the machines that alarms wake, and deliver the turns',
    example: 'ROUTER_DEV=1 reveille router --port 8088',
    options: listenOptions,
    settings: listenSettings('ROUTER'),
    run: async (context) => (await import('../commands/daemons.ts')).router(context),
  });
  addCommand(program, {
    usage: 'executor',
    summary: 'carry out what a person approves, with a receipt that can be checked',
    example: 'EXECUTOR_DEV=1 reveille executor --port 8081',
    options: (command) =>
      listenOptions(command)
        .option('--manifest <file>', 'the tools that it holds (default: the ones that ship)')
        .option('--policy <file>', 'rules for what is asked, allowed and refused'),
    settings: (flags) => ({
      ...listenSettings('EXECUTOR')(flags),
      EXECUTOR_MANIFEST: text(flags.manifest),
      EXECUTOR_POLICY: text(flags.policy),
    }),
    run: async (context) => (await import('../commands/daemons.ts')).runExecutor(context),
  });
  const neo = addCommand(program, {
    usage: 'neo',
    summary: 'a conversational agent daemon',
    example: 'NEO_DAEMON_TOKEN=a-secret-of-my-own reveille neo --port 8080',
    options: listenOptions,
    settings: listenSettings('NEO'),
    canBeMachine: true,
    run: async (context) => (await import('../commands/daemons.ts')).neo(context),
  });
  addCommand(neo, {
    usage: 'tools',
    summary: 'what the agent can do: starts the servers of its manifest, shows their tools, and stops them',
    example: 'reveille neo tools',
    settings: listenSettings('NEO'),
    run: async (context) => (await import('../commands/tools.ts')).neoTools(context),
  });
  addServers(neo);
  addCommand(program, {
    usage: 'ledger',
    summary: 'a ledger of play money to try the executor with, as an MCP server on stdin and stdout',
    example: 'reveille ledger --data-dir /tmp/play-money',
    options: (command) => command.option('--data-dir <folder>', 'where to keep the book'),
    settings: (flags) => ({ LEDGER_DATA_DIR: text(flags.dataDir) }),
    run: async (context) => (await import('../commands/daemons.ts')).ledger(context),
  });
  addCommand<CapabilityFlags>(program, {
    usage: 'capability <name>',
    summary:
      'what an agent can do besides files and alarms, as an MCP server on stdin and stdout: fetch, web_search, git, shell or browser',
    example: 'reveille capability fetch',
    options: (command) =>
      command
        .option('--workspace <folder>', 'the folder that git and shell work in')
        .option('--allow <hosts>', 'hosts of private networks that fetch and web_search may reach, separated by commas')
        .option('--remotes <addresses>', 'what the addresses that git speaks to must begin with, separated by commas'),
    run: async (context, flags, [name]) => (await import('../commands/daemons.ts')).capability(context, flags, name!),
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
          'for a daemon that runs day and night: prompts and marks count as the person being there, running does not',
        ),
    settings: (flags) => ({ CHRONOMETRIC_DATA_DIR: text(flags.dataDir), REVEILLE_PROFILE: text(flags.profile) }),
    run: async (context, flags) => (await import('../commands/daemons.ts')).chronometric(context, flags),
  });
  addCommand<{ selftest?: boolean }>(program, {
    usage: 'mcp',
    summary: 'the three alarm tools, as an MCP server on stdin and stdout',
    example: 'claude mcp add chronos -- reveille mcp',
    options: (command) => command.option('--selftest', 'check offline that tools, manifests and skills agree'),
    run: async (context, flags) => (await import('../commands/daemons.ts')).mcp(context, flags),
  });
}
