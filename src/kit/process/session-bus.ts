/**
 * The person's D-Bus session bus, and where programs and sockets of a desktop stand. Nothing is looked up in PATH:
 * anybody may write there.
 */
import { ReveilleError } from '../../wire/errors.ts';

/** What may be looked at of a computer. */
export type DesktopPlace = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The user, where the platform numbers them. */
  readonly uid?: number | undefined;
  exists(path: string): boolean;
};

/** Folders that only the administrator writes to; the last one is where NixOS keeps them. */
const PROGRAM_FOLDERS = ['/usr/bin', '/bin', '/usr/local/bin', '/run/current-system/sw/bin'];

/** @returns the absolute path, or `undefined` where it is not installed */
export function findProgram(host: DesktopPlace, name: string): string | undefined {
  return PROGRAM_FOLDERS.map((folder) => `${folder}/${name}`).find((path) => host.exists(path));
}

/** Where the sockets of the person's session stand. MCP clients rarely pass the variable on. */
export function runtimeFolder(host: DesktopPlace): string | undefined {
  const { XDG_RUNTIME_DIR: told } = host.environment;
  if (told?.startsWith('/')) return told;
  return host.uid === undefined ? undefined : `/run/user/${host.uid}`;
}

/**
 * The socket of the bus. Other transports are refused: `tcp:` is the network, `unixexec:` and `autolaunch:` start
 * programs.
 *
 * @throws `unavailable`
 */
export function busAddress(host: DesktopPlace): string {
  const { DBUS_SESSION_BUS_ADDRESS: told } = host.environment;
  if (told) {
    const local = told.split(';').find((address) => /^unix:(path|abstract)=/.test(address));
    if (local !== undefined) return local;
    throw new ReveilleError('unavailable', 'DBUS_SESSION_BUS_ADDRESS names no local socket (unix:path=…)');
  }
  const folder = runtimeFolder(host);
  if (folder !== undefined && host.exists(`${folder}/bus`)) return `unix:path=${folder}/bus`;
  throw new ReveilleError('unavailable', 'there is no session bus');
}
