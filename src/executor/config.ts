/** The executor's configuration (docs/contracts.md §11). */
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { type Door, doorSettings, hostNames, isLoopback, parseDoor } from '../kit/http/door.ts';
import { type ModelConfig, modelSettings, parseModelConfig } from '../kit/model/settings.ts';
import type { SeparationMode } from '../kit/process/separation.ts';
import { bundledPolicy } from '../mcp-host/bundled-programs.ts';
import { type HostLimits, limitSettings, parseLimits } from '../mcp-host/limits.ts';
import { ReveilleError } from '../wire/errors.ts';
import {
  parseSettings,
  portSetting,
  type Settings,
  secretSetting,
  separationSetting,
  switchSetting,
  urlSetting,
  wholeNumber,
} from '../wire/settings.ts';
import { ENROLLMENTS, type Enrollment } from './journal/roster.ts';

/** Bounds on one user's intents that are not over. */
export type IntentBounds = {
  readonly openIntents: number;
  /** Of the conversation that was handed over with them and is kept until they are compiled. */
  readonly contextBytes: number;
};

/** Who is told when a question waits and nobody may be there. */
export type NotifyConfig = {
  /** Where a signed webhook goes. */
  readonly webhook: { readonly url: string; readonly secret: string | undefined } | undefined;
  /** A program and its arguments; gets the question as JSON on its standard input. */
  readonly command: readonly [string, ...string[]] | undefined;
};

export type ExecutorConfig = {
  readonly host: string;
  readonly port: number;
  readonly listener: Door;
  /** `Host` values that pass besides loopback names and `host`. */
  readonly allowedHosts: readonly string[];
  readonly dataDir: string;
  /** `undefined`: every request is let in; only in development and only on loopback. */
  readonly token: string | undefined;
  /** Opens the rosters of approvers and submitters; without one nobody can be enrolled. */
  readonly adminToken: string | undefined;
  /** Whose word the first approver of a user needs. */
  readonly enrollment: Enrollment;
  /** The tools that it holds; `bundled` is the manifest that ships. */
  readonly manifest: { readonly path: string } | 'bundled';
  /** Limits of its servers that the environment sets; they go before those of the manifest. */
  readonly limits?: Partial<HostLimits>;
  /** The folder that the servers of the manifest that ships work in. */
  readonly workspace: string;
  /** A file of rules; the one that ships beside the manifest that ships, unless told. Without one every escalate-class call is asked about. */
  readonly policy: string | undefined;
  /** What compiles prose; without an endpoint only intents given as JSON can be carried out. */
  readonly model: ModelConfig;
  /** How long a call with a lost answer is asked about before its outcome counts as unknown. */
  readonly reconcileMs: number;
  /** What one user may leave open at once. */
  readonly bounds: IntentBounds;
  readonly notify: NotifyConfig;
  /** Where agents are woken that wait for an intent no more; nobody is woken without it. */
  readonly chronos: { readonly url: string; readonly token: string } | undefined;
  /** A folder with a key for each user whose alarms a plan may set: `<user>.key`. */
  readonly agentKeysDir: string;
  /** Whether its MCP servers run behind walls. */
  readonly separation: SeparationMode;
  /** Sentences for the log: what was let through that should not stay so. */
  readonly warnings: readonly string[];
};

const hostName = /^[A-Za-z0-9.:[\]_-]{1,253}$/;
const printableAscii = /^[\x21-\x7e]+$/;
const NO_SPACES = 'must be printable ASCII without spaces';

const commandLine = z.tuple([z.string().min(1)], z.string());
const commandSetting = z.string().transform((text, context) => {
  try {
    const command = commandLine.safeParse(JSON.parse(text));
    if (command.success) return command.data as [string, ...string[]];
  } catch {
    // Said below.
  }
  context.addIssue('must be a JSON list of a program and its arguments, such as ["/usr/bin/notify-me","--now"]');
  return z.NEVER;
});

