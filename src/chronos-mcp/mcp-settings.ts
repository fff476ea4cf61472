/** The chronosd and the identity of the tools (docs/reference/settings.md). */
import { z } from 'zod';
import { labelSchema } from '../wire/did.ts';
import { ReveilleError } from '../wire/errors.ts';
import { credentialSetting, parseSettings, type Settings, urlSetting, wholeNumber } from '../wire/settings.ts';

/** Values from a `reveille up` on this computer; absent fields were not found. */
export type LocalDefaults = {
  url?: string | undefined;
  token?: string | undefined;
  userId?: string | undefined;
  keyFile?: string | undefined;
};

export type McpSettings = { url: string; token: string; userId: string; keyFile: string; timeoutMs: number };

/** A folder with one key file per user: `<user>.key`. */
export type KeyFolder = { url: string; token: string; keysDir: string; timeoutMs: number };

/** The settings of the tools. */
export const mcpSettingsSchema = z.object({
  /** The chronosd of the tools; by default that of this computer's `reveille up`. */
  MATRIX_CHRONOS_URL: urlSetting.optional(),
  /** Its `CHRONOS_TOKEN`. */
  MATRIX_CHRONOS_TOKEN: credentialSetting.optional(),
  /** Time limit of a call in milliseconds; 30000 by default. */
  MATRIX_CHRONOS_TIMEOUT_MS: wholeNumber(1, 3_600_000).optional(),
  /** The agent's label, the owner of the alarms. */
  MATRIX_USER_ID: labelSchema.optional(),
  /** The file of the agent's key, which proves its identity. */
  MATRIX_EXECUTOR_KEYFILE: z.string().optional(),
  /**
   * For a server that acts for several users: a folder with a key per user, `<user>.key`. Each call names its user in
   * `_meta`; `MATRIX_USER_ID` and `MATRIX_EXECUTOR_KEYFILE` do not count.
   */
  MATRIX_AGENT_KEYS: z.string().min(1).optional(),
});

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Checks the given settings, so that a wrong one prevents the start.
 *
 * @returns the time limit of a call
 * @throws ReveilleError `invalid_request` naming the setting, its value (never a secret's) and the allowed values
 */
export function checkMcpSettings(settings: Settings): Pick<McpSettings, 'timeoutMs'> {
  const { MATRIX_CHRONOS_TIMEOUT_MS: timeoutMs = DEFAULT_TIMEOUT_MS } = parseSettings(mcpSettingsSchema, settings);
  return { timeoutMs };
}

/**
 * The settings of a server that acts for several users; `undefined` when it acts for one. A local `reveille up` is not
 * used: these keys may belong to another chronosd.
 *
 * @throws ReveilleError `unavailable` naming the missing settings
 */
export function resolveKeyFolder(settings: Settings): KeyFolder | undefined {
  const given = parseSettings(mcpSettingsSchema, settings);
  const { MATRIX_AGENT_KEYS: keysDir, MATRIX_CHRONOS_URL: url, MATRIX_CHRONOS_TOKEN: token } = given;
  if (keysDir === undefined) return undefined;
  if (url !== undefined && token !== undefined)
    return { url, token, keysDir, timeoutMs: given.MATRIX_CHRONOS_TIMEOUT_MS ?? DEFAULT_TIMEOUT_MS };
  const missing = Object.entries({ MATRIX_CHRONOS_URL: url, MATRIX_CHRONOS_TOKEN: token });
  const names = missing.flatMap(([name, value]) => (value === undefined ? [name] : []));
  throw new ReveilleError('unavailable', `no chronosd is configured: set ${names.join(' and ')}`);
}

/**
 * Completes the environment with values of this computer. The local token is sent only to the local chronosd: another
 * address needs its own.
 *
 * @throws ReveilleError `unavailable` naming the missing settings
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
      `MATRIX_CHRONOS_TOKEN must be set: ${url} is not the chronosd of this computer's "reveille up", whose token is not sent elsewhere`,
    );
  }
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [name] : []));
  throw new ReveilleError(
    'unavailable',
    `chronos is not set up on this computer: run "reveille up", or set ${missing.join(', ')} for this MCP server`,
  );
}
