/** The probes of Linux and the BSDs: the desktops' idle monitors, the X server, and logind as the last resort. */
import type { Clock } from '../../kit/clock/clock.ts';
import { busAddress, findProgram, runtimeFolder } from '../../kit/process/session-bus.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { IdleHost, IdleProbe, IdleReading } from './idle.ts';

/** A method without arguments that returns one unsigned number. */
type BusMethod = {
  readonly service: string;
  readonly path: string;
  readonly interface: string;
  readonly method: string;
};

/**
 * @returns the service's number; inexact beyond 2^53
 * @throws `unavailable` without a bus, a service, or a valid answer
 */
export async function queryBus(host: IdleHost, question: BusMethod, signal: AbortSignal): Promise<number> {
  const address = busAddress(host);
  const busctl = findProgram(host, 'busctl');
  const gdbus = findProgram(host, 'gdbus');
  if (busctl) return await queryByBusctl(host, busctl, address, question, signal);
  if (gdbus) return await queryByGdbus(host, gdbus, address, question, signal);
  throw new ReveilleError('unavailable', 'neither busctl nor gdbus is installed');
}

async function queryByBusctl(
  host: IdleHost,
  busctl: string,
  address: string,
  { service, path, interface: name, method }: BusMethod,
  signal: AbortSignal,
): Promise<number> {
  // A query must not start a desktop's service.
  const options = [`--address=${address}`, '--auto-start=no', '--no-pager'];
  return numberOfBusctl(await host.run(busctl, [...options, 'call', service, path, name, method], signal));
}

async function queryByGdbus(
  host: IdleHost,
  gdbus: string,
  address: string,
  { service, path, interface: name, method }: BusMethod,
  signal: AbortSignal,
): Promise<number> {
  const call = (target: string, object: string, member: string, ...args: string[]) => {
    const options = ['--address', address, '--dest', target, '--object-path', object, '--method', member];
    return host.run(gdbus, ['call', ...options, ...args], signal);
  };
  // It has no option against starting a service.
  const runs = await call(
    'org.freedesktop.DBus',
    '/org/freedesktop/DBus',
    'org.freedesktop.DBus.NameHasOwner',
    service,
  );
  if (runs !== '(true,)\n') throw new ReveilleError('unavailable', `${service} is not on the session bus`);
  return numberOfGdbus(await call(service, path, `${name}.${method}`));
}

/** `t 12345` or `u 12345`, a whole line. */
export function numberOfBusctl(output: string): number {
  return numberIn(/^[tu] (\d{1,20})\n$/, output);
}

/** `(uint64 12345,)` or `(uint32 12345,)`, a whole line. */
export function numberOfGdbus(output: string): number {
  return numberIn(/^\(uint(?:32|64) (\d{1,20}),\)\n$/, output);
}

function numberIn(pattern: RegExp, output: string): number {
  const digits = pattern.exec(output)?.[1];
  // The output is not quoted: it may be a sample.
  if (digits === undefined) throw new ReveilleError('unavailable', 'its answer is not an unsigned number');
  return Number(digits);
}

/** @throws `unavailable` when it is not installed */
function requireProgram(host: IdleHost, name: string): string {
  const path = findProgram(host, name);
  if (path === undefined) throw new ReveilleError('unavailable', `${name} is not installed`);
  return path;
}

/** Whether the session uses Wayland. There X programs see only input to X windows, so X's idle time is wrong, mostly 0. */
function isWayland(host: IdleHost): boolean {
  const { XDG_SESSION_TYPE: type, WAYLAND_DISPLAY: display } = host.environment;
  if (type === 'wayland' || display) return true;
  if (type === 'x11') return false;
  const folder = runtimeFolder(host);
  return folder !== undefined && ['wayland-0', 'wayland-1'].some((socket) => host.exists(`${folder}/${socket}`));
}

// GNOME: Mutter counts the milliseconds itself, under Wayland and X alike.

const MUTTER = {
  service: 'org.gnome.Mutter.IdleMonitor',
  path: '/org/gnome/Mutter/IdleMonitor/Core',
  interface: 'org.gnome.Mutter.IdleMonitor',
  method: 'GetIdletime',
};

export function gnomeMutterProbe(host: IdleHost): IdleProbe {
  const name = 'gnome-mutter';
  return { name, read: async (signal) => ({ idleMs: await queryBus(host, MUTTER, signal), source: name }) };
}