/** The variables that the executor reads. */
export const executorSettingsSchema = z.object({
  /** Where it listens. */
  EXECUTOR_HOST: z.string().regex(hostName, 'must be an address or a host name').default('127.0.0.1'),
  /** The port; 0 lets the system pick one. */
  EXECUTOR_PORT: portSetting.default(8081),
  ...doorSettings('EXECUTOR'),
  /** Names by which others reach it, besides loopback names and the host; with commas between them. */
  EXECUTOR_ALLOWED_HOSTS: z.string().optional(),
  /** The folder of intents, receipts and the signing key; `executor` below `REVEILLE_HOME` unless told. */
  EXECUTOR_DATA_DIR: z.string().optional(),
  /** The folder of an installation, in which the data folders are that are not told. */
  REVEILLE_HOME: z.string().optional(),
  /** The operator's bearer, for the intents of every user. */
  EXECUTOR_TOKEN: secretSetting.regex(printableAscii, NO_SPACES).optional(),
  /** Opens the rosters of approvers and submitters; another one than `EXECUTOR_TOKEN`. */
  EXECUTOR_ADMIN_TOKEN: secretSetting.regex(printableAscii, NO_SPACES).optional(),
  /** Whose word the first approver of a user needs. */
  EXECUTOR_ENROLLMENT: z.enum(ENROLLMENTS).default('operator'),
  /** Goes without secrets on loopback, while developing. */
  EXECUTOR_DEV: switchSetting.default(false),
  /** Whether programs that a daemon starts run behind walls: where it can be, always, or never. */
  REVEILLE_SEPARATION: separationSetting,
  /** The file of the MCP servers that it holds; the one that ships unless told. */
  EXECUTOR_MANIFEST: z.string().optional(),
  /**
   * The file of rules for what is asked, allowed and refused; `none` asks for everything. The one that ships goes
   * with the manifest that ships.
   */
  EXECUTOR_POLICY: z.string().optional(),
  /** The folder that the servers of the manifest that ships work in. */
  EXECUTOR_WORKSPACE: z.string().optional(),
  /** Hosts of private networks that its fetch may reach, with commas between them. */
  EXECUTOR_FETCH_ALLOW: z.string().max(4096).optional(),
  /** What the addresses that its git speaks to must begin with, with commas between them. */
  EXECUTOR_GIT_REMOTES: z.string().max(4096).optional(),
  /** The credential of its git. */
  EXECUTOR_GIT_TOKEN: z.string().regex(printableAscii, NO_SPACES).optional(),
  ...limitSettings('EXECUTOR'),
  ...modelSettings('EXECUTOR'),
  /** How long a call with a lost answer is asked about before its outcome counts as unknown. */
  EXECUTOR_RECONCILE_SECONDS: wholeNumber(0, 24 * 60 * 60).default(60),
  /** Intents of one user that are not over. */
  EXECUTOR_MAX_OPEN_INTENTS: wholeNumber(1, 1_000_000).default(1000),
  /** What was handed over with them and is kept until they are compiled. */
  EXECUTOR_MAX_CONTEXT_MIB: wholeNumber(1, 100_000).default(16),
  /** Where a webhook goes when a question waits. */
  EXECUTOR_NOTIFY_URL: urlSetting.optional(),
  /** Signs it. */
  EXECUTOR_NOTIFY_SECRET: secretSetting.optional(),
  /** A program that gets the question as JSON on its standard input. */
  EXECUTOR_NOTIFY_COMMAND: commandSetting.optional(),
  /** A folder with a key for each user whose alarms a plan may set; `agent-keys` in its data folder unless told. */
  EXECUTOR_AGENT_KEYS: z.string().min(1).optional(),
  /** chronosd, where agents are woken that wait for an intent no more. */
  EXECUTOR_CHRONOS_URL: urlSetting.optional(),
  /** chronosd's `CHRONOS_TOKEN`. */
  EXECUTOR_CHRONOS_TOKEN: z.string().regex(printableAscii, NO_SPACES).optional(),
});

