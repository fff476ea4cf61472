/** The parts of `reveille up`: router, chronosd and executor in this process, Neo as a machine that starts when it is woken. */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { openAgentHost } from '../../agents/host.ts';
import { parseNeoConfig } from '../../agents/neo/config.ts';
import { checkFiles } from '../../agents/neo/tools/file-check.ts';
import { manifestNeeds, type ToolConfig } from '../../agents/neo/tools/settings.ts';
import { createChronosClient } from '../../chronos/client.ts';
import { parseChronosConfig } from '../../chronos/config.ts';
import { type RunningChronos, startChronos } from '../../chronos/daemon.ts';
import type { FireReport } from '../../chronos/dispatch/dispatcher.ts';
import { parseExecutorConfig } from '../../executor/config.ts';
import { type RunningExecutor, startExecutor } from '../../executor/daemon.ts';
import type { AgentIdentity } from '../../kit/identity/agent.ts';
import { loadOrCreateKey } from '../../kit/identity/keys.ts';
import { fileIdentity } from '../../kit/identity/rotation.ts';
import { createRouterClient, type RouterClient } from '../../router/client.ts';
import { parseRouterConfig } from '../../router/config.ts';
import { type RunningRouter, startRouter } from '../../router/daemon.ts';
import type { MachinePut, MachineView } from '../../router/machines/machine-schema.ts';
import type { ProcessSpec } from '../../router/providers/process-spec.ts';
import type { OnWake } from '../../router/wake.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Settings } from '../../wire/settings.ts';
import { VERSION } from '../../wire/version.ts';
import { a2aServices } from '../access/a2a.ts';
import { eachKey } from '../access/chronos.ts';
import { executorAdminAt } from '../access/executor.ts';
import { endAlarmsBy, joinedServices, localAlarms, localIssuers, localServices } from '../access/public-services.ts';
import { ensureCredential } from '../access/router.ts';
import { hoursOfUser } from '../access/user-hours.ts';
import { APPROVER_VARIABLES } from '../approver/approver-key.ts';
import { ensureApprover } from '../approver/statements.ts';
import type { CliContext } from '../context.ts';
import {
  beginFirstStart,
  loadOrMakeLabel,
  loadOrMakeSecrets,
  type MadeSecrets,
  removeRun,
  writeAccess,
  writeRun,
} from '../home/home.ts';
import { PROGRAM } from '../home/package-root.ts';
import { takeHome } from '../home/taken-home.ts';
import { namingPort } from './listener.ts';
import type { OwnConsole } from './own-console.ts';
import { ensureSubmitter, existingMachine, isOwnNeo } from './own-neo.ts';
import { accessGrants, executorSandbox, machineSandbox } from './sandbox.ts';

/** Neo stops after this long without a turn. */
const NEO_IDLE_SECONDS = 300;

/** The executor's servers start with the first intent, or when nothing else is in progress. */
const TOOLS_AFTER_MS = 30_000;

/**
 * Settings of Neo and of its built-in servers. They are passed by name, so that their values are not written to disk. Neo
 * reads nothing in the home, and has nothing else from there.
 */
const HANDED_ON = [
  ...['MODEL', 'CHEAP_MODEL', 'MODEL_PROVIDER', 'MODEL_BASE_URL', 'MODEL_API_KEY', 'EMBED_MODEL', 'CONTEXT_TOKENS'],
  ...['MANIFEST', 'WORKSPACE', 'SKILL', 'ESCALATE_PATTERNS', 'EXECUTOR_URL', 'EXECUTOR_TOKEN', 'DATA_DIR'],
  ...['FETCH_ALLOW', 'SEARCH_URL', 'SEARCH_KEY', 'RETRY_SECONDS', 'RETRY_HOURS'],
].map((name) => `NEO_${name}`);
const HANDED_ON_TO_SERVERS = [
  'CHRONOMETRIC_DATA_DIR',
  'REVEILLE_PROFILE',
  'NEURODOCK_PROFILE_PATH',
  'REVEILLE_LOG',
  'REVEILLE_SEPARATION',
  'REVEILLE_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
];

/** The prefix of Neo's variables in the router: other machines may use the same names for other values. */
const IN_MEMORY = 'REVEILLE_NEO_';

