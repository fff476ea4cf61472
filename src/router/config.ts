/** The router's configuration (docs/reference/settings.md), parsed once from the given variables. */
import { join } from 'node:path';
import { z } from 'zod';
import {
  hostNames,
  isLoopback,
  type ListenerSettings,
  listenerSettings,
  parseListenerSettings,
  refuseSharedSecrets,
} from '../kit/http/listener-settings.ts';
import { type Prices, pricesSetting } from '../kit/model/prices.ts';
import type { IsolationMode } from '../kit/process/isolation.ts';
import { type Budget, budgetSchema } from '../wire/budget.ts';
import { ReveilleError } from '../wire/errors.ts';
import { REPEAT_SECONDS, REPEAT_SECONDS_MAX } from '../wire/fire-id.ts';
import { parseJsonObject } from '../wire/json.ts';
import {
  isolationSetting,
  parseSettings,
  portSetting,
  type Settings,
  secretSetting,
  secretType,
  switchSetting,
  urlSetting,
  wholeNumber,
} from '../wire/settings.ts';
import { parseOrThrow } from '../wire/validate.ts';

/** The variables that the router reads. */
export const routerSettingsSchema = z.object({
  /** The listen address for wakes and operators. */
  ROUTER_HOST: z.string().default('127.0.0.1'),
  /** The port; 0 lets the system pick one. */
  ROUTER_PORT: portSetting.default(8088),
  /** Host names of this listener besides loopback names and the host, separated by commas. */
  ROUTER_ALLOWED_HOSTS: z.string().optional(),
  ...listenerSettings('ROUTER'),
  /** The listen address for users on the way to their machine. */
  ROUTER_PUBLIC_HOST: z.string().default('127.0.0.1'),
  /** The port of that listener; 0 lets the system pick one. */
  ROUTER_PUBLIC_PORT: portSetting.default(8087),
  /** Host names of this listener besides loopback names and the host, separated by commas. */
  ROUTER_PUBLIC_ALLOWED_HOSTS: z.string().optional(),
  ...listenerSettings('ROUTER_PUBLIC'),
  /** The address by which others reach this listener; by default its own. Access tokens are for resources below it. */
  ROUTER_PUBLIC_URL: urlSetting.optional(),
  /** Requests of one user. */
  ROUTER_PUBLIC_REQUESTS_PER_MINUTE: wholeNumber(1, 1_000_000).default(600),
  /** Concurrent streams of one user. */
  ROUTER_PUBLIC_STREAMS_PER_USER: wholeNumber(1, 10_000).default(32),
  /** Concurrent requests of one user. */
  ROUTER_PUBLIC_REQUESTS_PER_USER: wholeNumber(1, 10_000).default(32),
  /** Serves the console to users; it requires `ROUTER_CHRONOS_URL` and `ROUTER_CHRONOS_TOKEN`. */
  ROUTER_CONSOLE: switchSetting.default(false),
  /** chronosd's `CHRONOS_TOKEN`, for the console. */
  ROUTER_CHRONOS_TOKEN: secretSetting.optional(),
  /** The address of the executor, for tasks and approvals in the console. */
  ROUTER_EXECUTOR_URL: urlSetting.optional(),
  /** chronosd's `CHRONOS_ADMIN_TOKEN`, for the alarms of users whose clients have access tokens. */
  ROUTER_CHRONOS_ADMIN_TOKEN: secretSetting.optional(),
  /** The executor's `EXECUTOR_TOKEN`, for the intents of such users. */
  ROUTER_EXECUTOR_TOKEN: secretSetting.optional(),
  /** Serves the crons of LangGraph's client at /langgraph, for users' tokens; it requires `ROUTER_CONSOLE`, or `reveille up`. */
  ROUTER_LANGGRAPH: switchSetting.default(false),
  /** The folder of its database; by default `router` below `REVEILLE_HOME`. */
  ROUTER_DATA_DIR: z.string().optional(),
  /** The folder of an installation. Data folders without a setting are below it. */
  REVEILLE_HOME: z.string().optional(),
  /** The bearer token of wakes; chronosd's `CHRONOS_WAKE_TOKEN`. */
  ROUTER_WAKE_TOKEN: secretSetting.optional(),
  /** The bearer token of operators, for machines and users. */
  ROUTER_ADMIN_TOKEN: secretSetting.optional(),
  /** Lets scrapers on other machines read /metrics. */
  ROUTER_METRICS_TOKEN: secretSetting.optional(),
  /** The time limit for starting a machine, becoming ready and delivering together. */
  ROUTER_WAKE_TIMEOUT_MS: wholeNumber(100, 600_000).default(30_000),
  /** The longest pause between two health checks of a starting daemon. */
  ROUTER_PROBE_INTERVAL_MS: wholeNumber(1, 60_000).default(100),
  /** How long an identical wake without a fire id counts as the same wake; 0: never. */
  ROUTER_REPEAT_SECONDS: wholeNumber(0, REPEAT_SECONDS_MAX).default(REPEAT_SECONDS),
  /** How long machines of provider `process` outlive a killed router that is not replaced; 0: for ever. */
  ROUTER_ORPHAN_SECONDS: wholeNumber(0, 86_400).default(60),
  /** Machines of provider `process` continue when the router stops, and the next one adopts them. */
  ROUTER_KEEP_MACHINES: switchSetting.default(false),
  /** The budget of machines that have none of their own, as JSON. */
  ROUTER_BUDGET: z.string().optional(),
  /** Hosts of private networks that checks of alarms may call, `host` or `host:port`, separated by commas. */
  ROUTER_CHECK_ALLOW: z.string().optional(),
  /**
   * Prices for the cost of turns that the router runs, as `model=input/output`, in dollars for a million tokens. The name
   * of a preset stands for its models, and `*` for any other.
   */
  ROUTER_MODEL_PRICES: pricesSetting.optional(),
  /** Where chronosd receives turn reports; without it the router sends none. */
  ROUTER_CHRONOS_URL: urlSetting.optional(),
  /** Development: allows missing secrets on loopback. */
  ROUTER_DEV: switchSetting.default(false),
  /** Whether programs that a daemon starts run in a sandbox: where possible, always, or never. */
  REVEILLE_SEPARATION: isolationSetting,
  /** For Fly machines; without it none can be woken. */
  FLY_API_TOKEN: secretType(
    // Fly's tokens have spaces inside: "FlyV1 fm2_…".
    z.string().regex(/^[\x21-\x7e][\x20-\x7e]*$/, 'must be printable ASCII in one line'),
  ).optional(),
  /** Where Fly's Machines API is. */
  FLY_API_BASE_URL: urlSetting.default('https://api.machines.dev'),
  /** Which Docker engine starts containers; by default the one of this computer. */
  DOCKER_HOST: z.string().optional(),
});

