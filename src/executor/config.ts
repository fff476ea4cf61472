/** The executor's configuration (docs/reference/settings.md). */
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { hostNames, listenerSettings, parseListenerSettings, requireToken } from '../kit/http/listener-settings.ts';
import { modelSettings, parseModelConfig } from '../kit/model/endpoint.ts';
import { bundledPolicy } from '../mcp-host/bundled-programs.ts';
import { limitSettings, parseLimits } from '../mcp-host/limits.ts';
import {
  credentialSetting,
  hostSetting,
  isOnThisComputer,
  isolationSetting,
  parseSettings,
  portSetting,
  type Settings,
  secretSetting,
  stopStart,
  switchSetting,
  tokenSetting,
  urlSetting,
  wholeNumber,
} from '../wire/settings.ts';
import { ENROLLMENTS } from './journal/roster.ts';

/** Limits on one user's open intents. */
export type IntentBounds = {
  readonly openIntents: number;
  /** Bytes of conversation that were submitted with them and are stored until they are compiled. */
  readonly contextBytes: number;
};

const commandLine = z.tuple([z.string().min(1)], z.string());
const commandSetting = z.string().transform((text, context) => {
  try {
    const command = commandLine.safeParse(JSON.parse(text));
    if (command.success) return command.data as [string, ...string[]];
  } catch {
    // Reported below.
  }
  context.addIssue('must be a JSON list of a program and its arguments, such as ["/usr/bin/notify-me","--now"]');
  return z.NEVER;
});

/** The variables that the executor reads. */
export const executorSettingsSchema = z.object({
  /** The address of the listener. */
  EXECUTOR_HOST: hostSetting,
  /** The port; 0 selects a free one. */
  EXECUTOR_PORT: portSetting.default(8081),
  ...listenerSettings('EXECUTOR'),
  /** Further host names of the executor, besides loopback names and the host; separated by commas. */
  EXECUTOR_ALLOWED_HOSTS: z.string().optional(),
  /** The folder of intents, receipts and the signing key; default: `executor` below `REVEILLE_HOME`. */
  EXECUTOR_DATA_DIR: z.string().optional(),
  /** The folder of an installation; the default location of the data folders. */
  REVEILLE_HOME: z.string().optional(),
  /** The operator's bearer token, for the intents of every user. */
  EXECUTOR_TOKEN: tokenSetting.optional(),
  /** The admin token for the rosters of approvers and submitters; must differ from `EXECUTOR_TOKEN`. */
  EXECUTOR_ADMIN_TOKEN: tokenSetting.optional(),
  /** The authority that the first approver of a user needs. */
  EXECUTOR_ENROLLMENT: z.enum(ENROLLMENTS).default('operator'),
  /** Allows missing secrets on loopback, for development. */
  EXECUTOR_DEV: switchSetting.default(false),
  /** Whether programs that a daemon starts run in a sandbox: if possible, always, or never. */
  REVEILLE_SEPARATION: isolationSetting,
  /** The manifest of its MCP servers; the bundled one by default. */
  EXECUTOR_MANIFEST: z.string().optional(),
  /**
   * The policy file; `none` requires an approval for every escalate-class call. The bundled policy is the default for
   * the bundled manifest.
   */
  EXECUTOR_POLICY: z.string().optional(),
  /** The workspace of the servers of the bundled manifest. */
  EXECUTOR_WORKSPACE: z.string().optional(),
  /** Hosts of private networks that its fetch may reach, separated by commas. */
  EXECUTOR_FETCH_ALLOW: z.string().max(4096).optional(),
  /** Prefixes of the remote addresses that its git may use, separated by commas. */
  EXECUTOR_GIT_REMOTES: z.string().max(4096).optional(),
  /** The credential of its git. */
  EXECUTOR_GIT_TOKEN: credentialSetting.optional(),
  ...limitSettings('EXECUTOR'),
  ...modelSettings('EXECUTOR'),
  /** How long the outcome of a call with a lost answer is queried before it counts as unknown. */
  EXECUTOR_RECONCILE_SECONDS: wholeNumber(0, 24 * 60 * 60).default(60),
  /** Open intents of one user. */
  EXECUTOR_MAX_OPEN_INTENTS: wholeNumber(1, 1_000_000).default(1000),
  /** Conversation that was submitted with them and is stored until they are compiled. */
  EXECUTOR_MAX_CONTEXT_MIB: wholeNumber(1, 100_000).default(16),
  /** Open streams of events of one user; 0 removes the limit, here and below. */
  EXECUTOR_EVENT_STREAMS_PER_USER: wholeNumber(0, 100_000_000).default(32),
  /** The same of all users. Each stream keeps a connection. */
  EXECUTOR_EVENT_STREAMS: wholeNumber(0, 100_000_000).default(2000),
  /** Receiver of a webhook when a question waits. */
  EXECUTOR_NOTIFY_URL: urlSetting.optional(),
  /** The secret that signs the webhook. */
  EXECUTOR_NOTIFY_SECRET: secretSetting.optional(),
  /** A program that gets the question as JSON on its standard input. */
  EXECUTOR_NOTIFY_COMMAND: commandSetting.optional(),
  /** The folder with a key for each user whose alarms a plan may set; default: `agent-keys` in its data folder. */
  EXECUTOR_AGENT_KEYS: z.string().min(1).optional(),
  /** The chronosd that wakes agents that parked an intent. */
  EXECUTOR_CHRONOS_URL: urlSetting.optional(),
  /** chronosd's `CHRONOS_TOKEN`. */
  EXECUTOR_CHRONOS_TOKEN: credentialSetting.optional(),
});