type ExecutorSettings = z.output<typeof executorSettingsSchema>;

function stop(message: string): never {
  throw new ReveilleError('invalid_request', message);
}

/** An address that can be shown in a log. */
function plainAddress(name: string, url: string): URL {
  const address = new URL(url);
  if (address.username === '' && address.password === '') return address;
  return stop(`${name} must be an address without a user name or password`);
}

function tokenOf(read: ExecutorSettings): string | undefined {
  if (read.EXECUTOR_TOKEN !== undefined) return read.EXECUTOR_TOKEN;
  if (!read.EXECUTOR_DEV) {
    stop('EXECUTOR_TOKEN is not set: give a secret of at least 16 characters, or EXECUTOR_DEV=1 while developing');
  }
  if (!isLoopback(read.EXECUTOR_HOST)) {
    const got = JSON.stringify(read.EXECUTOR_HOST);
    stop(`EXECUTOR_TOKEN is not set: without it EXECUTOR_HOST must be a loopback address (got ${got})`);
  }
  return undefined;
}

/** Not the transport token: whoever carries tasks and answers must not say who may answer. */
function adminTokenOf({ EXECUTOR_TOKEN, EXECUTOR_ADMIN_TOKEN, EXECUTOR_DEV }: ExecutorSettings): string | undefined {
  if (EXECUTOR_ADMIN_TOKEN === undefined) {
    if (EXECUTOR_DEV) return undefined;
    return stop(
      'EXECUTOR_ADMIN_TOKEN is not set: give a secret of at least 16 characters, without which nobody could be made an approver, or EXECUTOR_DEV=1 while developing',
    );
  }
  if (EXECUTOR_ADMIN_TOKEN === EXECUTOR_TOKEN)
    stop('EXECUTOR_ADMIN_TOKEN must not be EXECUTOR_TOKEN: whoever hands tasks over must not say who approves them');
  return EXECUTOR_ADMIN_TOKEN;
}

/**
 * The file of rules, from `EXECUTOR_POLICY` and `EXECUTOR_MANIFEST`; `none` stands for no rules. The rules that ship are about the tools that ship, and hold for no other
 * manifest.
 */
export function policyInUse(told: string | undefined, manifest: string | undefined): string | undefined {
  if (told) return told === 'none' ? undefined : told;
  return manifest ? undefined : bundledPolicy();
}

function dataDirOf({ EXECUTOR_DATA_DIR, REVEILLE_HOME }: ExecutorSettings): string {
  if (EXECUTOR_DATA_DIR !== undefined) return EXECUTOR_DATA_DIR;
  if (REVEILLE_HOME !== undefined) return join(REVEILLE_HOME, 'executor');
  return stop('EXECUTOR_DATA_DIR is not set: give a folder for intents and their receipts, or set REVEILLE_HOME');
}

function notifyOf(read: ExecutorSettings): NotifyConfig {
  const { EXECUTOR_NOTIFY_URL: url, EXECUTOR_NOTIFY_SECRET: secret, EXECUTOR_NOTIFY_COMMAND: command } = read;
  if (url === undefined && secret !== undefined) {
    stop('EXECUTOR_NOTIFY_URL is not set, but EXECUTOR_NOTIFY_SECRET is: give the address as well');
  }
  if (url !== undefined) plainAddress('EXECUTOR_NOTIFY_URL', url);
  return { webhook: url === undefined ? undefined : { url, secret }, command };
}

