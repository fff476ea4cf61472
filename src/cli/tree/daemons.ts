/** `up`, each daemon alone, and the MCP servers. */
import type { Command } from 'commander';
import type { CapabilityFlags, ChronometricFlags } from '../commands/daemons.ts';
import type { QuestionFlags } from '../commands/neo-question.ts';
import type { ServerAddFlags } from '../commands/neo-server.ts';
import type { LoginFlags } from '../commands/neo-server-login.ts';
import type { ReviewFlags } from '../commands/neo-server-review.ts';
import { addCommand, addGroup } from './command.ts';

const load = () => import('../commands/daemons.ts');
const servers = () => import('../commands/neo-server.ts');
const logins = () => import('../commands/neo-server-login.ts');
const questions = () => import('../commands/neo-question.ts');

const listenOptions = (command: Command) =>
  command
    .option('--host <address>', 'the address to listen on')
    .option('--port <port>', 'the port to listen on; 0 picks a free one')
    .option('--data-dir <folder>', 'the data folder');

const listenSettings = (prefix: string) => ({
  host: `${prefix}_HOST`,
  port: `${prefix}_PORT`,
  dataDir: `${prefix}_DATA_DIR`,
});

const reviewOptions = (command: Command) =>
  command
    .option('--read <tools...>', 'tools that only read: the agent may call them')
    .option('--natural <tools...>', 'other tools that the agent may call without approval')
    .option('--escalate <tools...>', 'tools that only the executor calls, after the policy allows it')
    .option('--yes-reads', 'accept proposed reads for new tools; escalate all others')
    .option('--accept', 'accept changed and removed tools; classes stay');

/** `neo server …`: the MCP servers in Neo's manifest. */
function addServers(neo: Command): void {
  const server = addGroup(neo, 'server', "add, review and remove the MCP servers of the agent's manifest", [
    'reveille neo server add notes -- npx -y notes-mcp',
    'reveille neo server review notes',
  ]);
  addCommand<ServerAddFlags>(server, {
    usage: 'add <alias> [command...]',
    summary: 'start a server, show its tools, and add it to the manifest with a class for each tool',
    examples: [
      'reveille neo server add notes -- npx -y notes-mcp',
      'reveille neo server add wiki --url https://wiki.example/mcp --yes-reads',
    ],
    options: (command) =>
      reviewOptions(command)
        .option('--url <address>', 'the address of an HTTP server')
        .option(
          '--env <assignments...>',
          'environment of the server, NAME=value; a value may refer to your variables as in manifests',
        )
        .option('--header <assignments...>', 'HTTP headers, NAME=value'),
    run: async (context, flags, words) => (await servers()).serverAdd(context, flags, words),
  });
  addCommand<ReviewFlags>(server, {
    usage: 'review [alias]',
    summary: 'show new, changed and removed tools and ask for a class for each (default: all servers)',
    examples: ['reveille neo server review notes', 'reveille neo server review --accept'],
    options: reviewOptions,
    run: async (context, flags, [alias]) => (await servers()).serverReview(context, flags, alias),
  });
  const ofExecutor = (command: Command) =>
    command.option('--executor', "a server of the executor's manifest, not of the agent's");
  addCommand<LoginFlags>(server, {
    usage: 'login <alias>',
    summary: 'sign in at a server that requires it, with a browser',
    examples: ['reveille neo server login wiki', 'reveille neo server login wiki --paste'],
    options: (command) =>
      ofExecutor(command)
        .option('--paste', 'the browser is on another computer: paste the address that it shows at the end')
        .option('--no-browser', 'only print the address')
        .option('--url <address>', 'the address of a server that is not in the manifest yet'),
    run: async (context, flags, [alias]) => (await logins()).serverLogin(context, flags, alias!),
  });
  addCommand<LoginFlags>(server, {
    usage: 'logout <alias>',
    summary: 'remove the stored sign-in at a server',
    examples: ['reveille neo server logout wiki', 'reveille neo server logout wiki --json'],
    options: ofExecutor,
    run: async (context, flags, [alias]) => (await logins()).serverLogout(context, flags, alias!),
  });
  addCommand(server, {
    usage: 'remove <alias>',
    summary: 'remove a server from the manifest',
    examples: ['reveille neo server remove notes', 'reveille neo server remove notes --json'],
    run: async (context, _flags, [alias]) => (await servers()).serverRemove(context, alias!),
  });
}

/** `neo question …`: the questions of MCP servers to the user. */
function addQuestions(neo: Command): void {
  const question = addGroup(neo, 'question', 'list and answer the questions of MCP servers', [
    'reveille neo question list',
    'reveille neo question answer Yw3kq0Zr8VxQ2b1c city=Bonn',
  ]);
  const router = (command: Command) => command.option('--router <address>', 'the public address of another router');
  addCommand<QuestionFlags>(question, {
    usage: 'list',
    summary: 'the questions that wait for an answer; starts your agent',
    examples: ['reveille neo question list', 'reveille neo question list --json'],
    options: router,
    run: async (context, flags) => (await questions()).listQuestions(context, flags),
  });
  addCommand<QuestionFlags>(question, {
    usage: 'answer <id> [values...]',
    summary: 'answer a question: values as name=value, or asked for on a terminal',
    examples: [
      'reveille neo question answer Yw3kq0Zr8VxQ2b1c city=Bonn nights=2',
      'reveille neo question answer Yw3kq0Zr8VxQ2b1c --decline',
    ],
    options: (command) =>
      router(command)
        .option('--decline', 'refuse to answer')
        .option('--done', 'you have opened the address of the question'),
    run: async (context, flags, [id, ...values]) => (await questions()).answerQuestion(context, flags, id!, values),
  });
}

