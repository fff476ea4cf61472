/**
 * The changes of connecting or disconnecting a client: computed first, shown, and then written.
 *
 * Disconnecting needs no record. When the file is exactly the result of connecting the backup (or an empty file), it was
 * not changed meanwhile, and the backup is restored. Otherwise only our entries are removed.
 */
import { isDeepStrictEqual } from 'node:util';
import { ReveilleError } from '../../wire/errors.ts';
import type { ClientFile } from './clients.ts';
import {
  backupOf,
  type ConfigFile,
  checkWritable,
  readBackup,
  readConfigFile,
  removeBackup,
  restoreConfigFile,
  writeBackup,
  writeConfigFile,
} from './config-file.ts';
import type { Entries, ServerEntry } from './entries.ts';
import { connectJson, readJson, removeJson } from './json-edit.ts';
import { connectToml, readToml, removeToml } from './toml-edit.ts';

export type Change = {
  readonly file: ConfigFile;
  readonly action: 'create' | 'change' | 'restore' | 'delete' | 'none';
  /** The new content of the file; empty when it is deleted. */
  readonly after: string;
  /** The location of the backup; `undefined` without one. */
  readonly backup: string | undefined;
  apply(): void;
};

type Edit = (text: string) => string;

/** Adds the file's name to an error. */
function about<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw new ReveilleError(thrown.code, `${path}: ${thrown.message}`, { cause: thrown });
  }
}

/** The result of connecting a text; a new file ends with a line end. */
const connected =
  ({ format, parts }: ClientFile, entries: Entries): Edit =>
  (text) => {
    const written = parts.reduce((now, part) => {
      if (format === 'toml') return part.kind === 'servers' ? connectToml(now, part.field, entries) : now;
      return connectJson(now, part, entries);
    }, text);
    return text === '' && written !== '' && !written.endsWith('\n') ? `${written}\n` : written;
  };

const removed =
  ({ format, parts }: ClientFile): Edit =>
  (text) =>
    parts.reduce((now, part) => {
      if (format === 'toml') return part.kind === 'servers' ? removeToml(now, part.field) : now;
      return removeJson(now, part);
    }, text);

const readAs = ({ format }: ClientFile) => (format === 'toml' ? readToml : readJson);

/** Without empty fields, so that removing our entries leaves none behind. */
function withoutEmpty(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  const left = Object.entries(value).flatMap(([name, below]) => {
    const kept = withoutEmpty(below);
    return kept === undefined ? [] : [[name, kept] as const];
  });
  return left.length === 0 ? undefined : Object.fromEntries(left);
}

/** Checks an edit by reading its result: all foreign fields are unchanged, and connecting again changes nothing. */
function checkEdit(described: ClientFile, edit: Edit, before: string, after: string): void {
  const read = readAs(described);
  const without = removed(described);
  const isKept = isDeepStrictEqual(withoutEmpty(read(without(before))), withoutEmpty(read(without(after))));
  if (isKept && edit(after) === after) return;
  throw new ReveilleError(
    'conflict',
    'cannot be changed without touching other entries; add our entries by hand (reveille docs connect an agent)',
  );
}

/** @throws ReveilleError when a file cannot be read or changed; then nothing has been written */
export function planConnect(files: readonly ClientFile[], entries: Entries, project?: string): Change[] {
  return files.map((described) => {
    const file = readConfigFile(described.path, project);
    const edit = connected(described, entries);
    const after = about(described.path, () => {
      const text = edit(file.text);
      checkEdit(described, edit, file.text, text);
      return text;
    });
    if (after === file.text) return { file, action: 'none', after, backup: undefined, apply() {} };
    checkWritable(file);
    if (file.bytes === undefined) {
      const apply = () => {
        // A backup of a file that was removed since is outdated.
        removeBackup(file.path);
        writeConfigFile(file, after);
      };
      return { file, action: 'create', after, backup: undefined, apply };
    }
    // Already connected: the backup is kept.
    const isFirst = removed(described)(file.text) === file.text || readBackup(file.path) === undefined;
    const apply = () => {
      if (isFirst) writeBackup(file);
      writeConfigFile(file, after);
    };
    return { file, action: 'change', after, backup: backupOf(file.path), apply };
  });
}

/** Our entries in a file, for any location of the program. */
function entriesIn(described: ClientFile, text: string): Entries {
  const document = readAs(described)(text);
  const without = readAs(described)(removed(described)(text));
  const at = (from: Record<string, unknown>, ...path: string[]) =>
    path.reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], from);
  let servers: Entries['servers'] = {};
  let hook: readonly string[] | undefined;
  for (const part of described.parts) {
    if (part.kind === 'servers') {
      const all = (at(document, part.field) ?? {}) as Record<string, ServerEntry>;
      const others = (at(without, part.field) ?? {}) as Record<string, unknown>;
      const ours = Object.entries(all).filter(([name]) => !(name in others));
      servers = Object.fromEntries(
        ours.map(([name, { command, args, env }]) => [name, { command, args, ...(env && { env }) }]),
      );
    } else {
      type Group = { hooks: { command: string }[] };
      const commands = ((at(document, 'hooks', part.event) ?? []) as Group[]).flatMap(({ hooks }) => hooks);
      const others = ((at(without, 'hooks', part.event) ?? []) as Group[]).flatMap(({ hooks }) => hooks);
      const ours = commands.find(({ command }) => !others.some((other) => other.command === command));
      if (ours?.command.endsWith(part.flags)) hook = [ours.command.slice(0, ours.command.length - part.flags.length)];
    }
  }
  return { servers, hook };
}

/** @throws ReveilleError when a file cannot be read or changed; then nothing has been written */
export function planUndo(files: readonly ClientFile[], project?: string): Change[] {
  return files.map((described) => {
    const file = readConfigFile(described.path, project);
    const nothing: Change = { file, action: 'none', after: file.text, backup: undefined, apply() {} };
    const without = about(described.path, () => removed(described)(file.text));
    if (without === file.text) return nothing;
    checkWritable(file);
    const again = connected(described, entriesIn(described, file.text));
    const backup = readBackup(file.path);
    const kept = backup && backupOf(file.path);
    if (backup !== undefined && about(backup.path, () => again(backup.text)) === file.text) {
      const apply = () => {
        restoreConfigFile(file, backup.bytes);
        removeBackup(file.path);
      };
      return { file, action: 'restore', after: backup.text, backup: kept, apply };
    }
    if (backup === undefined && again('') === file.text)
      return { file, action: 'delete', after: '', backup: undefined, apply: () => restoreConfigFile(file, undefined) };
    const apply = () => {
      writeConfigFile(file, without);
      removeBackup(file.path);
    };
    return { file, action: 'change', after: without, backup: kept, apply };
  });
}

/** The state of a client: connected, partly or with another program's path, or not connected. */
export function stateOf(files: readonly ClientFile[], entries: Entries): 'connected' | 'otherwise' | 'no' {
  const texts = files.map((described) => ({ described, text: readConfigFile(described.path).text }));
  if (texts.every(({ described, text }) => removed(described)(text) === text)) return 'no';
  return texts.every(({ described, text }) => connected(described, entries)(text) === text) ? 'connected' : 'otherwise';
}

/** Writes all files; when one fails, the earlier ones are restored. */
export function applyChanges(changes: readonly Change[]): void {
  const done: Change[] = [];
  for (const change of changes) {
    try {
      change.apply();
      done.unshift(change);
    } catch (thrown) {
      for (const { file, action } of done)
        if (action !== 'none') restoreConfigFile(readConfigFile(file.path), file.bytes);
      throw thrown;
    }
  }
}
