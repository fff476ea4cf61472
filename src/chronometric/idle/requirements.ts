/** Requirements of probes. */
import { findProgram, runtimeFolder } from '../../kit/process/session-bus.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { IdleHost } from './idle.ts';

/** @throws `unavailable` when it is not installed */
export function requireProgram(host: IdleHost, name: string): string {
  const path = findProgram(host, name);
  if (path === undefined) throw new ReveilleError('unavailable', `${name} is not installed`);
  return path;
}

/** Whether the session uses Wayland. There X programs see only input to X windows, so X's idle time is wrong, mostly 0. */
export function isWayland(host: IdleHost): boolean {
  const { XDG_SESSION_TYPE: type, WAYLAND_DISPLAY: display } = host.environment;
  if (type === 'wayland' || display) return true;
  if (type === 'x11') return false;
  const folder = runtimeFolder(host);
  return folder !== undefined && ['wayland-0', 'wayland-1'].some((socket) => host.exists(`${folder}/${socket}`));
}
