/** Daemons and servers in the foreground, one per process. Each daemon is imported when it starts. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { SelftestReport } from '../../chronos-mcp/selftest.ts';
import type { Conversation } from '../../chronos-mcp/sessions.ts';
import { onTermination } from '../../kit/http/drain.ts';
import type { Logger } from '../../kit/log/log.ts';
import { CONVERSATION_VARIABLE, SPAWN_ID_VARIABLE } from '../../kit/process/inherited-variables.ts';
import { SANDBOX_VARIABLE } from '../../kit/process/view.ts';
import { boundYoungGeneration } from '../../kit/process/young-generation.ts';
import { printable } from '../../kit/text/hidden-characters.ts';
import { conversationIdSchema } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isOnThisComputer, type Settings } from '../../wire/settings.ts';
import { VERSION } from '../../wire/version.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { checkHome, readLabel, readSubmitter } from '../home/home.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { startOwnTraces } from '../tracing.ts';
import { type DaemonName, namingPort } from '../up/listener.ts';
import { executorSandbox, machineSandbox, neoSandbox } from '../up/sandbox.ts';

export async function chronosd(context: CliContext): Promise<void> {
  const { parseChronosConfig } = await import('../../chronos/config.ts');
  const { startChronos } = await import('../../chronos/daemon.ts');
  const config = parseChronosConfig(context.settings);
  await runDaemon(context, 'chronosd', (log) => startChronos({ config, clock: context.clock, log }));
}

export async function router(context: CliContext): Promise<void> {
  const { parseRouterConfig } = await import('../../router/config.ts');
  const { startRouter } = await import('../../router/daemon.ts');
  const { openAgentHost } = await import('../../agents/host.ts');
  const config = parseRouterConfig(context.settings);
  const { environment, clock } = context;
  const sandbox = machineSandbox(context, config.isolation);
  const { fleetConsole } = await import('../access/fleet-console.ts');
  const [
    { a2aServices },
    { endAlarmsBy, fleetAlarms, fleetIssuers, fleetServices, joinedServices },
    { fleetOauth },
    langgraph,
  ] = await Promise.all([
    import('../access/a2a.ts'),
    import('../access/public-services.ts'),
    import('../access/oauth-server.ts'),
    config.public.hasLanggraph ? import('../access/langgraph.ts') : undefined,
  ]);
  const oauth = fleetOauth(context, config.public);
  const pagesOf = config.public.console && fleetConsole(context, config.public, oauth);
  const alarmsOf = fleetAlarms(context, config);
  const a2a = await a2aServices(context, {
    ...{ router: config, alarmsOf, needsGrant: true },
    ...{ issuers: fleetIssuers(context, oauth), level: 'info' },
  });
  const remote = fleetServices(context, config, oauth);
  const servicesOf = joinedServices(remote?.servicesOf, a2a, langgraph?.fleetLanggraph(context, config.public));
  await runDaemon(context, 'router', (log) =>
    startRouter({
      ...{ config, openAgents: openAgentHost, environment, sandbox, version: VERSION, clock, log, pagesOf },
      ...{ servicesOf, endAlarms: endAlarmsBy(alarmsOf), subscribers: remote?.subscribers },
    }),
  );
}

export async function runExecutor(context: CliContext): Promise<void> {
  const { parseExecutorConfig } = await import('../../executor/config.ts');
  const { startExecutor } = await import('../../executor/daemon.ts');
  const config = parseExecutorConfig(context.settings);
  const { settings: variables, clock } = context;
  await runDaemon(context, 'executor', async (log) => {
    const onNoTools = (error: Error) => {
      // After a restart with a correct manifest, the intents continue.
      process.stderr.write(`${printable(error.message)}\n`);
      void executor.close().finally(() => process.exit(EXIT.failed));
    };
    const sandbox = executorSandbox(context, config);
    const executor = await startExecutor({ config, variables, sandbox, clock, log, onNoTools });
    return executor;
  });
}

/** The tasks of one submitter: this installation's, or the holder of `NEO_EXECUTOR_TOKEN`. */
export async function executorMcp(context: CliContext): Promise<void> {
  const [{ taskEndpoint }, { userOf }, { createExecutorClient }, { startTaskServer }, { taskKey }] = await Promise.all([
    import('../access/executor.ts'),
    import('../access/chronos.ts'),
    import('../../executor/client.ts'),
    import('../../executor-mcp/server.ts'),
    import('../../executor-mcp/tasks.ts'),
  ]);
  const userId = userOf(context, undefined);
  const { url, token } = taskEndpoint(context);
  const log = await context.log('executor-mcp', 'warn');
  const server = startTaskServer({
    executor: createExecutorClient({ url, token, userId, clock: context.clock }),
    // Without a token the executor distinguishes no submitters either.
    key: taskKey(token ?? '', userId),
    ...{ log, clock: context.clock },
  });
  await untilClosed(server);
}

