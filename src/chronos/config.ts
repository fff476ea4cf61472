/** chronosd's configuration (docs/contracts.md §11): parsed once, at the edge. */
import { z } from 'zod';
import { type Door, doorSettings, hostNames, isLoopback, parseDoor, refuseSharedSecrets } from '../kit/http/door.ts';
import { ReveilleError } from '../wire/errors.ts';
import {
  parseSettings,
  portSetting,
  retentionDays,
  type Settings,
  secretSetting,
  switchSetting,
  urlSetting,
  wholeNumber,
} from '../wire/settings.ts';
import { ENROLLMENT_MODES, type EnrollmentMode } from './auth/enrollment.ts';

/** The variables that chronosd reads. */
export const chronosSettingsSchema = z.object({
  /** Where it listens. What other machines reach needs TLS, or the word that something in front has it. */
  CHRONOS_HOST: z.string().default('127.0.0.1'),
  /** The port; 0 lets the system pick one. */
  CHRONOS_PORT: portSetting.default(9096),
  ...doorSettings('CHRONOS'),
  /**
   * Names by which machines and agents elsewhere reach it, besides loopback names and the host; with commas between
   * them.
   */
  CHRONOS_ALLOWED_HOSTS: z.string().transform(hostNames).default([]),
  /** The folder of its SQLite file; `chronos` below `REVEILLE_HOME` unless told. */
  CHRONOS_DATA_DIR: z.string(),
  /** Alarms are kept in this PostgreSQL instead of in a file; several hosts may stand in it. */
  CHRONOS_POSTGRES_URI: z
    .string()
    .regex(/^postgres(?:ql)?:\/\//, 'must begin with postgres:// or postgresql://')
    .optional(),
  /** Connections to PostgreSQL. */
  CHRONOS_POSTGRES_POOL: wholeNumber(2, 1000).default(10),
  /**
   * How many buckets owners are dealt out to. Counts when the tables get their buckets; what a database has stays as it
   * is.
   */
  CHRONOS_POSTGRES_BUCKETS: wholeNumber(1, 4096).default(1),
  /** 0 leaves the API to other replicas; health and metrics stay. */
  CHRONOS_API: switchSetting.default(true),
  /** 0 leaves dispatching to other replicas. */
  CHRONOS_DISPATCH: switchSetting.default(true),
  /** Attempts that finished longer ago are forgotten; 0 keeps them for ever. */
  CHRONOS_LEDGER_RETENTION_DAYS: retentionDays.default(30),
  /**
   * The transport bearer: whoever has it may talk to chronosd, and proves an identity with each request about alarms.
   */
  CHRONOS_TOKEN: secretSetting.optional(),
  /** Seals the tokens that a proof of identity gives; the same for all replicas. */
  CHRONOS_AGENT_AUTH_SECRET: secretSetting.optional(),
  /** Opens the operator's routes: agents, and the proof that a person sets an alarm. */
  CHRONOS_ADMIN_TOKEN: secretSetting.optional(),
  /**
   * Whose keys are let in: the first one that names an agent, or those that an operator enrolled. It must be said
   * where others are meant to come in.
   */
  CHRONOS_ENROLLMENT: z.enum(ENROLLMENT_MODES, { error: `must be one of ${ENROLLMENT_MODES.join(', ')}` }).optional(),
  /** Where wakes are posted. */
  CHRONOS_ROUTER_WAKE_URL: urlSetting.default('http://127.0.0.1:8088/internal/wake'),
  /** The bearer of wakes; the router's `ROUTER_WAKE_TOKEN`. */
  CHRONOS_WAKE_TOKEN: secretSetting.optional(),
  /** Lets scrapers on other machines read /metrics. */
  CHRONOS_METRICS_TOKEN: secretSetting.optional(),
  /** How often it looks for what is due where nothing tells it. */
  CHRONOS_TICK_MS: wholeNumber(10, 60_000).default(1000),
  /** How long a replica that has died keeps others from what it was delivering. */
  CHRONOS_CLAIM_LEASE_SECONDS: wholeNumber(1, 3600).default(15),
  /** Deliveries at a time. */
  CHRONOS_CONCURRENCY: wholeNumber(1, 10_000).default(256),
  /** Deliveries at a time to one user's agent. */
  CHRONOS_USER_CONCURRENCY: wholeNumber(1, 10_000).default(4),
  /** An occurrence is given up after so many failed attempts, unless its alarm says otherwise. */
  CHRONOS_MAX_FAILURES: wholeNumber(1, 1000).default(100),
  /** The shortest interval that a series may have. */
  CHRONOS_MIN_INTERVAL_SECONDS: wholeNumber(1, 86_400).default(10),
  /** Alarms of one owner that have not ended. */
  CHRONOS_MAX_ACTIVE_ALARMS: wholeNumber(1, 100_000_000).default(10_000),
  // Bounds on what clients may ask for and store (docs/operations.md, "Floods"). Rates are for this process; 0 lifts a
  // bound.
  /** Challenges and proofs of one owner at one address, in this process; 0 lifts the bound, here and below. */
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
  /** Owners that come by trust on first use, over all replicas. */
  CHRONOS_NEW_OWNERS_PER_HOUR: wholeNumber(0, 100_000_000).default(1000),
  /** Keys in all that came by trust on first use. */
  CHRONOS_MAX_OWNERS: wholeNumber(0, 100_000_000).default(100_000),
  /** Of one owner, ended ones included. */
  CHRONOS_MAX_STORED_ALARMS: wholeNumber(0, 100_000_000).default(100_000),
  /** What the alarms of one owner take up. */
  CHRONOS_MAX_STORED_MIB: wholeNumber(0, 100_000_000).default(2048),
  /** What all alarms take up. */
  CHRONOS_MAX_STORED_MIB_IN_ALL: wholeNumber(0, 100_000_000).default(10_240),
  /** Triggers of one owner that wait to be delivered. */
  CHRONOS_MAX_WAITING_TRIGGERS: wholeNumber(0, 100_000_000).default(1000),
  /**
   * Alarms that were fired, cancelled or failed longer ago are forgotten, with their idempotency keys; 0 keeps them for
   * ever.
   */
  CHRONOS_TERMINAL_RETENTION_DAYS: retentionDays.default(90),
  /** How long a proof of identity counts. */
  CHRONOS_TOKEN_TTL_SECONDS: wholeNumber(1, 86_400).default(300),
  /** Goes without secrets on loopback, while developing. */
  CHRONOS_DEV: switchSetting.default(false),
});

/** Secrets without which nothing protects chronosd. */
const SECRETS = ['CHRONOS_TOKEN', 'CHRONOS_AGENT_AUTH_SECRET', 'CHRONOS_ADMIN_TOKEN', 'CHRONOS_WAKE_TOKEN'] as const;

type ChronosSettings = z.output<typeof chronosSettingsSchema>;
export type ChronosConfig = Readonly<ChronosSettings & { CHRONOS_ENROLLMENT: EnrollmentMode; door: Door }>;

/**
 * Whose keys are let in. Trust at first use is for one person's own machine: where several have the transport token,
 * whoever is first to say a name owns it.
 *
 * @throws ReveilleError `invalid_request` when others are meant to come in and nobody said how
 */
function enrollmentOf({ CHRONOS_ENROLLMENT: said, CHRONOS_HOST: host, CHRONOS_POSTGRES_URI: uri }: ChronosSettings) {
  if (said !== undefined) return said;
  if (isLoopback(host) && uri === undefined) return 'tofu';
  const why =
    uri === undefined
      ? `CHRONOS_HOST is ${JSON.stringify(host)}, which other machines reach`
      : 'CHRONOS_POSTGRES_URI is set, and an alarm clock in PostgreSQL serves several users';
  throw new ReveilleError(
    'invalid_request',
    `CHRONOS_ENROLLMENT is not set, and ${why}. Set CHRONOS_ENROLLMENT=required, and only keys that an operator enrolled are let in ("reveille agent enroll"); or set CHRONOS_ENROLLMENT=tofu, and whoever holds CHRONOS_TOKEN and is first to name an agent owns that name`,
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
      `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not set; set ${missing.length === 1 ? 'it' : 'them'} to at least 16 characters each, or CHRONOS_DEV=1 to go without while developing`,
    );
  if (missing.length > 0 && !isLoopback(config.CHRONOS_HOST))
    throw new ReveilleError(
      'invalid_request',
      `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not set; without ${missing.length === 1 ? 'it' : 'them'} CHRONOS_HOST must be a loopback address, with CHRONOS_DEV=1 too (got ${JSON.stringify(config.CHRONOS_HOST)})`,
    );
  const door = parseDoor('CHRONOS', config.CHRONOS_HOST, settings);
  return Object.freeze({ ...config, CHRONOS_ENROLLMENT: enrollmentOf(config), door });
}

/** The names of the secrets that a configuration for development goes without. */
export function missingSecrets(config: Readonly<ChronosSettings>): string[] {
  return SECRETS.filter((name) => config[name] === undefined);
}
