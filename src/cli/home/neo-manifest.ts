/** The manifest that Neo's servers stand in: which one is in use, and how a person's word gets into it. */
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
import { ReveilleError } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';
import { toolOptions } from '../up/tool-options.ts';

export type NeoManifest = {
  /** Where it is written to: the one in use, or in the home, when the one in use is the one that ships. */
  readonly path: string;
  /** Its text as it stands. */
  readonly text: string;
  /** Its pins. */
  readonly lock: ToolLock;
  /** The definitions behind the pins. */
  readonly known: KnownTools;
  /** Whether it is the one that ships, and is copied into the home with the first change. */
  readonly isShipped: boolean;
};

const pinsBeside = (path: string) => ({
  lock: readLock(lockPathOf(path)) ?? { lock_version: 1 as const, servers: {} },
  known: readKnownTools(path) ?? {},
});

/** @throws ReveilleError `invalid_request` where Neo has no manifest, or one that cannot be read */
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
      'NEO_MANIFEST is "default", which ships and stays as it is; unset it, or name a copy of agents/default.json',
    );
  const isShipped = manifest === 'bundled';
  const from = isShipped ? bundledManifest('neo') : manifest.path;
  let text: string;
  let path: string;
  try {
    text = readFileSync(from, 'utf8');
    // A link stays one: what it leads to is written.
    path = isShipped ? context.home.manifestFile : realpathSync(from);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReveilleError('invalid_request', `the agent manifest ${from} cannot be read: ${why}`, { cause });
  }
  return { path, text, isShipped, ...pinsBeside(from) };
}

/** Does something with a text as a manifest file that is gone afterwards; errors name the real file. */
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
 * Puts a new text in the manifest's place in one step, and its pins beside it. What was there stays as `….bak`.
 *
 * @returns the backup, if there was anything to keep
 * @throws ReveilleError `invalid_request` for a text that is no manifest, `conflict` when somebody else has changed the
 *   file meanwhile; nothing is written then
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
        `${path} was changed by somebody else meanwhile; nothing was written, run the command again`,
      );
    const backup = isThere ? `${path}.bak` : undefined;
    if (backup !== undefined) copyFileSync(path, backup);
    if (isThere) chmodSync(draft, statSync(path).mode & 0o777);
    // The pins first: of servers that the manifest does not name yet they mean nothing.
    writeLock(lockPathOf(path), lock);
    writeKnownTools(path, known);
    renameSync(draft, path);
    return backup;
  });
}

/** The lines by which a text differs from another: those that go, then those that come. */
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
