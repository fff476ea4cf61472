/**
 * The limits of the MCP host: the same ones for every daemon that runs servers. The environment goes before the
 * manifest, the manifest before the defaults; a tool's own `timeout_ms` goes before the call's limit.
 */
import { z } from 'zod';
import type { ManifestLimits } from '../wire/manifest.ts';
import { parseSettings, type Settings, wholeNumber } from '../wire/settings.ts';

export type HostLimits = {
  /** From the start of a server's process or connection to the list of its tools. */
  readonly startTimeoutMs: number;
  /** For tools whose manifest names no `timeout_ms`. */
  readonly callTimeoutMs: number;
  /** What a model gets to read of one result. */
  readonly outputTokens: number;
  /** Between two looks at a server that nobody calls. */
  readonly healthIntervalMs: number;
  /** What a server has to answer such a look. */
  readonly healthTimeoutMs: number;
  /** The longest pause before a server that failed is started again; the first one is a second. */
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
  /** What the model gets to read of one result; the rest is kept in a file. */
  OUTPUT_TOKENS: wholeNumber(100, 1_000_000).default(HOST_LIMITS.outputTokens),
  /** Between two looks at a server that nobody calls. */
  HEALTH_INTERVAL_MS: wholeNumber(1000, 3_600_000).default(HOST_LIMITS.healthIntervalMs),
  /** What a server has to answer such a look. */
  HEALTH_TIMEOUT_MS: wholeNumber(100, 600_000).default(HOST_LIMITS.healthTimeoutMs),
  /** The longest pause before a server that failed is started again. */
  RESTART_DELAY_MS: wholeNumber(1000, 3_600_000).default(HOST_LIMITS.restartDelayMs),
};
type Shape<Prefix extends string> = { [Name in keyof typeof shape as `${Prefix}_${Name}`]: (typeof shape)[Name] };

/** The variables as members of a daemon's own schema, so that all that is wrong is told at once. */
export function limitSettings<Prefix extends string>(prefix: Prefix): Shape<Prefix> {
  const members = Object.entries(shape).map(([name, schema]) => [`${prefix}_${name}`, schema]);
  return Object.fromEntries(members) as Shape<Prefix>;
}

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
 * @throws ReveilleError `invalid_request` naming each variable that is wrong
 */
export function parseLimits(prefix: string, settings: Settings): Partial<HostLimits> {
  const schema = z.object(limitSettings(prefix));
  const read = parseSettings(schema, settings) as Record<string, number>;
  const given = Object.entries(MEMBERS).filter(([, name]) => (settings[`${prefix}_${name}`] ?? '') !== '');
  return Object.fromEntries(given.map(([member, name]) => [member, read[`${prefix}_${name}`]!]));
}

/** What the limits are called in a manifest. */
const WRITTEN = {
  startTimeoutMs: 'spawn_timeout_ms',
  callTimeoutMs: 'call_timeout_ms',
  outputTokens: 'output_tokens',
  healthIntervalMs: 'health_interval_ms',
  healthTimeoutMs: 'health_timeout_ms',
  restartDelayMs: 'restart_delay_ms',
} as const satisfies Record<keyof HostLimits, keyof ManifestLimits>;

/** What holds: what is given, else what the manifest says, else the default. */
export function limitsOf(given: Partial<HostLimits> = {}, manifest: ManifestLimits = {}): HostLimits {
  const names = Object.keys(HOST_LIMITS) as (keyof HostLimits)[];
  return Object.fromEntries(
    names.map((name) => [name, given[name] ?? manifest[WRITTEN[name]] ?? HOST_LIMITS[name]]),
  ) as HostLimits;
}

/** The limits in words, as `reveille neo tools` and `reveille doctor` show them. */
export function limitWords({ startTimeoutMs, callTimeoutMs, outputTokens, ...rest }: HostLimits): string {
  const { healthIntervalMs, healthTimeoutMs, restartDelayMs } = rest;
  return [
    `a server has ${startTimeoutMs} ms to start and ${callTimeoutMs} ms for a call`,
    `a result ${outputTokens} tokens`,
    `a look at its health comes every ${healthIntervalMs} ms and waits ${healthTimeoutMs} ms`,
    `one that failed is started again after ${restartDelayMs} ms at the latest`,
  ].join('; ');
}
