/** The variables that configure Neo's tools (docs/reference/settings.md). */
import { join } from 'node:path';
import { z } from 'zod';
import { readEscalatePatterns } from '../../../mcp-host/classify.ts';
import { type HostLimits, limitSettings, parseLimits } from '../../../mcp-host/limits.ts';
import { labelSchema } from '../../../wire/did.ts';
import {
  credentialSetting,
  parseSettings,
  type Settings,
  stopStart,
  tokenSetting,
  urlSetting,
} from '../../../wire/settings.ts';
import { withoutTrailing } from '../../../wire/text.ts';
import type { ExecutorAddress } from '../delegate/delegate.ts';

/** `bundled`: `agents/neo.json`; `default`: `agents/default.json`, an agent with a sense of time and nothing else. */
export type ManifestChoice = { readonly path: string } | 'bundled' | 'default';

export type ToolConfig = {
  /** The agent manifest; `bundled` and `default` are the shipped ones; absent when Neo has no tools. */
  readonly manifest: ManifestChoice | undefined;
  /** The folder that the agent may work in. */
  readonly workspace: string;
  /** The file of the agent's skill. */
  readonly skill: string | undefined;
  /** Parts of names that escalate, beside the built-in ones. */
  readonly patterns: readonly string[];
  /** Limits of the servers that the environment sets; they override those of the manifest. */
  readonly limits?: Partial<HostLimits>;
  /** The executor for `core_execute`. */
  readonly executor: ExecutorAddress | undefined;
};

/** The variables for tools. */
export const toolSettingsSchema = z.object({
  /** The file of the agent's MCP servers; `neo` and `default` are the shipped ones, `none` is no tools. */
  NEO_MANIFEST: z.string().optional(),
  /** The folder that the agent may work in; `workspace` in its data folder by default. */
  NEO_WORKSPACE: z.string().optional(),
  /** Hosts of private networks that the agent's fetch and web_search may reach, by name. */
  NEO_FETCH_ALLOW: z.string().max(4096).optional(),
  /** The address of a SearXNG, which turns web_search on. */
  NEO_SEARCH_URL: urlSetting.optional(),
  /** A key of the Brave Search API, which turns web_search on. */
  NEO_SEARCH_KEY: credentialSetting.optional(),
  /** The file of the agent's skill. */
  NEO_SKILL: z.string().min(1).optional(),
  /** Comma-separated parts of tools' names that only the executor calls, beside the built-in ones. */
  NEO_ESCALATE_PATTERNS: z.string().max(4096).optional(),
  /** The executor for tasks that cannot be undone. */
  NEO_EXECUTOR_URL: urlSetting.optional(),
  /** A submitter's token for it, from `reveille submitter add`. */
  NEO_EXECUTOR_TOKEN: tokenSetting.optional(),
  /** The user of this agent. */
  MATRIX_USER_ID: labelSchema.optional(),
  ...limitSettings('NEO'),
});

/** The values of `NEO_MANIFEST` for no tools, and for the shipped manifests. */
const NAMED = { none: undefined, neo: 'bundled', default: 'default' } as const;

function manifestOf(named = 'neo'): ManifestChoice | undefined {
  return Object.hasOwn(NAMED, named) ? NAMED[named as keyof typeof NAMED] : { path: named };
}

function executorOf(read: z.output<typeof toolSettingsSchema>): ExecutorAddress | undefined {
  const { NEO_EXECUTOR_URL: url, NEO_EXECUTOR_TOKEN: token, MATRIX_USER_ID: userId } = read;
  if (url === undefined) {
    if (token !== undefined)
      stopStart('NEO_EXECUTOR_URL is not set, but NEO_EXECUTOR_TOKEN is: give the address as well');
    return undefined;
  }
  if (token === undefined)
    stopStart(
      'NEO_EXECUTOR_TOKEN is not set, but NEO_EXECUTOR_URL is: give a submitter\'s token, made with "reveille submitter add"; EXECUTOR_TOKEN is the operator\'s and not for an agent',
    );
  if (userId === undefined)
    stopStart('MATRIX_USER_ID is not set: the executor at NEO_EXECUTOR_URL has to know the user of this agent');
  const { username, password, search } = new URL(url);
  if (username !== '' || password !== '' || search !== '') {
    stopStart('NEO_EXECUTOR_URL must be an address without a user name, password or query');
  }
  return { url, token, userId };
}

/**
 * @param dataDir Neo's own folder; the workspace is below it by default
 * @throws ReveilleError `invalid_request` naming each missing or wrong variable
 */
export function parseToolConfig(settings: Settings, dataDir: string): ToolConfig {
  const read = parseSettings(toolSettingsSchema, settings);
  const { NEO_WORKSPACE: workspace, NEO_SKILL: skill } = read;
  const { NEO_ESCALATE_PATTERNS: patterns } = read;
  return Object.freeze({
    manifest: manifestOf(read.NEO_MANIFEST),
    workspace: workspace ?? join(dataDir, 'workspace'),
    skill,
    patterns: patterns === undefined ? [] : readEscalatePatterns(patterns),
    executor: executorOf(read),
    limits: parseLimits('NEO', settings),
  });
}

/**
 * The needs of the manifest's servers for Neo's machine: the variables that they refer to, and the folders that they
 * may write, and the checks that Neo may set. Nothing for the shipped manifests, which run with Neo's own.
 *
 * @param variables the values for references in the manifest
 * @throws ReveilleError `invalid_request` for an invalid manifest, naming every position
 */
export async function manifestNeeds(
  { manifest, workspace }: ToolConfig,
  variables: Settings,
): Promise<{ variables: readonly string[]; writable: readonly string[]; checks?: 'commands' | undefined }> {
  if (typeof manifest !== 'object') return { variables: [], writable: [] };
  const { loadManifest } = await import('../../../mcp-host/manifest.ts');
  // The real paths of both matter only to running servers.
  const folders = { NEO_WORKSPACE: workspace, NEO_TOOL_OUTPUT: workspace };
  const { servers, checks } = loadManifest(manifest.path, { ...variables, ...folders });
  const writable = servers.flatMap(({ link }) => (link.kind === 'stdio' ? (link.writable ?? []) : []));
  return {
    variables: [...new Set(servers.flatMap((server) => server.variables))],
    writable: [...new Set(writable.map((folder) => withoutTrailing(folder, '/') || '/'))],
    checks,
  };
}
