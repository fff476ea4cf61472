/** chronosd's configuration (docs/reference/settings.md): parsed once, at the edge. */
import { z } from 'zod';
import {
  hostNames,
  isLoopback,
  type ListenerSettings,
  listenerSettings,
  parseListenerSettings,
  refuseSharedSecrets,
} from '../kit/http/listener-settings.ts';
import { ReveilleError } from '../wire/errors.ts';
import {
  parseSettings,
  portSetting,
  retentionDays,
  type Settings,
  secretSetting,
  secretType,
  switchSetting,
  urlSetting,
  wholeNumber,
} from '../wire/settings.ts';
import { ENROLLMENT_MODES, type EnrollmentMode } from './auth/enrollment.ts';

/** The variables that chronosd reads. */
export const chronosSettingsSchema = z.object({
  /**
   * The listening address. An address that other machines reach needs TLS, or a setting that a proxy in front
   * terminates it.
   */
  CHRONOS_HOST: z.string().default('127.0.0.1'),
  /** The port; 0 lets the system pick one. */
  CHRONOS_PORT: portSetting.default(9096),
  ...listenerSettings('CHRONOS'),
  /** Names by which other machines and agents reach it, besides loopback names and the host; comma-separated. */
  CHRONOS_ALLOWED_HOSTS: z.string().transform(hostNames).default([]),
  /** The folder of its SQLite file; default: `chronos` in `REVEILLE_HOME`. */
  CHRONOS_DATA_DIR: z.string(),
  /** The folder of calendars whose days are excluded, `NAME.ics`; default: `calendars` in `CHRONOS_DATA_DIR`. */
  CHRONOS_CALENDARS_DIR: z.string().optional(),
  /** Stores alarms in this PostgreSQL instead of a file. It may name several hosts. */
  CHRONOS_POSTGRES_URI: secretType(
    z.string().regex(/^postgres(?:ql)?:\/\//, 'must begin with postgres:// or postgresql://'),
  ).optional(),
  /** Connections to PostgreSQL. */
  CHRONOS_POSTGRES_POOL: wholeNumber(2, 1000).default(10),
  /** The number of buckets. It applies when the tables get their buckets; an existing database keeps its number. */
  CHRONOS_POSTGRES_BUCKETS: wholeNumber(1, 4096).default(1),
  /** 0 leaves the API to other replicas; health and metrics remain. */
  CHRONOS_API: switchSetting.default(true),
  /** 0 leaves dispatching to other replicas. */
  CHRONOS_DISPATCH: switchSetting.default(true),
  /** Attempts that finished longer ago are deleted, except the last one of an alarm; 0 keeps them for ever. */
  CHRONOS_LEDGER_RETENTION_DAYS: retentionDays.default(30),
  /** The transport bearer: its holder may call chronosd, and proves an identity for each request about alarms. */
  CHRONOS_TOKEN: secretSetting.optional(),
  /** Seals principal tokens; the same for all replicas. */
  CHRONOS_AGENT_AUTH_SECRET: secretSetting.optional(),
  /** Authorizes the operator's routes: agents, and the proof that a person sets an alarm. */
  CHRONOS_ADMIN_TOKEN: secretSetting.optional(),
  /**
   * Which keys are accepted: the first one for an agent's name, or keys that an operator enrolled. It must be set where
   * other machines or users have access.
   */
  CHRONOS_ENROLLMENT: z.enum(ENROLLMENT_MODES, { error: `must be one of ${ENROLLMENT_MODES.join(', ')}` }).optional(),
  /** The address to which wakes are posted. */
  CHRONOS_ROUTER_WAKE_URL: urlSetting.default('http://127.0.0.1:8088/internal/wake'),
  /** Where webhooks reach the router's public listener from outside; the addresses of alarms begin with it. */
  CHRONOS_PUBLIC_URL: urlSetting.optional(),
  /** An address that is called regularly while alarms fire, and with /fail while they do not: a monitor outside. */
  CHRONOS_PING_URL: urlSetting.optional(),
  /** How often it is called. */
  CHRONOS_PING_SECONDS: wholeNumber(10, 86_400).default(60),
  /** The bearer of wakes; the router's `ROUTER_WAKE_TOKEN`. */
  CHRONOS_WAKE_TOKEN: secretSetting.optional(),
  /** Lets scrapers on other machines read /metrics. */
  CHRONOS_METRICS_TOKEN: secretSetting.optional(),
  /** Polling interval for due occurrences, where no notification arrives. */
  CHRONOS_TICK_MS: wholeNumber(10, 60_000).default(1000),
  /** Concurrent deliveries. */
  CHRONOS_CONCURRENCY: wholeNumber(1, 10_000).default(256),
  /** Concurrent deliveries to one user's agent. */
  CHRONOS_USER_CONCURRENCY: wholeNumber(1, 10_000).default(4),
  /** Failed attempts after which an occurrence is given up, unless its alarm sets another number. */
  CHRONOS_MAX_FAILURES: wholeNumber(1, 1000).default(100),
  /** The shortest allowed interval of a series. */
  CHRONOS_MIN_INTERVAL_SECONDS: wholeNumber(1, 86_400).default(10),
  /** Alarms of one owner that have not ended. */
  CHRONOS_MAX_ACTIVE_ALARMS: wholeNumber(1, 100_000_000).default(10_000),
  // Limits on requests and storage of clients (docs/operate/security.md, "Limits against floods"). Rates are per process; 0 removes a limit.
  /** Challenges and proofs of one owner at one address, in this process; 0 removes the limit, here and below. */
  CHRONOS_CHALLENGES_PER_MINUTE: wholeNumber(0, 100_000_000).default(600),
  /** The same of all owners. */
  CHRONOS_CHALLENGES_PER_MINUTE_IN_ALL: wholeNumber(0, 100_000_000).default(12_000),
  /** New alarms and changes of one owner, in this process. */
  CHRONOS_CREATES_PER_MINUTE: wholeNumber(0, 100_000_000).default(3000),
  /** The same of all owners. */
  CHRONOS_CREATES_PER_MINUTE_IN_ALL: wholeNumber(0, 100_000_000).default(60_000),
  /** Triggers of one owner, in this process. */
  CHRONOS_TRIGGERS_PER_MINUTE: wholeNumber(0, 100_000_000).default(300),
  /** The same of all owners. */
  CHRONOS_TRIGGERS_PER_MINUTE_IN_ALL: wholeNumber(0, 100_000_000).default(12_000),
  /** Events from outside for one owner's alarms, in this process. */
  CHRONOS_EVENTS_PER_MINUTE: wholeNumber(0, 100_000_000).default(15_000),
  /** The same of all owners. */
  CHRONOS_EVENTS_PER_MINUTE_IN_ALL: wholeNumber(0, 100_000_000).default(60_000),
  /** Open streams of events of one owner, in this process. */
  CHRONOS_EVENT_STREAMS_PER_OWNER: wholeNumber(0, 100_000_000).default(32),
  /** The same of all owners. Each stream keeps a connection. */
  CHRONOS_EVENT_STREAMS: wholeNumber(0, 100_000_000).default(2000),
  /** New owners by trust on first use, over all replicas. */
  CHRONOS_NEW_OWNERS_PER_HOUR: wholeNumber(0, 100_000_000).default(1000),
  /** Keys in total that were pinned by trust on first use. */
  CHRONOS_MAX_OWNERS: wholeNumber(0, 100_000_000).default(100_000),
  /** Alarms of one owner, finished ones included. */
  CHRONOS_MAX_STORED_ALARMS: wholeNumber(0, 100_000_000).default(100_000),
  /** Stored size of the alarms of one owner. */
  CHRONOS_MAX_STORED_MIB: wholeNumber(0, 100_000_000).default(2048),
  /** Stored size of all alarms. */
  CHRONOS_MAX_STORED_MIB_IN_ALL: wholeNumber(0, 100_000_000).default(10_240),
  /** Waiting triggers of one owner. */
  CHRONOS_MAX_WAITING_TRIGGERS: wholeNumber(0, 100_000_000).default(1000),
  /**
   * Alarms that were fired, cancelled or failed longer ago are deleted, with their idempotency keys; 0 keeps them for
   * ever.
   */
  CHRONOS_TERMINAL_RETENTION_DAYS: retentionDays.default(90),
  /** How long a proof of identity is valid. */
  CHRONOS_TOKEN_TTL_SECONDS: wholeNumber(1, 86_400).default(300),
  /** Allows missing secrets on loopback, for development. */
  CHRONOS_DEV: switchSetting.default(false),
});

/** Secrets that protect chronosd. */
const SECRETS = ['CHRONOS_TOKEN', 'CHRONOS_AGENT_AUTH_SECRET', 'CHRONOS_ADMIN_TOKEN', 'CHRONOS_WAKE_TOKEN'] as const;

type ChronosSettings = z.output<typeof chronosSettingsSchema>;
export type ChronosConfig = Readonly<
  ChronosSettings & { CHRONOS_ENROLLMENT: EnrollmentMode; listener: ListenerSettings }
>;

/**
 * Which keys are accepted. Trust on first use suits one person's own machine. With several holders of the transport
 * token, the first to use a name owns it.
 *
 * @throws ReveilleError `invalid_request` when other machines or users have access and the mode is not set
 */
function enrollmentOf({
  CHRONOS_ENROLLMENT: configured,
  CHRONOS_HOST: host,
  CHRONOS_POSTGRES_URI: uri,
}: ChronosSettings) {
  if (configured !== undefined) return configured;
  if (isLoopback(host) && uri === undefined) return 'tofu';
  const reason =
    uri === undefined
      ? `CHRONOS_HOST is ${JSON.stringify(host)}, which other machines reach`
      : 'CHRONOS_POSTGRES_URI is set, and alarms in PostgreSQL serve several users';
  throw new ReveilleError(
    'invalid_request',
    `CHRONOS_ENROLLMENT is not set, and ${reason}. Set CHRONOS_ENROLLMENT=required to accept only keys that an operator enrolled ("reveille agent enroll"). Or set CHRONOS_ENROLLMENT=tofu: then the first holder of CHRONOS_TOKEN to use an agent's name owns that name`,
  );
}

/**
 * @throws ReveilleError `invalid_request` that names every variable that is wrong or missing
 */
export function parseChronosConfig(settings: Settings): ChronosConfig {
  const config = parseSettings(chronosSettingsSchema, settings);
  const missing = missingSecrets(config);
  refuseSharedSecrets(
    Object.fromEntries([...SECRETS, 'CHRONOS_METRICS_TOKEN' as const].map((name) => [name, config[name]])),
  );
  if (missing.length > 0 && !config.CHRONOS_DEV)
    throw new ReveilleError(
      'invalid_request',
      `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not set; set ${missing.length === 1 ? 'it' : 'them'} to at least 16 characters each, or CHRONOS_DEV=1 to run without while developing`,
    );
  if (missing.length > 0 && !isLoopback(config.CHRONOS_HOST))
    throw new ReveilleError(
      'invalid_request',
      `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not set; without ${missing.length === 1 ? 'it' : 'them'} CHRONOS_HOST must be a loopback address, with CHRONOS_DEV=1 too (got ${JSON.stringify(config.CHRONOS_HOST)})`,
    );
  const listener = parseListenerSettings('CHRONOS', config.CHRONOS_HOST, settings);
  return Object.freeze({ ...config, CHRONOS_ENROLLMENT: enrollmentOf(config), listener });
}

/** The names of the secrets that are missing in a configuration for development. */
export function missingSecrets(config: Readonly<ChronosSettings>): string[] {
  return SECRETS.filter((name) => config[name] === undefined);
}