type ExecutorSettings = z.output<typeof executorSettingsSchema>;

/** The address may be logged. */
function refuseCredentials(name: string, url: string): void {
  const { username, password } = new URL(url);
  if (username !== '' || password !== '') stopStart(`${name} must be an address without a user name or password`);
}

/** Not the transport token: a program that transports tasks and answers must not decide who may answer. */
function adminTokenOf({ EXECUTOR_TOKEN, EXECUTOR_ADMIN_TOKEN, EXECUTOR_DEV }: ExecutorSettings): string | undefined {
  if (EXECUTOR_ADMIN_TOKEN === undefined) {
    if (EXECUTOR_DEV) return undefined;
    return stopStart(
      'EXECUTOR_ADMIN_TOKEN is not set: give a secret of at least 16 characters, which is needed to enrol approvers, or EXECUTOR_DEV=1 while developing',
    );
  }
  if (EXECUTOR_ADMIN_TOKEN === EXECUTOR_TOKEN)
    stopStart('EXECUTOR_ADMIN_TOKEN must not be EXECUTOR_TOKEN: a program that submits tasks must not enrol approvers');
  return EXECUTOR_ADMIN_TOKEN;
}

/**
 * The policy file, from `EXECUTOR_POLICY` and `EXECUTOR_MANIFEST`; `none` means no policy. The bundled policy applies
 * only to the bundled manifest.
 */
export function effectivePolicy(setting: string | undefined, manifest: string | undefined): string | undefined {
  if (setting) return setting === 'none' ? undefined : setting;
  return manifest ? undefined : bundledPolicy();
}

function dataDirOf({ EXECUTOR_DATA_DIR, REVEILLE_HOME }: ExecutorSettings): string {
  if (EXECUTOR_DATA_DIR !== undefined) return EXECUTOR_DATA_DIR;
  if (REVEILLE_HOME !== undefined) return join(REVEILLE_HOME, 'executor');
  return stopStart('EXECUTOR_DATA_DIR is not set: give a folder for intents and their receipts, or set REVEILLE_HOME');
}

/** Receivers of notifications about waiting questions when the person may be absent. */
export type NotifyConfig = {
  /** Receiver of a signed webhook. */
  readonly webhook: { readonly url: string; readonly secret: string | undefined } | undefined;
  /** A program and its arguments; gets the question as JSON on its standard input. */
  readonly command: readonly [string, ...string[]] | undefined;
};

function notifyOf(read: ExecutorSettings): NotifyConfig {
  const { EXECUTOR_NOTIFY_URL: url, EXECUTOR_NOTIFY_SECRET: secret, EXECUTOR_NOTIFY_COMMAND: command } = read;
  if (url === undefined && secret !== undefined) {
    stopStart('EXECUTOR_NOTIFY_URL is not set, but EXECUTOR_NOTIFY_SECRET is: give the address as well');
  }
  if (url !== undefined) refuseCredentials('EXECUTOR_NOTIFY_URL', url);
  return { webhook: url === undefined ? undefined : { url, secret }, command };
}

type ChronosConfig = { readonly url: string; readonly token: string } | undefined;

function chronosOf(read: ExecutorSettings): ChronosConfig {
  const { EXECUTOR_CHRONOS_URL: url, EXECUTOR_CHRONOS_TOKEN: token } = read;
  if (url === undefined) {
    if (token !== undefined)
      stopStart('EXECUTOR_CHRONOS_URL is not set, but EXECUTOR_CHRONOS_TOKEN is: give the address as well');
    return undefined;
  }
  if (token === undefined)
    stopStart('EXECUTOR_CHRONOS_TOKEN is not set, but EXECUTOR_CHRONOS_URL is: give the token as well');
  refuseCredentials('EXECUTOR_CHRONOS_URL', url);
  return { url, token };
}

