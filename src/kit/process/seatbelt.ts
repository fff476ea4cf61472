/**
 * Walls on macOS: a profile for `sandbox-exec`, in the language of Apple's sandbox. The later rule wins. The program takes the place of
 * `sandbox-exec`, so that process numbers, signals and exit codes are its own.
 */
import { leadingTo, type View } from './separation.ts';

/** A string of the profile's language. */
const quoted = (text: string) => `"${text.replace(/[\\"]/g, '\\$&')}"`;

/** Services that hold the person's keys. Without them, a program that keeps its login in the key store has to be logged in otherwise. */
const KEY_STORES = ['com.apple.SecurityServer', 'com.apple.securityd', 'com.apple.securityd.xpc', 'com.apple.secd'];

/** The profile of a view. Pure. */
export function seatbeltProfile({ hidden, shown, kept }: View): string {
  const place = (path: string, isFolder: boolean) => `(${isFolder ? 'subpath' : 'literal'} ${quoted(path)})`;
  return [
    '(version 1)',
    '(allow default)',
    '(deny process-info* (target others))',
    '(deny signal (target others))',
    '(allow signal (target same-sandbox))',
    '(deny mach-priv-task-port)',
    ...KEY_STORES.map((name) => `(deny mach-lookup (global-name ${quoted(name)}))`),
    // To move a folder is to unlink it where it was.
    ...leadingTo({ hidden, kept }).map((path) => `(deny file-write-unlink (literal ${quoted(path)}))`),
    ...kept.map((path) => `(deny file-write* (subpath ${quoted(path)}))`),
    ...hidden.map(({ path, isFolder }) => `(deny file-read* file-write* ${place(path, isFolder)})`),
    // Whoever may open a file must be able to walk there.
    ...hidden.map(({ path }) => `(allow file-read-metadata (literal ${quoted(path)}))`),
    ...shown.map(
      ({ path, writable }) => `(allow file-read*${writable ? ' file-write*' : ''} (subpath ${quoted(path)}))`,
    ),
  ].join('\n');
}

/** The command that runs a program under the profile of a view. */
export function seatbeltCommand(seatbelt: string, view: View, command: readonly string[]): string[] {
  return [seatbelt, '-p', seatbeltProfile(view), ...command];
}
