/** Where programs and sockets of a desktop stand. Nothing is looked up in PATH: anybody may write there. */
import { ReveilleError } from '../../wire/errors.ts';
import type { IdleHost } from './idle.ts';

/** Folders that only the administrator writes to; the last one is where NixOS keeps them. */
const PROGRAM_FOLDERS = ['/usr/bin', '/bin', '/usr/local/bin', '/run/current-system/sw/bin'];

/** @returns the absolute path, or `undefined` where it is not installed */
export function findProgram(host: IdleHost, name: string): string | undefined {
  return PROGRAM_FOLDERS.map((folder) => `${folder}/${name}`).find((path) => host.exists(path));
}

/** @throws `unavailable` where it is not installed */
export function requireProgram(host: IdleHost, name: string): string {
  const path = findProgram(host, name);
  if (path === undefined) throw new ReveilleError('unavailable', `${name} is not installed`);
  return path;
}

/** Where the sockets of the person's session stand. MCP clients rarely pass the variable on. */
export function runtimeFolder(host: IdleHost): string | undefined {
  const { XDG_RUNTIME_DIR: told } = host.environment;
  if (told?.startsWith('/')) return told;
  return host.uid === undefined ? undefined : `/run/user/${host.uid}`;
}

/**
 * Whether the person sits before Wayland. There X programs see only what is typed into X windows, so that idle time by
 * X is wrong, mostly 0.
 */
export function isWayland(host: IdleHost): boolean {
  const { XDG_SESSION_TYPE: type, WAYLAND_DISPLAY: display } = host.environment;
  if (type === 'wayland' || display) return true;
  if (type === 'x11') return false;
  const folder = runtimeFolder(host);
  return folder !== undefined && ['wayland-0', 'wayland-1'].some((socket) => host.exists(`${folder}/${socket}`));
}