// X11: the screen saver extension of the server, through xprintidle.

export function x11Probe(host: IdleHost): IdleProbe {
  const name = 'x11';
  return {
    name,
    async read(signal) {
      if (isWayland(host)) return { unavailable: 'a Wayland session, in which X does not see input' };
      const { DISPLAY: display } = host.environment;
      if (!display) return { unavailable: 'DISPLAY is not set' };
      // A host before the colon would be reached over the network.
      if (!/^(unix)?:\d+(\.\d+)?$/.test(display))
        return { unavailable: 'DISPLAY is not a display of this computer (:0)' };
      return { idleMs: idleOfXprintidle(await host.run(requireProgram(host, 'xprintidle'), [], signal)), source: name };
    },
  };
}

/** Milliseconds on a whole line. */
export function idleOfXprintidle(output: string): number {
  const digits = /^(\d{1,20})\n$/.exec(output)?.[1];
  if (digits === undefined) throw new ReveilleError('unavailable', 'its answer is not a number of milliseconds');
  return Number(digits);
}

/**
 * The service has KDE's own name: other desktops own `org.freedesktop.ScreenSaver` too, and some of them answer in
 * seconds. KDE answers in milliseconds.
 */
const KDE = {
  service: 'org.kde.screensaver',
  path: '/ScreenSaver',
  interface: 'org.freedesktop.ScreenSaver',
  method: 'GetSessionIdleTime',
};

export function kdeProbe(host: IdleHost): IdleProbe {
  const name = 'kde';
  return {
    name,
    async read(signal) {
      const idleMs = await queryBus(host, KDE, signal);
      // KWin has no answer under Wayland; older versions return 0, newer ones fail.
      if (idleMs === 0 && isWayland(host)) return { unavailable: 'under Wayland it always answers 0' };
      return { idleMs, source: name };
    },
  };
}

/** The desktop's own delay is unknown; beyond this limit the user is away in any case. */
const TRUSTED_AFTER_MS = 5 * 60_000;
const PROPERTIES = ['Type', 'Class', 'Remote', 'Active', 'IdleHint', 'IdleSinceHint'];
const GRAPHICAL = new Set(['x11', 'wayland', 'mir']);

export function logindProbe(host: IdleHost, clock: Clock): IdleProbe {
  return {
    name: 'logind',
    async read(signal) {
      const loginctl = requireProgram(host, 'loginctl');
      const { XDG_SESSION_ID: id = '' } = host.environment;
      // `auto` is our own session, or else the user's graphical one.
      const session = /^[A-Za-z0-9]{1,64}$/.test(id) ? id : 'auto';
      const options = PROPERTIES.map((property) => `--property=${property}`);
      return idleOfSession(await host.run(loginctl, ['show-session', ...options, session], signal), clock.now());
    },
  };
}

/**
 * @param output of `loginctl show-session`: lines of `Name=value`
 * @param now epoch milliseconds
 * @returns the minimum idle time
 */
export function idleOfSession(output: string, now: number): IdleReading {
  const unavailable = (why: string): IdleReading => ({ unavailable: why });
  const property = new Map(output.split('\n').flatMap((line) => entryOf(line)));
  const missing = PROPERTIES.filter((name) => !property.has(name));
  if (missing.length > 0 || !output.endsWith('\n')) return unavailable('its answer is not complete');
  if (property.get('Class') !== 'user') return unavailable('not the session of a user');
  if (!GRAPHICAL.has(property.get('Type')!)) return unavailable('the session has no desktop that could set the hint');
  if (property.get('Remote') !== 'no') return unavailable('the session is on another machine');
  if (property.get('Active') !== 'yes') return unavailable('the session is not the one on the screen');
  if (property.get('IdleHint') !== 'yes') return unavailable('the idle hint is not set, which has no meaning');
  const since = property.get('IdleSinceHint')!;
  if (!/^[1-9]\d{0,19}$/.test(since)) return unavailable('the hint has no time');
  const idleMs = now - Number(BigInt(since) / 1000n);
  if (idleMs < 0) return unavailable('the hint is in the future');
  if (idleMs < TRUSTED_AFTER_MS) {
    return unavailable('the desktop set the hint recently, after an unknown delay');
  }
  return { idleMs, source: 'logind' };
}

function entryOf(line: string): [string, string][] {
  const at = line.indexOf('=');
  return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
}