/**
 * Neo gets the submitter's token of this installation, and only for the executor on this computer. Neo never gets the
 * operator's tokens: with them it could submit intents for any user.
 */
function ownExecutorToken({ settings, home }: CliContext, label: string | undefined): Settings {
  const { NEO_EXECUTOR_URL: url, NEO_EXECUTOR_TOKEN: given } = settings;
  if (url === undefined || !isOnThisComputer(url) || given !== undefined) return {};
  const own = label === readLabel(home) ? readSubmitter(home)?.token : undefined;
  return own === undefined ? {} : { NEO_EXECUTOR_TOKEN: own };
}

export async function neo(context: CliContext): Promise<void> {
  const { parseNeoConfig } = await import('../../agents/neo/config.ts');
  const { startNeo } = await import('../../agents/neo/daemon.ts');
  // Not through `toolOptions`, whose file loads chronosd's client: a wake waits for this start.
  const { settings, environment } = context;
  const isMachine = environment[SPAWN_ID_VARIABLE] !== undefined;
  const label = settings.MATRIX_USER_ID ?? (isMachine ? undefined : readLabel(context.home));
  const { EXECUTOR_TOKEN: _, EXECUTOR_ADMIN_TOKEN: __, ...less } = settings;
  const variables = {
    ...less,
    ...(label === undefined ? {} : { MATRIX_USER_ID: label }),
    ...ownExecutorToken(context, label),
  };
  const config = parseNeoConfig(variables);
  const { clock } = context;
  // After a restart with correct tools, the turns continue.
  const onFatal = (error: Error) => {
    process.stderr.write(`${printable(error.message)}\n`);
    process.exit(EXIT.failed);
  };
  await runDaemon(context, 'neo', (log) => {
    // A failure here does not delay the prompt.
    const onPrompt = (at: number) => {
      const reported = import('../access/chronometric.ts').then(({ reportPrompt }) => reportPrompt(context, at));
      reported.catch((err: unknown) => log.warn({ err }, 'chronometric did not receive a prompt'));
    };
    return startNeo({ config, variables, sandbox: neoSandbox(context, config), clock, log, onFatal, onPrompt });
  });
}

/** Runs until the client or a signal closes a server on stdin and stdout, and ends the process. */
async function untilClosed(
  server: { close(): Promise<void>; closed: Promise<unknown> },
  atEnd: () => Promise<void> = async () => {},
): Promise<never> {
  const end = () => void server.close();
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  await server.closed;
  await atEnd();
  // Abandoned calls may still hold a socket.
  process.exit(EXIT.done);
}

export async function ledger(context: CliContext): Promise<void> {
  const { startLedger } = await import('../../../examples/ledger/server.ts');
  const log = await context.log('ledger', 'warn');
  const server = startLedger({ dataDir: context.settings.LEDGER_DATA_DIR!, log, clock: context.clock });
  await untilClosed(server);
}

export type CapabilityFlags = { workspace?: string; allow?: string; remotes?: string };

async function browser({ environment, clock }: CliContext, { allow }: CapabilityFlags): Promise<void> {
  const [{ runBrowser }, { WebAccess }] = await Promise.all([
    import('../../capabilities/browser.ts'),
    import('../../kit/http/web-access.ts'),
  ]);
  process.exit(await runBrowser({ web: new WebAccess({ clock, allow }), path: environment.PATH }));
}

/** Serves one capability. Only its command line defines its workspace and hosts. */
export async function capability(context: CliContext, flags: CapabilityFlags, name: string): Promise<void> {
  const { CAPABILITIES, startCapability } = await import('../../capabilities/server.ts');
  if (name === 'browser') return browser(context, flags);
  const known = CAPABILITIES.find((one) => one === name);
  if (known === undefined)
    throw new UsageError(`name must be one of ${CAPABILITIES.join(', ')}, browser (got ${name})`);
  const { settings, environment, clock } = context;
  const log = await context.log(`capability-${known}`, 'warn');
  const server = startCapability({
    ...flags,
    ...{ name: known, log, clock, path: environment.PATH },
    searchUrl: settings.NEO_SEARCH_URL,
    searchKey: settings.NEO_SEARCH_KEY,
    gitToken: settings.EXECUTOR_GIT_TOKEN,
    isUnsandboxedAllowed: settings.REVEILLE_SHELL_WITHOUT_WALLS === '1',
    sandbox: environment[SANDBOX_VARIABLE],
  });
  await untilClosed(server);
}

/** Compares the tools of the proxy with the shipped manifests and skills. */
async function compareTools(): Promise<SelftestReport> {
  const { runSelftest } = await import('../../chronos-mcp/selftest.ts');
  const { TOOLS_FILE } = await import('../../chronos-mcp/tools.ts');
  return runSelftest({
    toolsFile: TOOLS_FILE,
    agentsDir: join(PACKAGE_ROOT, 'agents'),
    skillsDir: join(PACKAGE_ROOT, 'skills'),
  });
}