export function addDaemons(program: Command): void {
  addCommand<{ once?: boolean }>(program, {
    usage: 'up',
    summary: 'start all daemons on this computer',
    examples: ['reveille up', 'reveille up --once'],
    options: (command) => command.option('--once', 'set one alarm, wait for the end of its turn, and exit'),
    run: async (context, flags) => (await import('../commands/up.ts')).up(context, flags),
  });
  addCommand(program, {
    usage: 'chronosd',
    summary: 'store alarms and fire them on time',
    examples: ['CHRONOS_DEV=1 reveille chronosd --port 9096', 'reveille chronosd --no-api'],
    options: (command) =>
      listenOptions(command)
        .option('--no-api', 'do not serve the API; other replicas do')
        .option('--no-dispatch', 'do not fire alarms; other replicas do'),
    settings: { ...listenSettings('CHRONOS'), api: 'CHRONOS_API', dispatch: 'CHRONOS_DISPATCH' },
    run: async (context) => (await load()).chronosd(context),
  });
  addCommand(program, {
    usage: 'router',
    summary: 'start machines and deliver wakes to agents',
    examples: ['ROUTER_DEV=1 reveille router --port 8088', 'reveille router --data-dir /var/lib/reveille/router'],
    options: listenOptions,
    settings: listenSettings('ROUTER'),
    run: async (context) => (await load()).router(context),
  });
  const executor = addCommand(program, {
    usage: 'executor',
    summary: 'execute approved actions and sign a receipt for each intent',
    examples: ['EXECUTOR_DEV=1 reveille executor --port 8081', 'reveille executor --policy policy.yaml'],
    options: (command) =>
      listenOptions(command)
        .option('--manifest <file>', 'the manifest with its tools (default: the built-in one)')
        .option('--policy <file>', 'the policy file: which calls are allowed, asked and denied'),
    settings: { ...listenSettings('EXECUTOR'), manifest: 'EXECUTOR_MANIFEST', policy: 'EXECUTOR_POLICY' },
    run: async (context) => (await load()).runExecutor(context),
  });
  addCommand(executor, {
    usage: 'mcp',
    summary: 'MCP server: submit tasks to the executor and follow them; the user approves them',
    examples: ['claude mcp add executor -- reveille executor mcp', 'NEO_EXECUTOR_TOKEN=rvs_… reveille executor mcp'],
    run: async (context) => (await load()).executorMcp(context),
  });
  const neo = addCommand(program, {
    usage: 'neo',
    summary: 'the conversational agent',
    examples: [
      'NEO_DAEMON_TOKEN=a-secret-of-24-characters reveille neo --port 8080',
      'reveille neo --data-dir /var/lib/reveille/neo',
    ],
    options: listenOptions,
    settings: listenSettings('NEO'),
    canBeMachine: true,
    run: async (context) => (await load()).neo(context),
  });
  addCommand(neo, {
    usage: 'tools',
    summary: 'list the tools of the agent: starts the servers of its manifest and stops them',
    examples: ['reveille neo tools', 'reveille neo tools --json'],
    settings: listenSettings('NEO'),
    run: async (context) => (await import('../commands/tools.ts')).neoTools(context),
  });
  addServers(neo);
  addQuestions(neo);
  addCommand(program, {
    usage: 'ledger',
    summary: 'MCP server: a ledger of play money to try the executor with',
    examples: ['reveille ledger --data-dir /tmp/play-money', 'claude mcp add ledger -- reveille ledger'],
    options: (command) => command.option('--data-dir <folder>', 'the folder of the ledger'),
    settings: { dataDir: 'LEDGER_DATA_DIR' },
    run: async (context) => (await load()).ledger(context),
  });
  addCommand<CapabilityFlags>(program, {
    usage: 'capability <name>',
    summary: 'MCP server: one capability of fetch, web_search, git, shell and browser',
    examples: ['reveille capability fetch', 'reveille capability git --workspace ~/project'],
    options: (command) =>
      command
        .option('--workspace <folder>', 'the working folder of git and shell')
        .option('--allow <hosts>', 'private hosts that fetch and web_search may reach, separated by commas')
        .option('--remotes <addresses>', 'prefixes of remote addresses that git may use, separated by commas'),
    run: async (context, flags, [name]) => (await load()).capability(context, flags, name!),
  });
  addCommand<ChronometricFlags>(program, {
    usage: 'chronometric',
    summary: 'MCP server: time and sessions of the user beside the agent',
    examples: ['claude mcp add chronometric -- reveille chronometric', 'reveille chronometric --profile profile.yaml'],
    options: (command) =>
      command
        .option('--data-dir <folder>', 'the folder of the sessions')
        .option('--profile <file>', 'the profile of the user (default: as "reveille profile check" shows)')
        .option('--by-calls', 'for a daemon that always runs: only calls count as activity of the user'),
    settings: { dataDir: 'CHRONOMETRIC_DATA_DIR', profile: 'REVEILLE_PROFILE' },
    run: async (context, flags) => (await load()).chronometric(context, flags),
  });
  const mcp = addCommand<{ selftest?: boolean }>(program, {
    usage: 'mcp',
    summary: 'MCP server: the three alarm tools',
    examples: ['claude mcp add chronos -- reveille mcp', 'reveille mcp --selftest'],
    options: (command) => command.option('--selftest', 'check offline that tools, manifests and skills match'),
    run: async (context, flags) => (await load()).mcp(context, flags),
  });
  addCommand(mcp, {
    usage: 'channel',
    summary: 'MCP server: a channel through which alarms reach an open session of Claude Code',
    examples: [
      'claude mcp add reveille-channel -- reveille mcp channel',
      'reveille mcp channel  # with: claude --dangerously-load-development-channels server:reveille-channel',
    ],
    run: async (context) => (await load()).mcpChannel(context),
  });
}
