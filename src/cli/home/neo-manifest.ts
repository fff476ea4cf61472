/** The manifest of Neo's servers: the one in use, its changes, and the options with which commands start them. */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { parseToolConfig, type ToolConfig } from '../../agents/neo/tools/settings.ts';
import type { HostOptions } from '../../agents/neo/tools/start-host.ts';
import { bundledManifest } from '../../mcp-host/bundled-programs.ts';
import { loadManifest } from '../../mcp-host/manifest.ts';
import {
  type KnownTools,
  lockPathOf,
  readKnownTools,
  readLock,
  type ToolLock,
  writeKnownTools,
  writeLock,
} from '../../mcp-host/tool-lock.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { labelOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';

export type NeoManifest = {
  /** The file to write: the one in use, or in the home when the built-in one is in use. */
  readonly path: string;
  readonly text: string;
  readonly lock: ToolLock;
  /** The definitions behind the pins. */
  readonly known: KnownTools;
  /** Whether it is the built-in one, which the first change copies into the home. */
  readonly isShipped: boolean;
};

const pinsBeside = (path: string) => ({
  lock: readLock(lockPathOf(path)) ?? { lock_version: 1 as const, servers: {} },
  known: readKnownTools(path) ?? {},
});

/** @throws ReveilleError `invalid_request` when Neo has no manifest, or an unreadable one */
export async function manifestInUse(context: CliContext): Promise<NeoManifest> {
  const { manifest } = (await toolOptions(context)).config;
  if (manifest === undefined)
    throw new ReveilleError(
      'invalid_request',
      'NEO_MANIFEST is "none": Neo has no servers; unset it, or name a manifest',
    );
  if (manifest === 'default')
    throw new ReveilleError(
      'invalid_request',
      'NEO_MANIFEST is "default", which is built in and cannot be changed; unset it, or name a copy of agents/default.json',
    );
  const isShipped = manifest === 'bundled';
  const from = isShipped ? bundledManifest('neo') : manifest.path;
  let text: string;
  let path: string;
  try {
    text = readFileSync(from, 'utf8');
    // A link stays a link: its target is written.
    path = isShipped ? context.home.manifestFile : realpathSync(from);
  } catch (cause) {
    const why = thrownText(cause);
    throw new ReveilleError('invalid_request', `the agent manifest ${from} cannot be read: ${why}`, { cause });
  }
  return { path, text, isShipped, ...pinsBeside(from) };
}

/** Calls a function with a text as a temporary manifest file; errors name the real file. */
export async function asFile<T>(
  { path }: NeoManifest,
  text: string,
  use: (draft: string) => T | Promise<T>,
): Promise<T> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path.replace(/\.json$/, '')}.${randomBytes(6).toString('hex')}.draft.json`;
  writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true });
  try {
    return await use(draft);
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw new ReveilleError(thrown.code, thrown.message.replaceAll(draft, path), { cause: thrown });
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Replaces the manifest in one step, and writes its pins beside it. The old file stays as `….bak`.
 *
 * @returns the backup, if there was a file
 * @throws ReveilleError `invalid_request` for a text that is not a manifest, `conflict` when the file was changed
 *   meanwhile; nothing is written then
 */
export async function saveManifest(
  context: CliContext,
  manifest: NeoManifest,
  text: string,
  lock: ToolLock,
  known: KnownTools = manifest.known,
): Promise<string | undefined> {
  const { path, isShipped } = manifest;
  return asFile(manifest, text, (draft) => {
    const { NEO_WORKSPACE = '.', NEO_TOOL_OUTPUT = '.' } = context.settings;
    loadManifest(draft, { ...context.settings, NEO_WORKSPACE, NEO_TOOL_OUTPUT });
    const isThere = existsSync(path);
    if (isShipped ? isThere : !isThere || readFileSync(path, 'utf8') !== manifest.text)
      throw new ReveilleError(
        'conflict',
        `${path} was changed by another program; nothing was written, run the command again`,
      );
    const backup = isThere ? `${path}.bak` : undefined;
    if (backup !== undefined) copyFileSync(path, backup);
    if (isThere) chmodSync(draft, statSync(path).mode & 0o777);
    // The pins first: pins of servers that are not in the manifest have no effect.
    writeLock(lockPathOf(path), lock);
    writeKnownTools(path, known);
    renameSync(draft, path);
    return backup;
  });
}

/** The differing lines: removed ones, then added ones. */
export function changedLines(before: string, after: string): string[] {
  const [old, fresh] = [before.split('\n'), after.split('\n')];
  let head = 0;
  while (head < Math.min(old.length, fresh.length) && old[head] === fresh[head]) head++;
  let tail = 0;
  const most = Math.min(old.length, fresh.length) - head;
  while (tail < most && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++;
  return [
    ...old.slice(head, old.length - tail).map((line) => `- ${line}`),
    ...fresh.slice(head, fresh.length - tail).map((line) => `+ ${line}`),
  ];
}

/** The settings with the label of this computer's agent, if it has one. */
export function settingsOfAgent(context: CliContext): CliContext['settings'] {
  const userId = labelOf(context);
  return userId === undefined ? context.settings : { ...context.settings, MATRIX_USER_ID: userId };
}

/** @param manifest the path of a manifest, instead of the configured one */
export async function toolOptions(
  context: CliContext,
  manifest?: string,
): Promise<Omit<HostOptions, 'config'> & { config: ToolConfig }> {
  const settings = settingsOfAgent(context);
  const dataDir = context.settings.NEO_DATA_DIR!;
  const config = parseToolConfig({ ...settings, ...(manifest !== undefined && { NEO_MANIFEST: manifest }) }, dataDir);
  return { config, variables: settings, dataDir, clock: context.clock, log: await context.log('neo', 'error') };
}
