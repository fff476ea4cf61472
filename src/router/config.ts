/** The router's configuration (docs/contracts.md §11), parsed once from the variables that its owner hands in. */
import { join } from 'node:path';
import { z } from 'zod';
import { type Door, doorSettings, hostNames, isLoopback, parseDoor, refuseSharedSecrets } from '../kit/http/door.ts';
import type { SeparationMode } from '../kit/process/separation.ts';
import { type Budget, budgetSchema } from '../wire/budget.ts';
import { ReveilleError } from '../wire/errors.ts';
import { REPEAT_SECONDS, REPEAT_SECONDS_MAX } from '../wire/fire-id.ts';
import { parseJsonObject } from '../wire/json.ts';
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
import { parseOrThrow } from '../wire/validate.ts';

/** The variables that the router reads. */
export const routerSettingsSchema = z.object({
  /** Where it listens for wakes and for operators. */
  ROUTER_HOST: z.string().default('127.0.0.1'),
  /** The port; 0 lets the system pick one. */
  ROUTER_PORT: portSetting.default(8088),
  /** Names by which others reach it, besides loopback names and the host; with commas between them. */
  ROUTER_ALLOWED_HOSTS: z.string().optional(),
  ...doorSettings('ROUTER'),
  /** Where it listens for people on the way to their machine. */
  ROUTER_PUBLIC_HOST: z.string().default('127.0.0.1'),
  /** The port of that listener; 0 lets the system pick one. */
  ROUTER_PUBLIC_PORT: portSetting.default(8087),
  /** Names by which people reach it, besides loopback names and the host; with commas between them. */
  ROUTER_PUBLIC_ALLOWED_HOSTS: z.string().optional(),
  ...doorSettings('ROUTER_PUBLIC'),
  /** Requests of one person. */
  ROUTER_PUBLIC_REQUESTS_PER_MINUTE: wholeNumber(1, 1_000_000).default(600),
  /** Streams of one person at a time. */
  ROUTER_PUBLIC_STREAMS_PER_USER: wholeNumber(1, 10_000).default(32),
  /** Requests of one person at a time. */
  ROUTER_PUBLIC_REQUESTS_PER_USER: wholeNumber(1, 10_000).default(32),
  /** Serves the console to people; `ROUTER_CHRONOS_URL` and `ROUTER_CHRONOS_TOKEN` are needed then. */
  ROUTER_CONSOLE: switchSetting.default(false),
  /** chronosd's `CHRONOS_TOKEN`, for the console. */
  ROUTER_CHRONOS_TOKEN: secretSetting.optional(),
  /** Where the executor is, for tasks and approvals in the console. */
  ROUTER_EXECUTOR_URL: urlSetting.optional(),
  /** The folder of its database; `router` below `REVEILLE_HOME` unless told. */
  ROUTER_DATA_DIR: z.string().optional(),
  /** The folder of an installation, in which the data folders are that are not told. */
  REVEILLE_HOME: z.string().optional(),
  /** The bearer of wakes; chronosd's `CHRONOS_WAKE_TOKEN`. */
  ROUTER_WAKE_TOKEN: secretSetting.optional(),
  /** The bearer of operators, for machines and people. */
  ROUTER_ADMIN_TOKEN: secretSetting.optional(),
  /** Lets scrapers on other machines read /metrics. */
  ROUTER_METRICS_TOKEN: secretSetting.optional(),
  /** Bounds starting a machine, becoming ready and delivering together. */
  ROUTER_WAKE_TIMEOUT_MS: wholeNumber(100, 600_000).default(30_000),
  /** The longest pause between two looks at whether a daemon is ready. */
  ROUTER_PROBE_INTERVAL_MS: wholeNumber(1, 60_000).default(100),
  /** For how long the same wake without a fire id is one wake; 0: never. */
  ROUTER_REPEAT_SECONDS: wholeNumber(0, REPEAT_SECONDS_MAX).default(REPEAT_SECONDS),
  /** How long machines of provider `process` outlive a router that was killed and does not come back; 0: for ever. */
  ROUTER_ORPHAN_SECONDS: wholeNumber(0, 86_400).default(60),
  /** Machines of provider `process` run on when the router is stopped, for the next one to take over. */
  ROUTER_KEEP_MACHINES: switchSetting.default(false),
  /** How often and when agents may be woken whose machine has no budget of its own, as JSON. */
  ROUTER_BUDGET: z.string().optional(),
  /** Where chronosd takes turn reports; without it none are sent from here. */
  ROUTER_CHRONOS_URL: urlSetting.optional(),
  /** Goes without secrets on loopback, while developing. */
  ROUTER_DEV: switchSetting.default(false),
  /** Whether programs that a daemon starts run behind walls: where it can be, always, or never. */
  REVEILLE_SEPARATION: separationSetting,
  /** For Fly machines; without it none can be woken. */
  FLY_API_TOKEN: z
    .string()
    // Fly's tokens have spaces inside: "FlyV1 fm2_…".
    .regex(/^[\x21-\x7e][\x20-\x7e]*$/, 'must be printable ASCII in one line')
    .optional(),
  /** Where Fly's Machines API is. */
  FLY_API_BASE_URL: urlSetting.default('https://api.machines.dev'),
  /** Which Docker engine starts containers; the one of this computer unless told. */
  DOCKER_HOST: z.string().optional(),
});