async function selftest(context: CliContext): Promise<void> {
  const report = await compareTools();
  const verdict = report.ok
    ? `the tools match in ${report.checked.length} places`
    : report.differences.map((difference) => `differs: ${difference}`);
  context.out.result(report, verdict);
  if (!report.ok) context.process.exitCode = EXIT.failed;
}

/** How `alarm_set` finds the conversation of its client: from the client's hook, else from the wake that started it. */
async function sessionFinder({ home, environment }: CliContext): Promise<() => Conversation | undefined> {
  const { clientProcess } = await import('../../kit/process/process-info.ts');
  const { sessionOf } = await import('../../chronos-mcp/sessions.ts');
  const client = clientProcess();
  const { [CONVERSATION_VARIABLE]: id } = environment;
  const ofWake = conversationIdSchema.safeParse(id).success ? { id: id! } : undefined;
  return () => sessionOf(home.sessionsFolder, home.wakeTargetFile, client) ?? ofWake;
}

export async function mcp(context: CliContext, flags: { selftest?: boolean }): Promise<void> {
  if (flags.selftest) return selftest(context);
  const { localChronosDefaults } = await import('../access/chronos.ts');
  const { startChronosMcp } = await import('../../chronos-mcp/server.ts');
  const log = await context.log('chronos-mcp', 'warn');
  const { ok, differences } = await compareTools();
  if (!ok) throw new ReveilleError('conflict', differences.map((difference) => `differs: ${difference}`).join('\n'));
  const endTraces = await startOwnTraces(context, 'chronos-mcp', log);
  const server = startChronosMcp({
    settings: context.settings,
    localDefaults: () => localChronosDefaults(context),
    zone: async () => (await import('../access/chronometric.ts')).zoneOfUser(context),
    log,
    clock: context.clock,
    session: await sessionFinder(context),
  });
  await untilClosed(server, endTraces);
}

/** The session is the one that the client's hook recorded with its last prompt. */
export async function mcpChannel(context: CliContext): Promise<void> {
  const { home, clock } = context;
  const [{ startChannel }, { clientProcess }, { sessionOf }] = await Promise.all([
    import('../../agents/channel/server.ts'),
    import('../../kit/process/process-info.ts'),
    import('../../chronos-mcp/sessions.ts'),
  ]);
  const client = clientProcess();
  if (client === undefined)
    throw new ReveilleError('unavailable', 'the client that started this server is not known; a channel needs it');
  const log = await context.log('mcp-channel', 'warn');
  const session = () => sessionOf(home.sessionsFolder, home.wakeTargetFile, client)?.id;
  await untilClosed(startChannel({ folder: home.channelFolder, client, session, log, clock }));
}

export type ChronometricFlags = { byCalls?: boolean };

export async function chronometric(context: CliContext, { byCalls = false }: ChronometricFlags): Promise<void> {
  const { settings, clock } = context;
  const { startChronometric } = await import('../../chronometric/server.ts');
  const log = await context.log('chronometric', 'warn');
  const server = startChronometric({
    dataDir: settings.CHRONOMETRIC_DATA_DIR!,
    environment: settings,
    presence: byCalls ? 'calls' : 'running',
    log,
    clock,
  });
  await untilClosed(server);
}

/** A router stops its machines one grace period after its deliveries have ended. */
const DRAIN_LIMIT_MS = 30_000;
/** Per semispace (decision 20): V8's default of 64 needs 90 MB more in a burst; 8 needs 7 % more CPU per fire. */
const YOUNG_GENERATION_MIB = 16;

type Daemon = { url: string; close(): Promise<void>; public?: { readonly url: string } };

/**
 * Starts a daemon, prints its address (`--json`: one line on stdout), and runs until SIGTERM or SIGINT has drained it.
 */
async function runDaemon(
  context: CliContext,
  name: DaemonName,
  start: (log: Logger) => Promise<Daemon>,
): Promise<void> {
  const { out, clock, home } = context;
  // Without generated secrets it may be the volume of a container, whose group an operator has chosen.
  if (existsSync(home.secretsFile)) checkHome(home);
  const log = await context.log(name, out.live ? 'warn' : 'info');
  const endTraces = await startOwnTraces(context, name, log);
  const daemon = await namingPort(name, () => start(log));
  boundYoungGeneration(YOUNG_GENERATION_MIB);
  const { url, public: publicListener } = daemon;
  const more = publicListener === undefined ? '' : `, users connect at ${publicListener.url}`;
  out.result(
    { system: name, url, ...(publicListener && { public_url: publicListener.url }), pid: process.pid },
    `${name} listens on ${url}${more}; Ctrl-C ends it`,
  );
  onTermination(() => daemon.close().finally(endTraces), { log, clock, hardLimitMs: DRAIN_LIMIT_MS });
  await new Promise(() => {});
}