/** The daemons at which the rights of a user apply. The token itself gives no access to alarms. */
export type ConsoleConfig = Readonly<{ chronosUrl: string; chronosToken: string; executorUrl: string | undefined }>;

export type PublicConfig = Readonly<{
  host: string;
  port: number;
  /** Accepted `Host` values besides loopback names and `host`. */
  allowedHosts: readonly string[];
  listener: ListenerSettings;
  /** The address by which others reach it, without a trailing slash; `undefined`: its own. */
  url: string | undefined;
  /** Whether a proxy holds the certificate, so that all requests have the proxy's address. */
  isBehindProxy: boolean;
  /** Whether users connect with TLS, which ends here or at a proxy. */
  isTls: boolean;
  /** The console and the daemons it queries besides the router; `undefined`: no console. */
  console: ConsoleConfig | undefined;
  /** Whether LangGraph's client may set crons. */
  hasLanggraph: boolean;
  /** The limits of one user. */
  shares: Readonly<{ requestsPerMinute: number; streams: number; requests: number }>;
}>;

export type RouterConfig = Readonly<{
  host: string;
  port: number;
  /** Accepted `Host` values besides loopback names and `host`. */
  allowedHosts: readonly string[];
  listener: ListenerSettings;
  /** The second listener, for users on the way to their machine. */
  public: PublicConfig;
  dataDir: string;
  /** The folder of the user's own presets for machines of provider `command`. */
  presetFolder: string;
  /** The folder that the router shares with open sessions of agents. */
  channelFolder: string;
  /** `undefined`: every caller is accepted; only in development and only on loopback. */
  wakeToken: string | undefined;
  adminToken: string | undefined;
  /** For scrapers on other computers. */
  metricsToken: string | undefined;
  /** The time limit for starting, becoming ready and delivering together. */
  wakeTimeoutMs: number;
  /** The longest pause between two health checks of a starting daemon. */
  probeIntervalMs: number;
  /** How long an identical wake without a fire id counts as the same wake; 0: never. */
  repeatMs: number;
  /** How long machines of provider `process` outlive a dead router that is not replaced; 0: for ever. */
  orphanSeconds: number;
  /**
   * Processes continue when the router closes, and the next router adopts them. Without a next router the reaper ends
   * them.
   */
  keepMachines: boolean;
  /** The budget of machines that have none of their own. */
  budget: Budget | undefined;
  /** For the cost of turns that the router runs. */
  prices: Prices | undefined;
  /** Where chronosd receives turn reports; without it the router sends none. */
  chronosUrl: string | undefined;
  /** Private hosts that checks may call. */
  checkAllow: string | undefined;
  /** Without it no Fly machine can be woken. */
  flyApiToken: string | undefined;
  flyApiUrl: string;
  /**
   * The unparsed value. Other programs read this variable too, and an unsupported form matters to Docker machines only.
   */
  dockerHost: string | undefined;
  /** Whether machines run in a sandbox. */
  isolation: IsolationMode;
  /** Sentences for the log. */
  warnings: readonly string[];
}>;