/** The agent that is woken: Neo, with its current state in the router, or an agent of the user's own. */
export type LocalAgent = { kind: 'neo'; running: string | undefined } | { kind: 'own'; machine: MachineView };

export type LocalStack = {
  chronos: RunningChronos;
  router: RunningRouter;
  executor: RunningExecutor;
  identity: AgentIdentity;
  agent: LocalAgent;
  /** Why nothing can be approved from here; `undefined` when approval is possible. */
  noApprover: string | undefined;
  /** Bearer of chronosd. */
  chronosToken: string;
  /** Whether no earlier start of this home has set its welcome alarm. */
  isFirst: boolean;
  /**
   * Adopts the machines and turns of an earlier `up`. Nothing touches them before: a start that is refused leaves them
   * as they were.
   *
   * @returns the agent as it is then
   * @throws ReveilleError when the records of the router cannot be read
   */
  recover(): Promise<LocalAgent>;
  /** Overdue alarms fire, and open intents and tasks continue. Call it after {@link recover}. */
  begin(): void;
  close(): Promise<void>;
};

export type LocalStackEvents = {
  onFire: (report: FireReport) => void;
  onWake: OnWake;
  /** Serves other requests at the public listener; `secret` signs the codes. */
  console?: Pick<OwnConsole, 'pagesOf' | 'secret' | 'oauth'>;
};

/**
 * Starts the stack, up to {@link LocalStack.recover}. Secrets and identity are created on the first start and kept.
 *
 * @throws ReveilleError when a port is in use, the data is in use by another process, or a setting is wrong
 */
export async function startLocalStack(context: CliContext, events: LocalStackEvents): Promise<LocalStack> {
  const { home } = context;
  await using parts = new AsyncDisposableStack();
  parts.defer(takeHome(context));
  const isFirst = beginFirstStart(home);
  const secrets = loadOrMakeSecrets(home);
  const identity = fileIdentity(loadOrMakeLabel(home), home.keyFile, loadOrCreateKey(home.keyFile));
  const installation: Installation = {
    context,
    secrets,
    identity,
    settings: { ...secrets, ...context.settings },
    // Variables that machines may refer to. Neo's are added before the first wake.
    environment: { ...withoutApprovers(context.environment), REVEILLE_HOME: home.path },
  };
  // Neo reads these when it is woken; a wrong one is reported now.
  const tools = toolsOf(installation);

  // Parts close in reverse order. The executor closes after the router: turns that end may still submit an intent.
  let executor: RunningExecutor | undefined;
  parts.defer(() => executor?.close());
  // chronosd needs the router's address first, and turn reports need a running chronosd.
  let chronosUrl: string | undefined;
  // Alarms fire, and open tasks and intents continue, once all that can refuse the start has succeeded.
  const begun = Promise.withResolvers<void>();
  const router = await startOwnRouter(installation, events, () => chronosUrl, begun.promise);
  parts.defer(() => router.close());
  const chronos = await startOwnChronosd(installation, router, events.onFire, begun.promise);
  // Before the router: chronosd's last deliveries still need it.
  parts.defer(() => chronos.close());
  chronosUrl = chronos.url;
  executor = await startOwnExecutor(installation, chronos.url, begun.promise);
  parts.defer(() => removeRun(home));
  const running = { router, chronos, executor };
  const noApprover = await enrolOwn(installation, running);
  const agent = await registerNeo(installation, running, tools, events.console?.secret);

  const started = parts.move();
  return {
    ...running,
    ...{ identity, agent, noApprover, chronosToken: installation.settings.CHRONOS_TOKEN, isFirst },
    async recover() {
      router.recover();
      const machines = createRouterClient({ url: router.url, token: installation.settings.ROUTER_ADMIN_TOKEN });
      return agent.kind === 'neo' ? { ...agent, running: (await machines.show(identity.owner)).running } : agent;
    },
    begin: begun.resolve,
    close: () => started.disposeAsync(),
  };
}

/** The parameters of every part. */
type Installation = {
  context: CliContext;
  secrets: MadeSecrets;
  settings: Settings & MadeSecrets;
  identity: AgentIdentity;
  environment: Record<string, string | undefined>;
};