/** Where a person's own rights are good for something. The token lets nobody at alarms by itself. */
export type ConsoleConfig = Readonly<{ chronosUrl: string; chronosToken: string; executorUrl: string | undefined }>;

export type PublicConfig = Readonly<{
  host: string;
  port: number;
  /** `Host` values that pass besides loopback names and `host`. */
  allowedHosts: readonly string[];
  door: Door;
  /** Whether something in front has the certificate, so that everybody comes from its address. */
  isBehindProxy: boolean;
  /** Whether people come by TLS, which ends here or in front. */
  isTls: boolean;
  /** The console, and what it asks besides the router; `undefined`: there is none. */
  console: ConsoleConfig | undefined;
  /** What one user may take. */
  shares: Readonly<{ requestsPerMinute: number; streams: number; requests: number }>;
}>;

export type RouterConfig = Readonly<{
  host: string;
  port: number;
  /** `Host` values that pass besides loopback names and `host`. */
  allowedHosts: readonly string[];
  door: Door;
  /** The second listener, for people on the way to their machine. */
  public: PublicConfig;
  dataDir: string;
  /** Where the user's own presets for machines of provider `command` stand. */
  presetFolder: string;
  /** `undefined`: every caller passes; only in development and only on loopback. */
  wakeToken: string | undefined;
  adminToken: string | undefined;
  /** For scrapers on other computers. */
  metricsToken: string | undefined;
  /** Bounds starting, becoming ready and delivering together. */
  wakeTimeoutMs: number;
  /** Longest pause between two looks at whether a daemon is ready. */
  probeIntervalMs: number;
  /** For how long the same wake without a fire id is one wake; 0: never. */
  repeatMs: number;
  /** How long machines of provider `process` outlive a router that died and does not come back; 0: for ever. */
  orphanSeconds: number;
  /** Processes run on when the router closes, for the next router to take over; the reaper ends them where none comes. */
  keepMachines: boolean;
  /** How often and when agents may be woken whose machine has no budget of its own. */
  budget: Budget | undefined;
  /** Where chronosd takes receipts; without it none are sent from here. */
  chronosUrl: string | undefined;
  /** Without it no Fly machine can be woken. */
  flyApiToken: string | undefined;
  flyApiUrl: string;
  /**
   * As given: programs of all kinds read this variable, and a form that is not supported matters to Docker machines
   * only.
   */
  dockerHost: string | undefined;
  /** Whether machines run behind walls. */
  separation: SeparationMode;
  /** Sentences for the log. */
  warnings: readonly string[];
}>;

/** What may be missing in development: names of the secrets that are not set, or the error that stops the start. */
function missingSecrets(names: string[], dev: boolean, host: string): string[] {
  if (names.length === 0) return [];
  const missing = `${names.join(' and ')} ${names.length === 1 ? 'is' : 'are'} not set`;
  if (!dev) throw new ReveilleError('invalid_request', `${missing}; set them, or ROUTER_DEV=1 for development`);
  if (!isLoopback(host)) {
    const message = `${missing}; without them ROUTER_HOST must be a loopback address (got ${JSON.stringify(host)})`;
    throw new ReveilleError('invalid_request', message);
  }
  return [`${missing}: any program on this computer may use what they protect (ROUTER_DEV=1)`];
}

/** @throws ReveilleError `invalid_request` naming the variable and the member that is wrong */
function budgetOf(text: string | undefined): Budget | undefined {
  if (text === undefined) return undefined;
  try {
    return parseOrThrow(budgetSchema, parseJsonObject(text));
  } catch (cause) {
    if (!(cause instanceof ReveilleError)) throw cause;
    const example = `write it like {"wakes_per_hour":20,"quiet":{"from":"22:00","to":"07:00","timezone":"Europe/Berlin"}}`;
    const why = cause.message.replace('the body must', 'it must');
    throw new ReveilleError('invalid_request', `ROUTER_BUDGET is not a budget: ${why}; ${example}`, { cause });
  }
}

