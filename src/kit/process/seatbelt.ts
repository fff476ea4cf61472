/** The sandbox on macOS: a profile for `sandbox-exec`. Its text is tested; it has never been run. */
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Mount, mountsOf, PRIVATE_FOLDERS, type View } from './view.ts';

/** Quotes a string of the profile's language. */
const quoted = (text: string) => `"${text.replace(/[\\"]/g, '\\$&')}"`;

/**
 * Services with the user's keys. Without them, a program that stores its login in the keychain needs another way to log
 * in.
 */
const KEY_STORES = ['com.apple.SecurityServer', 'com.apple.securityd', 'com.apple.securityd.xpc', 'com.apple.secd'];
/** Devices that every program writes to. */
const DEVICES = ['/dev/null', '/dev/zero', '/dev/dtracehelper', '/dev/tty'];

function ruleOf({ path, as, isFolder }: Mount): string[] {
  const filter = `(${isFolder ? 'subpath' : 'literal'} ${quoted(path)})`;
  // Opening a file below it requires metadata access to the folder.
  if (as === 'hidden')
    return [`(deny file-read* file-write* ${filter})`, `(allow file-read-metadata (literal ${quoted(path)}))`];
  if (as === 'read') return [`(allow file-read* ${filter})`, `(deny file-write* ${filter})`];
  // Moving a folder counts as unlinking it at its old path.
  return [`(allow file-read* file-write* ${filter})`, `(deny file-write-unlink (literal ${quoted(path)}))`];
}

/** The profile of a view: only paths named in the view are writable. The last matching rule decides. Pure. */
export function seatbeltProfile(view: View, temporary?: string): string {
  const mounts = mountsOf(view).filter(({ path }) => !PRIVATE_FOLDERS.includes(path));
  return [
    '(version 1)',
    '(allow default)',
    '(deny process-info* (target others))',
    '(deny signal (target others))',
    '(allow signal (target same-sandbox))',
    '(deny mach-priv-task-port)',
    ...KEY_STORES.map((name) => `(deny mach-lookup (global-name ${quoted(name)}))`),
    '(deny file-write*)',
    ...DEVICES.map((path) => `(allow file-write-data (literal ${quoted(path)}))`),
    ...(temporary === undefined ? [] : [`(allow file-write* (subpath ${quoted(temporary)}))`]),
    ...mounts.flatMap(ruleOf),
  ].join('\n');
}

/** The command that runs a program under a view's profile, with its own folder for temporary files. */
export function seatbeltCommand(seatbelt: string, view: View, command: readonly string[]): string[] {
  const written = view.shown.flatMap(({ path, writable }) => (writable ? [path] : []));
  const name = createHash('sha256')
    .update(JSON.stringify([written, command[0]]))
    .digest('hex')
    .slice(0, 16);
  const temporary = join(tmpdir(), `reveille-sandbox-${name}`);
  mkdirSync(temporary, { recursive: true, mode: 0o700 });
  return ['/usr/bin/env', `TMPDIR=${temporary}`, seatbelt, '-p', seatbeltProfile(view, temporary), ...command];
}