function chronosOf(read: ExecutorSettings): ExecutorConfig['chronos'] {
  const { EXECUTOR_CHRONOS_URL: url, EXECUTOR_CHRONOS_TOKEN: token } = read;
  if (url === undefined) {
    if (token !== undefined)
      stop('EXECUTOR_CHRONOS_URL is not set, but EXECUTOR_CHRONOS_TOKEN is: give the address as well');
    return undefined;
  }
  if (token === undefined)
    stop('EXECUTOR_CHRONOS_TOKEN is not set, but EXECUTOR_CHRONOS_URL is: give the token as well');
  plainAddress('EXECUTOR_CHRONOS_URL', url);
  return { url, token };
}

function warningsOf({
  token,
  adminToken,
  notify,
  chronos,
}: Pick<ExecutorConfig, 'token' | 'adminToken' | 'notify' | 'chronos'>): string[] {
  const warnings: string[] = [];
  if (token === undefined) {
    warnings.push('EXECUTOR_TOKEN is not set: any program on this computer may hand tasks over (EXECUTOR_DEV=1)');
  }
  if (adminToken === undefined) {
    warnings.push('EXECUTOR_ADMIN_TOKEN is not set: nobody can be made an approver here (EXECUTOR_DEV=1)');
  }
  if (chronos === undefined) {
    warnings.push(
      'EXECUTOR_CHRONOS_URL is not set: an agent that was woken by an alarm and parks a task is not told what became of it',
    );
  }
  const { webhook } = notify;
  if (webhook !== undefined && webhook.secret === undefined) {
    warnings.push('EXECUTOR_NOTIFY_SECRET is not set: whoever is notified cannot tell our notices from forged ones');
  }
  const isOpen = (url: string) => url.startsWith('http:') && !isLoopback(new URL(url).hostname);
  if (webhook !== undefined && isOpen(webhook.url)) {
    warnings.push('EXECUTOR_NOTIFY_URL is not https: questions, with all amounts and names, travel in the clear');
  }
  if (chronos !== undefined && isOpen(chronos.url)) {
    warnings.push('EXECUTOR_CHRONOS_URL is not https: EXECUTOR_CHRONOS_TOKEN and results travel in the clear');
  }
  return warnings;
}

/**
 * Reads the executor's variables.
 *
 * @throws ReveilleError `invalid_request` naming every variable that is missing or wrong, and what is allowed
 */
export function parseExecutorConfig(settings: Settings): ExecutorConfig {
  const read = parseSettings(executorSettingsSchema, settings);
  const [token, notify, chronos] = [tokenOf(read), notifyOf(read), chronosOf(read)];
  const adminToken = adminTokenOf(read);
  const { model, warnings } = parseModelConfig('EXECUTOR', settings);
  return Object.freeze({
    host: read.EXECUTOR_HOST,
    port: read.EXECUTOR_PORT,
    listener: parseDoor('EXECUTOR', read.EXECUTOR_HOST, settings),
    allowedHosts: hostNames(read.EXECUTOR_ALLOWED_HOSTS),
    dataDir: dataDirOf(read),
    token,
    adminToken,
    enrollment: read.EXECUTOR_ENROLLMENT,
    manifest: read.EXECUTOR_MANIFEST === undefined ? 'bundled' : { path: read.EXECUTOR_MANIFEST },
    policy: policyInUse(read.EXECUTOR_POLICY, read.EXECUTOR_MANIFEST),
    workspace: resolve(read.EXECUTOR_WORKSPACE ?? join(dataDirOf(read), 'workspace')),
    limits: parseLimits('EXECUTOR', settings),
    model,
    reconcileMs: read.EXECUTOR_RECONCILE_SECONDS * 1000,
    bounds: { openIntents: read.EXECUTOR_MAX_OPEN_INTENTS, contextBytes: read.EXECUTOR_MAX_CONTEXT_MIB * 1024 * 1024 },
    notify,
    chronos,
    agentKeysDir: resolve(read.EXECUTOR_AGENT_KEYS ?? join(dataDirOf(read), 'agent-keys')),
    separation: read.REVEILLE_SEPARATION,
    warnings: [...warningsOf({ token, adminToken, notify, chronos }), ...warnings],
  });
}