/**
 * Reads the router's variables. `ROUTER_DATA_DIR` defaults to `router` below `REVEILLE_HOME`.
 *
 * @throws ReveilleError `invalid_request` naming each variable that is wrong, or the secrets that are missing
 */
export function parseRouterConfig(settings: Settings): RouterConfig {
  const values = parseSettings(routerSettingsSchema, settings);
  const dataDir = values.ROUTER_DATA_DIR ?? (values.REVEILLE_HOME ? join(values.REVEILLE_HOME, 'router') : undefined);
  if (dataDir === undefined)
    throw new ReveilleError('invalid_request', 'ROUTER_DATA_DIR is not set, nor is REVEILLE_HOME');
  const secrets = ['ROUTER_WAKE_TOKEN', 'ROUTER_ADMIN_TOKEN'] as const;
  const missing = secrets.filter((name) => values[name] === undefined);
  refuseSharedSecrets(
    Object.fromEntries([...secrets, 'ROUTER_METRICS_TOKEN' as const].map((name) => [name, values[name]])),
  );
  const warnings = missingSecrets([...missing], values.ROUTER_DEV, values.ROUTER_HOST);
  return Object.freeze({
    host: values.ROUTER_HOST,
    port: values.ROUTER_PORT,
    allowedHosts: hostNames(values.ROUTER_ALLOWED_HOSTS),
    door: parseDoor('ROUTER', values.ROUTER_HOST, settings),
    public: publicConfig(values, settings),
    dataDir,
    presetFolder: join(values.REVEILLE_HOME ?? dataDir, 'presets'),
    wakeToken: values.ROUTER_WAKE_TOKEN,
    adminToken: values.ROUTER_ADMIN_TOKEN,
    metricsToken: values.ROUTER_METRICS_TOKEN,
    wakeTimeoutMs: values.ROUTER_WAKE_TIMEOUT_MS,
    probeIntervalMs: values.ROUTER_PROBE_INTERVAL_MS,
    repeatMs: values.ROUTER_REPEAT_SECONDS * 1000,
    orphanSeconds: values.ROUTER_ORPHAN_SECONDS,
    keepMachines: values.ROUTER_KEEP_MACHINES,
    budget: budgetOf(values.ROUTER_BUDGET),
    chronosUrl: values.ROUTER_CHRONOS_URL,
    flyApiToken: values.FLY_API_TOKEN,
    flyApiUrl: values.FLY_API_BASE_URL,
    dockerHost: values.DOCKER_HOST,
    separation: values.REVEILLE_SEPARATION,
    warnings,
  });
}

function consoleConfig(values: z.output<typeof routerSettingsSchema>): ConsoleConfig | undefined {
  if (!values.ROUTER_CONSOLE) return undefined;
  const {
    ROUTER_CHRONOS_URL: chronosUrl,
    ROUTER_CHRONOS_TOKEN: chronosToken,
    ROUTER_EXECUTOR_URL: executorUrl,
  } = values;
  if (chronosUrl !== undefined && chronosToken !== undefined)
    return Object.freeze({ chronosUrl, chronosToken, executorUrl });
  const missing = [
    ...(chronosUrl === undefined ? ['ROUTER_CHRONOS_URL (where chronosd is)'] : []),
    ...(chronosToken === undefined ? ['ROUTER_CHRONOS_TOKEN (its CHRONOS_TOKEN)'] : []),
  ];
  throw new ReveilleError(
    'invalid_request',
    `ROUTER_CONSOLE is on, and the console cannot show alarms: set ${missing.join(' and ')}, or leave ROUTER_CONSOLE out`,
  );
}

function publicConfig(values: z.output<typeof routerSettingsSchema>, settings: Settings): PublicConfig {
  // Whoever lets the system pick the first port runs several routers side by side, and wants none of them fixed.
  const isFree = values.ROUTER_PORT === 0 && !settings.ROUTER_PUBLIC_PORT;
  const host = values.ROUTER_PUBLIC_HOST;
  return Object.freeze({
    host,
    port: isFree ? 0 : values.ROUTER_PUBLIC_PORT,
    allowedHosts: hostNames(values.ROUTER_PUBLIC_ALLOWED_HOSTS),
    door: parseDoor('ROUTER_PUBLIC', host, settings),
    isBehindProxy: values.ROUTER_PUBLIC_TLS !== undefined,
    isTls: values.ROUTER_PUBLIC_TLS !== undefined || values.ROUTER_PUBLIC_TLS_CERT !== undefined,
    console: consoleConfig(values),
    shares: {
      requestsPerMinute: values.ROUTER_PUBLIC_REQUESTS_PER_MINUTE,
      streams: values.ROUTER_PUBLIC_STREAMS_PER_USER,
      requests: values.ROUTER_PUBLIC_REQUESTS_PER_USER,
    },
  });
}