type Running = Pick<LocalStack, 'router' | 'chronos' | 'executor'>;

/** @throws ReveilleError for a problem that would prevent Neo's start, as far as visible now */
function toolsOf({ context, settings, identity, secrets }: Installation): ToolConfig | undefined {
  const { NEO_DAEMON_TOKEN } = secrets;
  const { tools, dataDir } = parseNeoConfig({ ...settings, MATRIX_USER_ID: identity.label, NEO_DAEMON_TOKEN });
  const where = 'http://127.0.0.1';
  const later = { NEO_CHRONOS_URL: where, REVEILLE_CHRONOS_URL: where, MATRIX_CHRONOS_URL: where };
  const own = { MATRIX_USER_ID: identity.label, MATRIX_EXECUTOR_KEYFILE: context.home.keyFile };
  if (tools)
    checkFiles(tools, { ...later, MATRIX_CHRONOS_TOKEN: settings.CHRONOS_TOKEN, ...settings, ...own }, dataDir);
  return tools;
}

async function startOwnRouter(
  { context, settings, identity, environment }: Installation,
  { onWake, console }: LocalStackEvents,
  ownChronos: () => string | undefined,
  startAfter: Promise<void>,
): Promise<RunningRouter> {
  const config = parseRouterConfig({ ...settings, ROUTER_WAKE_TOKEN: settings.CHRONOS_WAKE_TOKEN });
  const log = await context.log('router', 'error');
  const langgraph = config.public.hasLanggraph ? await import('../access/langgraph.ts') : undefined;
  const { owner } = identity;
  const alarmsOf = localAlarms(context, owner);
  const a2a = await a2aServices(context, {
    ...{ router: config, alarmsOf, needsGrant: false },
    ...{ issuers: localIssuers(context, owner, console?.oauth), startAfter, level: 'error' },
  });
  const remote = localServices(context, owner, config.dataDir, console?.oauth);
  const servicesOf = joinedServices(remote?.servicesOf, a2a, langgraph?.localLanggraph(context, owner));
  return namingPort('router', () =>
    startRouter({
      config,
      openAgents: openAgentHost,
      environment,
      sandbox: machineSandbox(context, config.isolation),
      grantedTo: (userId) => (userId === identity.owner ? accessGrants(context) : []),
      checkSecrets: (userId) => (userId === identity.owner ? context.home.checkSecretsFile : undefined),
      version: VERSION,
      clock: context.clock,
      log,
      ...{ onWake, pagesOf: console?.pagesOf, servicesOf, endAlarms: endAlarmsBy(alarmsOf) },
      ...{ subscribers: remote?.subscribers, recoversLater: true },
      chronosUrl: () => config.chronosUrl ?? ownChronos(),
    }),
  );
}

async function startOwnChronosd(
  { context, settings }: Installation,
  router: Pick<RunningRouter, 'url' | 'public'>,
  onFire: LocalStackEvents['onFire'],
  startAfter: Promise<void>,
): Promise<RunningChronos> {
  const config = parseChronosConfig({
    CHRONOS_PUBLIC_URL: settings.ROUTER_PUBLIC_URL ?? router.public.url,
    ...settings,
    CHRONOS_ROUTER_WAKE_URL: `${router.url}/internal/wake`,
  });
  const log = await context.log('chronosd', 'error');
  const hours = hoursOfUser(context);
  return namingPort('chronosd', () => startChronos({ config, clock: context.clock, log, onFire, startAfter, hours }));
}

async function startOwnExecutor(
  { context, settings, identity }: Installation,
  chronosUrl: string,
  startAfter: Promise<void>,
): Promise<RunningExecutor> {
  const config = parseExecutorConfig(executorSettings(settings, chronosUrl));
  const variables = {
    ...withoutApprovers(settings),
    MATRIX_USER_ID: identity.label,
    REVEILLE_CHRONOS_URL: chronosUrl,
  };
  const log = await context.log('executor', 'error');
  const sandbox = executorSandbox(context, config);
  return namingPort('executor', () =>
    startExecutor({ config, variables, sandbox, toolsAfterMs: TOOLS_AFTER_MS, startAfter, clock: context.clock, log }),
  );
}

