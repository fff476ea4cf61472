/** `up`, the daemons one by one, and the MCP server. */
import type { Command } from 'commander';
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
  const neo = addCommand(program, {
    usage: 'neo',
    summary: 'a conversational agent daemon',
    example: 'NEO_DAEMON_TOKEN=a-secret-of-my-own reveille neo --port 8080',
    options: listenOptions,
    settings: listenSettings('NEO'),
    run: async (context) => (await import('../commands/neo.ts')).neo(context),
  });
  addCommand(neo, {
    usage: 'tools',
    summary: 'what the agent can do: starts the servers of its manifest, shows their tools, and stops them',
    example: 'reveille neo tools',
    settings: listenSettings('NEO'),
    run: async (context) => (await import('../commands/neo-tools.ts')).neoTools(context),
  });
  addCommand<{ selftest?: boolean }>(program, {
    usage: 'mcp',
    summary: 'the three alarm tools, as an MCP server on stdin and stdout',
    example: 'claude mcp add chronos -- reveille mcp',
    options: (command) => command.option('--selftest', 'check offline that tools, manifests and skills agree'),
    run: async (context, flags) => (await import('../commands/mcp.ts')).mcp(context, flags),
  });
}
