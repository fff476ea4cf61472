/**
 * The limits of the MCP host, the same for every daemon that runs servers. The environment overrides the manifest,
 * which overrides the defaults. A tool's own `timeout_ms` overrides the limit of a call.
 */
import type { ManifestLimits } from '../wire/manifest.ts';
import { parsePrefixed, prefixed, type Settings, wholeNumber } from '../wire/settings.ts';

export type HostLimits = {
  /** From the start of a server's process or connection to its list of tools. */
  readonly startTimeoutMs: number;
  /** For tools whose manifest entry has no `timeout_ms`. */
  readonly callTimeoutMs: number;
  /** How much of one result a model reads. */
  readonly outputTokens: number;
  /** Time between two health checks of an idle server. */
  readonly healthIntervalMs: number;
  /** How long a server has to answer a health check. */
  readonly healthTimeoutMs: number;
  /** The longest delay before a failed server is restarted; the first delay is one second. */
  readonly restartDelayMs: number;
};

export const HOST_LIMITS: HostLimits = Object.freeze({
  startTimeoutMs: 30_000,
  callTimeoutMs: 60_000,
  outputTokens: 25_000,
  healthIntervalMs: 30_000,
  healthTimeoutMs: 10_000,
  restartDelayMs: 60_000,
});

const shape = {
  /** From the start of an MCP server to the list of its tools. */
  SPAWN_TIMEOUT_MS: wholeNumber(100, 600_000).default(HOST_LIMITS.startTimeoutMs),
  /** How long a call may take whose tool has no `timeout_ms` in the manifest. */
  CALL_TIMEOUT_MS: wholeNumber(100, 3_600_000).default(HOST_LIMITS.callTimeoutMs),
  /** How much of one result the model reads; the rest is stored in a file. */
  OUTPUT_TOKENS: wholeNumber(100, 1_000_000).default(HOST_LIMITS.outputTokens),
  /** Time between two health checks of an idle server. */
  HEALTH_INTERVAL_MS: wholeNumber(1000, 3_600_000).default(HOST_LIMITS.healthIntervalMs),
  /** How long a server has to answer a health check. */
  HEALTH_TIMEOUT_MS: wholeNumber(100, 600_000).default(HOST_LIMITS.healthTimeoutMs),
  /** The longest delay before a failed server is restarted. */
  RESTART_DELAY_MS: wholeNumber(1000, 3_600_000).default(HOST_LIMITS.restartDelayMs),
};
/** The variables as members of a daemon's own schema. */
export const limitSettings = <Prefix extends string>(prefix: Prefix) => prefixed(prefix, shape);

const MEMBERS = {
  startTimeoutMs: 'SPAWN_TIMEOUT_MS',
  callTimeoutMs: 'CALL_TIMEOUT_MS',
  outputTokens: 'OUTPUT_TOKENS',
  healthIntervalMs: 'HEALTH_INTERVAL_MS',
  healthTimeoutMs: 'HEALTH_TIMEOUT_MS',
  restartDelayMs: 'RESTART_DELAY_MS',
} as const satisfies Record<keyof HostLimits, keyof typeof shape>;

/**
 * The limits that the environment sets, and no others.
 *
 * @throws ReveilleError `invalid_request` naming each invalid variable
 */
export function parseLimits(prefix: string, settings: Settings): Partial<HostLimits> {
  const read = parsePrefixed(prefix, shape, settings);
  const given = Object.entries(MEMBERS).filter(([, name]) => (settings[`${prefix}_${name}`] ?? '') !== '');
  return Object.fromEntries(given.map(([member, name]) => [member, read[name]]));
}

/** The name of a limit in a manifest: that of its variable, in lower case. */
const inManifest = (name: keyof HostLimits) => MEMBERS[name].toLowerCase() as Lowercase<(typeof MEMBERS)[typeof name]>;

/** The effective limits: the given value, else the manifest's, else the default. */
export function resolveLimits(given: Partial<HostLimits> = {}, manifest: ManifestLimits = {}): HostLimits {
  const names = Object.keys(HOST_LIMITS) as (keyof HostLimits)[];
  return Object.fromEntries(
    names.map((name) => [name, given[name] ?? manifest[inManifest(name)] ?? HOST_LIMITS[name]]),
  ) as HostLimits;
}

/** The limits as text for `reveille neo tools` and `reveille doctor`. */
export function describeLimits({ startTimeoutMs, callTimeoutMs, outputTokens, ...rest }: HostLimits): string {
  const { healthIntervalMs, healthTimeoutMs, restartDelayMs } = rest;
  return [
    `a server has ${startTimeoutMs} ms to start and ${callTimeoutMs} ms for a call`,
    `a result ${outputTokens} tokens`,
    `a health check runs every ${healthIntervalMs} ms and waits ${healthTimeoutMs} ms`,
    `a failed server is restarted after at most ${restartDelayMs} ms`,
  ].join('; ');
}
