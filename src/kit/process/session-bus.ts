/**
 * The person's D-Bus session bus, and the locations of a desktop's programs and sockets. PATH is not used, because any
 * user may write to its folders.
 */
import { ReveilleError } from '../../wire/errors.ts';

/** Access to the computer. */
export type DesktopHost = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The user's number, on platforms that have one. */
  readonly uid?: number | undefined;
  exists(path: string): boolean;
};

/** Folders that only the administrator writes to; the last one is for NixOS. */
const PROGRAM_FOLDERS = ['/usr/bin', '/bin', '/usr/local/bin', '/run/current-system/sw/bin'];

/** @returns the absolute path, or `undefined` if it is not installed */
export function findProgram(host: DesktopHost, name: string): string | undefined {
  return PROGRAM_FOLDERS.map((folder) => `${folder}/${name}`).find((path) => host.exists(path));
}

/** The folder with the sockets of the person's session. MCP clients rarely pass the variable on. */
export function runtimeFolder(host: DesktopHost): string | undefined {
  const { XDG_RUNTIME_DIR: folder } = host.environment;
  if (folder?.startsWith('/')) return folder;
  return host.uid === undefined ? undefined : `/run/user/${host.uid}`;
}

/**
 * The socket of the bus. Other transports are refused: `tcp:` uses the network, `unixexec:` and `autolaunch:` start
 * programs.
 *
 * @throws `unavailable`
 */
export function busAddress(host: DesktopHost): string {
  const { DBUS_SESSION_BUS_ADDRESS: addresses } = host.environment;
  if (addresses) {
    const local = addresses.split(';').find((address) => /^unix:(path|abstract)=/.test(address));
    if (local !== undefined) return local;
    throw new ReveilleError('unavailable', 'DBUS_SESSION_BUS_ADDRESS names no local socket (unix:path=…)');
  }
  const folder = runtimeFolder(host);
  if (folder !== undefined && host.exists(`${folder}/bus`)) return `unix:path=${folder}/bus`;
  throw new ReveilleError('unavailable', 'there is no session bus');
}