/** What may be missing in development: the names of unset secrets, or the error that stops the start. */
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

/** @throws ReveilleError `invalid_request` with the variable and the invalid member */
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
 * @throws ReveilleError `invalid_request` with each invalid variable or missing secret
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
    listener: parseListenerSettings('ROUTER', values.ROUTER_HOST, settings),
    public: publicConfig(values, settings),
    dataDir,
    presetFolder: join(values.REVEILLE_HOME ?? dataDir, 'presets'),
    channelFolder: join(values.REVEILLE_HOME ?? dataDir, 'channels'),
    wakeToken: values.ROUTER_WAKE_TOKEN,
    adminToken: values.ROUTER_ADMIN_TOKEN,
    metricsToken: values.ROUTER_METRICS_TOKEN,
    wakeTimeoutMs: values.ROUTER_WAKE_TIMEOUT_MS,
    probeIntervalMs: values.ROUTER_PROBE_INTERVAL_MS,
    repeatMs: values.ROUTER_REPEAT_SECONDS * 1000,
    orphanSeconds: values.ROUTER_ORPHAN_SECONDS,
    keepMachines: values.ROUTER_KEEP_MACHINES,
    budget: budgetOf(values.ROUTER_BUDGET),
    prices: values.ROUTER_MODEL_PRICES,
    chronosUrl: values.ROUTER_CHRONOS_URL,
    checkAllow: values.ROUTER_CHECK_ALLOW,
    flyApiToken: values.FLY_API_TOKEN,
    flyApiUrl: values.FLY_API_BASE_URL,
    dockerHost: values.DOCKER_HOST,
    isolation: values.REVEILLE_SEPARATION,
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

/** The host of the public address is accepted as `Host`. */
const hostsOfUrl = (url: string | undefined) => (url === undefined ? [] : [new URL(url).host]);

function publicConfig(values: z.output<typeof routerSettingsSchema>, settings: Settings): PublicConfig {
  // With a chosen first port, several routers may run side by side, so neither port is fixed.
  const isFree = values.ROUTER_PORT === 0 && !settings.ROUTER_PUBLIC_PORT;
  const host = values.ROUTER_PUBLIC_HOST;
  return Object.freeze({
    host,
    port: isFree ? 0 : values.ROUTER_PUBLIC_PORT,
    allowedHosts: [...hostNames(values.ROUTER_PUBLIC_ALLOWED_HOSTS), ...hostsOfUrl(values.ROUTER_PUBLIC_URL)],
    listener: parseListenerSettings('ROUTER_PUBLIC', host, settings),
    url: values.ROUTER_PUBLIC_URL,
    isBehindProxy: values.ROUTER_PUBLIC_TLS !== undefined,
    isTls: values.ROUTER_PUBLIC_TLS !== undefined || values.ROUTER_PUBLIC_TLS_CERT !== undefined,
    console: consoleConfig(values),
    hasLanggraph: values.ROUTER_LANGGRAPH,
    shares: {
      requestsPerMinute: values.ROUTER_PUBLIC_REQUESTS_PER_MINUTE,
      streams: values.ROUTER_PUBLIC_STREAMS_PER_USER,
      requests: values.ROUTER_PUBLIC_REQUESTS_PER_USER,
    },
  });
}
