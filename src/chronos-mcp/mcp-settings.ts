/** Which chronosd the tools call, and as whom (docs/contracts.md §7 and §11). */
import { z } from 'zod';
import { labelSchema } from '../wire/did.ts';
import { ReveilleError } from '../wire/errors.ts';
import { parseSettings, type Settings, urlSetting, wholeNumber } from '../wire/settings.ts';

/** What a `reveille up` on this machine left in its home; absent members were not found. */
export type LocalDefaults = {
  url?: string | undefined;
  token?: string | undefined;
  userId?: string | undefined;
  keyFile?: string | undefined;
};

export type McpSettings = { url: string; token: string; userId: string; keyFile: string; timeoutMs: number };

/** Which keys there are for several users, one file each: `<user>.key`. */
export type KeyFolder = { url: string; token: string; keysDir: string; timeoutMs: number };

/** The variables that the tools read. */
export const mcpSettingsSchema = z.object({
  /** Which chronosd the tools call; that of this machine's `reveille up` unless told. */
  MATRIX_CHRONOS_URL: urlSetting.optional(),
  /** Its `CHRONOS_TOKEN`. */
  MATRIX_CHRONOS_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
    .optional(),
  /** How long one call may take; 30000 unless told. */
  MATRIX_CHRONOS_TIMEOUT_MS: wholeNumber(1, 3_600_000).optional(),
  /** Whose alarms these are: the agent's label. */
  MATRIX_USER_ID: labelSchema.optional(),
  /** The file with the agent's key, with which it proves who it is. */
  MATRIX_EXECUTOR_KEYFILE: z.string().optional(),
  /**
   * For a server that acts for several users: a folder with a key for each, `<user>.key`. Each call says in its `_meta`
   * whom it is made for, and `MATRIX_USER_ID` and `MATRIX_EXECUTOR_KEYFILE` do not count.
   */
  MATRIX_AGENT_KEYS: z.string().min(1).optional(),
});

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Checks the variables that are set, so that a wrong one stops the start.
 *
 * @throws ReveilleError `invalid_request` naming the variable, its value (never a secret's) and what is allowed
 */
export function checkMcpSettings(settings: Settings): void {
  parseSettings(mcpSettingsSchema, settings);
}

/**
 * The settings of a server that acts for several users; `undefined` when it acts for one. Nothing is taken from a local
 * `reveille up`: whose chronosd that is says nothing about whom these keys are for.
 *
 * @throws ReveilleError `unavailable` naming the variables that are not set
 */
export function resolveKeyFolder(settings: Settings): KeyFolder | undefined {
  const given = parseSettings(mcpSettingsSchema, settings);
  const { MATRIX_AGENT_KEYS: keysDir, MATRIX_CHRONOS_URL: url, MATRIX_CHRONOS_TOKEN: token } = given;
  if (keysDir === undefined) return undefined;
  if (url !== undefined && token !== undefined)
    return { url, token, keysDir, timeoutMs: given.MATRIX_CHRONOS_TIMEOUT_MS ?? DEFAULT_TIMEOUT_MS };
  const missing = Object.entries({ MATRIX_CHRONOS_URL: url, MATRIX_CHRONOS_TOKEN: token });
  const names = missing.flatMap(([name, value]) => (value === undefined ? [name] : []));
  throw new ReveilleError('unavailable', `there is no chronosd to set alarms in: ${names.join(' and ')} must be set`);
}

/**
 * Fills what the environment leaves open from what is on this machine. The local token goes only to the local chronosd:
 * an address from the environment needs its own.
 *
 * @throws ReveilleError `unavailable` naming the variables that are neither set nor known here
 */
export function resolveMcpSettings(settings: Settings, local: LocalDefaults): McpSettings {
  const given = parseSettings(mcpSettingsSchema, settings);
  const url = given.MATRIX_CHRONOS_URL ?? local.url;
  const token = given.MATRIX_CHRONOS_TOKEN ?? (url === local.url ? local.token : undefined);
  const userId = given.MATRIX_USER_ID ?? local.userId;
  const keyFile = given.MATRIX_EXECUTOR_KEYFILE ?? local.keyFile;
  if (url !== undefined && token !== undefined && userId !== undefined && keyFile !== undefined) {
    return { url, token, userId, keyFile, timeoutMs: given.MATRIX_CHRONOS_TIMEOUT_MS ?? DEFAULT_TIMEOUT_MS };
  }
  const needed = {
    MATRIX_CHRONOS_URL: url,
    MATRIX_CHRONOS_TOKEN: token,
    MATRIX_USER_ID: userId,
    MATRIX_EXECUTOR_KEYFILE: keyFile,
  };
  if (token === undefined && local.token !== undefined) {
    throw new ReveilleError(
      'unavailable',
      `MATRIX_CHRONOS_TOKEN must be set: ${url} is not the chronosd of this machine's "reveille up", whose token is not sent elsewhere`,
    );
  }
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [name] : []));
  throw new ReveilleError(
    'unavailable',
    `chronos is not set up on this machine: run "reveille up", or set ${missing.join(', ')} for this MCP server`,
  );
}