/**
 * Registers the agent and the executor of this installation at chronosd, and the user at the executor.
 *
 * @returns why nothing can be approved from here; `undefined` when approval is possible
 */
async function enrolOwn(
  { context, settings, identity }: Installation,
  { chronos, executor }: Running,
): Promise<string | undefined> {
  const ofPlans = executor.agentKeyOf(identity.owner) ?? [];
  await enrolOwnKeys(identity.label, [identity.publicKeyHex, executor.publicKey].concat(ofPlans), {
    url: chronos.url,
    token: settings.CHRONOS_TOKEN,
    adminToken: settings.CHRONOS_ADMIN_TOKEN,
  });
  const admin = executorAdminAt(context, executor.url, settings.EXECUTOR_ADMIN_TOKEN);
  const person = { environment: context.environment, user: identity.owner, now: context.clock.now() };
  return ensureApprover(admin, person);
}

/** Registers Neo with its environment, and records all addresses. */
async function registerNeo(
  { context, secrets, settings, identity, environment }: Installation,
  { router, chronos, executor }: Running,
  tools: ToolConfig | undefined,
  consoleSecret: string | undefined,
): Promise<LocalAgent> {
  const { home, clock } = context;
  const admin = executorAdminAt(context, executor.url, settings.EXECUTOR_ADMIN_TOKEN);
  const submitter = await ensureSubmitter(admin, home, identity.owner);
  const handedOn = {
    ...settings,
    ...executorOfNeo(settings, { url: executor.url, token: submitter }),
    MATRIX_CHRONOS_TOKEN: settings.CHRONOS_TOKEN,
  };
  const own = {
    MATRIX_USER_ID: identity.label,
    MATRIX_EXECUTOR_KEYFILE: home.keyFile,
    MATRIX_CHRONOS_URL: chronos.url,
    ...compiledIn(context.settings.NEO_DATA_DIR),
    ...workspaceOf(settings, tools),
  };
  const { env, values, spec } = await neoEnvironment(handedOn, own, tools, chronos.url);
  Object.assign(environment, values);
  const neo: MachinePut = {
    provider: 'process',
    // Its servers run in the sandbox of Neo: Neo must be able to write their folders.
    spec: { command: [process.execPath, PROGRAM, 'neo'], env, ...spec },
    idle_seconds: NEO_IDLE_SECONDS,
  };
  const machines = createRouterClient({ url: router.url, token: settings.ROUTER_ADMIN_TOKEN });
  const agent = await ensureMachine(machines, identity.owner, { ...neo, token: secrets.NEO_DAEMON_TOKEN });
  await ensureCredential(machines, home, identity.owner);
  writeAccess(home, { chronos_url: chronos.url, chronos_token: settings.CHRONOS_TOKEN });
  writeRun(home, {
    pid: process.pid,
    chronos_url: chronos.url,
    router_url: router.url,
    public_url: router.public.url,
    ...(consoleSecret !== undefined && { console_secret: consoleSecret, console_url: router.public.localhost }),
    executor_url: executor.url,
    started_at: formatInstant(clock.now()),
    neo,
  });
  return agent;
}

/** Neo's workspace, which is also the folder of its alarms' commands and paths. */
function workspaceOf({ NEO_WORKSPACE }: Settings, tools: ToolConfig | undefined): Record<string, string> {
  const named = tools?.workspace ?? NEO_WORKSPACE;
  if (named === undefined) return {};
  const workspace = resolve(named);
  mkdirSync(workspace, { recursive: true, mode: 0o700 });
  return { NEO_WORKSPACE: workspace };
}

/** Node's folder of compiled code for Neo, which may not write beside our code in a sandbox. */
const compiledIn = (dataDir: string | undefined): Record<string, string> =>
  dataDir === undefined ? {} : { NODE_COMPILE_CACHE: join(dataDir, 'compiled') };

/** Variables of an approver's key or of the rosters are passed to no program, not even by reference. */
function withoutApprovers(variables: Settings): Record<string, string | undefined> {
  const kept = Object.entries(variables).filter(
    ([name]) => !APPROVER_VARIABLES.test(name) && name !== 'EXECUTOR_ADMIN_TOKEN',
  );
  return Object.fromEntries(kept);
}