type Security = {
  token: string | undefined;
  adminToken: string | undefined;
  notify: NotifyConfig;
  chronos: ChronosConfig;
};

/** Warnings for the log about insecure settings. */
function warningsOf({ token, adminToken, notify: { webhook }, chronos }: Security): string[] {
  const isOpen = (url: string | undefined) => url?.startsWith('http:') === true && !isOnThisComputer(url);
  const found: readonly [applies: boolean, warning: string][] = [
    [token === undefined, 'EXECUTOR_TOKEN is not set: any program on this computer may submit tasks (EXECUTOR_DEV=1)'],
    [adminToken === undefined, 'EXECUTOR_ADMIN_TOKEN is not set: approvers cannot be enrolled (EXECUTOR_DEV=1)'],
    [
      chronos === undefined,
      'EXECUTOR_CHRONOS_URL is not set: an agent that was woken by an alarm and parks a task is not notified of the outcome',
    ],
    [
      webhook !== undefined && webhook.secret === undefined,
      'EXECUTOR_NOTIFY_SECRET is not set: the receiver cannot distinguish genuine notifications from forged ones',
    ],
    [
      isOpen(webhook?.url),
      'EXECUTOR_NOTIFY_URL is not https: questions with all amounts and names are sent unencrypted',
    ],
    [
      isOpen(chronos?.url),
      'EXECUTOR_CHRONOS_URL is not https: EXECUTOR_CHRONOS_TOKEN and results are sent unencrypted',
    ],
  ];
  return found.flatMap(([applies, warning]) => (applies ? [warning] : []));
}

export type ExecutorConfig = ReturnType<typeof parseExecutorConfig>;

/**
 * Reads the executor's variables.
 *
 * @throws ReveilleError `invalid_request` naming every missing or wrong variable and the allowed values
 */
export function parseExecutorConfig(settings: Settings) {
  const read = parseSettings(executorSettingsSchema, settings);
  const { EXECUTOR_TOKEN: token, EXECUTOR_DEV: isDev, EXECUTOR_HOST: host } = read;
  requireToken('EXECUTOR_TOKEN', 'EXECUTOR', { token, isDev, host });
  const [notify, chronos] = [notifyOf(read), chronosOf(read)];
  const adminToken = adminTokenOf(read);
  const manifestPath = read.EXECUTOR_MANIFEST;
  const { model, warnings } = parseModelConfig('EXECUTOR', settings);
  return Object.freeze({
    host,
    port: read.EXECUTOR_PORT,
    listener: parseListenerSettings('EXECUTOR', host, settings),
    allowedHosts: hostNames(read.EXECUTOR_ALLOWED_HOSTS),
    dataDir: dataDirOf(read),
    /** `undefined`: every request is accepted; only in development and only on loopback. */
    token,
    /** Without it the rosters of approvers and submitters cannot be changed. */
    adminToken,
    enrollment: read.EXECUTOR_ENROLLMENT,
    /** `bundled` is the manifest of the package. */
    manifest: manifestPath === undefined ? ('bundled' as const) : { path: manifestPath },
    /** Without a policy every escalate-class call needs an approval. */
    policy: effectivePolicy(read.EXECUTOR_POLICY, manifestPath),
    workspace: resolve(read.EXECUTOR_WORKSPACE ?? join(dataDirOf(read), 'workspace')),
    /** They override those of the manifest. */
    limits: parseLimits('EXECUTOR', settings),
    /** Without an endpoint only intents given as JSON can be executed. */
    model,
    reconcileMs: read.EXECUTOR_RECONCILE_SECONDS * 1000,
    bounds: { openIntents: read.EXECUTOR_MAX_OPEN_INTENTS, contextBytes: read.EXECUTOR_MAX_CONTEXT_MIB * 1024 * 1024 },
    streams: {
      perOwner: read.EXECUTOR_EVENT_STREAMS_PER_USER || Number.MAX_SAFE_INTEGER,
      inAll: read.EXECUTOR_EVENT_STREAMS || Number.MAX_SAFE_INTEGER,
    },
    notify,
    /** Without it no agent that parked an intent is woken. */
    chronos,
    /** `<user>.key` for each user. */
    agentKeysDir: resolve(read.EXECUTOR_AGENT_KEYS ?? join(dataDirOf(read), 'agent-keys')),
    isolation: read.REVEILLE_SEPARATION,
    warnings: [...warningsOf({ token, adminToken, notify, chronos }), ...warnings],
  });
}