/** The variables of a model, without the prefix of a daemon. */
const MODEL_VARIABLES = ['MODEL', 'MODEL_PROVIDER', 'MODEL_BASE_URL', 'MODEL_API_KEY'] as const;

/** The executor's settings in this installation: it wakes agents through this chronosd, and uses Neo's model unless it has its own. */
function executorSettings(settings: Settings, chronosUrl: string): Settings {
  const hasModel = MODEL_VARIABLES.some((name) => settings[`EXECUTOR_${name}`] !== undefined);
  const ofNeo = Object.fromEntries(MODEL_VARIABLES.map((name) => [`EXECUTOR_${name}`, settings[`NEO_${name}`]]));
  const ownChronos = { EXECUTOR_CHRONOS_URL: chronosUrl, EXECUTOR_CHRONOS_TOKEN: settings.CHRONOS_TOKEN };
  return {
    // This user decides what its tools may do, for all users.
    EXECUTOR_ENROLLMENT: 'vouched',
    ...settings,
    ...(hasModel ? {} : ofNeo),
    ...(settings.EXECUTOR_CHRONOS_URL === undefined ? ownChronos : {}),
  };
}

/**
 * Registers the keys of this installation: its agent's, and the executor's, which wakes the agent. The user of `up` is
 * chronosd's operator, so this works with `required` enrollment and after a lost key file. A revoked key stays revoked.
 */
async function enrolOwnKeys(
  label: string,
  publicKeys: readonly string[],
  chronosd: { url: string; token: string; adminToken: string },
): Promise<void> {
  const client = createChronosClient(chronosd);
  const unknown = new Set(publicKeys);
  for await (const { public_key } of eachKey(client)) {
    unknown.delete(public_key);
    if (unknown.size === 0) return;
  }
  for (const public_key of unknown) await client.enrollAgent({ label, public_key });
}

/** Registers Neo for a user without an agent. A machine that was registered by hand stays. */
async function ensureMachine(router: RouterClient, owner: string, neo: MachinePut): Promise<LocalAgent> {
  const there = await existingMachine(router, owner);
  if (there && (there.state === 'deleted' || !isOwnNeo(there))) return { kind: 'own', machine: there };
  const { running } = await router.put(owner, neo);
  return { kind: 'neo', running };
}

/** The executor for Neo's intents: the configured one with its own token, else that of this installation. Neo never gets an operator's token. */
function executorOfNeo({ NEO_EXECUTOR_URL }: Settings, own: { url: string; token: string }): Settings {
  return NEO_EXECUTOR_URL === undefined ? { NEO_EXECUTOR_URL: own.url, NEO_EXECUTOR_TOKEN: own.token } : {};
}

/**
 * Neo's environment: its own settings, and the variables that the servers of its manifest refer to. Possible secrets are
 * in it by name only.
 *
 * @param settings the values of names
 * @param own public values that are set here
 * @returns also the values, which the router keeps in memory, and what the manifest says of the machine
 */
async function neoEnvironment(
  settings: Settings,
  own: Record<string, string>,
  tools: ToolConfig | undefined,
  chronosUrl: string,
): Promise<{ env: Record<string, string>; values: Settings; spec: Pick<ProcessSpec, 'writable' | 'checks'> }> {
  // Further variables that Neo has when it reads the manifest.
  const receipts = { NEO_CHRONOS_URL: chronosUrl, REVEILLE_CHRONOS_URL: chronosUrl };
  const needs = tools && (await manifestNeeds(tools, { ...settings, ...receipts, ...own }));
  const { variables: referred = [], writable = [], checks } = needs ?? {};
  const wanted = new Set([...HANDED_ON, ...HANDED_ON_TO_SERVERS, 'MATRIX_CHRONOS_TOKEN', ...referred]);
  const names = [...wanted].filter((name) => !(name in own) && !(name in receipts) && settings[name]);
  const inMemory = (name: string) => `${IN_MEMORY}${name}`;
  return {
    env: { ...Object.fromEntries(names.map((name) => [name, `\${${inMemory(name)}}`])), ...own },
    values: Object.fromEntries(names.map((name) => [inMemory(name), settings[name]])),
    spec: { ...(writable.length > 0 && { writable: [...writable] }), ...(checks && { checks }) },
  };
}
