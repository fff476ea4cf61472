/**
 * logind, the last resort: it keeps a hint that the desktop may set, and many never do. So it is believed in one case only: a graphical
 * session on this machine that the desktop called idle, long enough ago that it does not matter how long the desktop waited before
 * it did. A hint of `no` says nothing: neither whether anybody sets it, nor since when the person is there.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import type { IdleHost, IdleProbe, IdleReading } from './idle.ts';
import { requireProgram } from './place.ts';

/** The desktop's own wait is not known; from here on the person is away whatever it was. */
const BELIEVED_AFTER_MS = 5 * 60_000;
const PROPERTIES = ['Type', 'Class', 'Remote', 'Active', 'IdleHint', 'IdleSinceHint'];
const GRAPHICAL = new Set(['x11', 'wayland', 'mir']);

export function logindProbe(host: IdleHost, clock: Clock): IdleProbe {
  return {
    name: 'logind',
    async read(signal) {
      const loginctl = requireProgram(host, 'loginctl');
      const { XDG_SESSION_ID: told = '' } = host.environment;
      // `auto` is the session that we run in, or else the person's graphical one.
      const session = /^[A-Za-z0-9]{1,64}$/.test(told) ? told : 'auto';
      const options = PROPERTIES.map((property) => `--property=${property}`);
      return idleOfSession(await host.run(loginctl, ['show-session', ...options, session], signal), clock.now());
    },
  };
}

/**
 * What the properties of a session say.
 *
 * @param output of `loginctl show-session`: lines of `Name=value`
 * @param now epoch milliseconds
 * @returns at least how long the person is away
 */
export function idleOfSession(output: string, now: number): IdleReading {
  const unavailable = (why: string): IdleReading => ({ unavailable: why });
  const property = new Map(output.split('\n').flatMap((line) => entryOf(line)));
  const missing = PROPERTIES.filter((name) => !property.has(name));
  if (missing.length > 0 || !output.endsWith('\n')) return unavailable('its answer is not complete');
  if (property.get('Class') !== 'user') return unavailable('not the session of a person');
  if (!GRAPHICAL.has(property.get('Type')!)) return unavailable('the session has no desktop that could set the hint');
  if (property.get('Remote') !== 'no') return unavailable('the session is on another machine');
  if (property.get('Active') !== 'yes') return unavailable('the session is not the one on the screen');
  if (property.get('IdleHint') !== 'yes') return unavailable('the hint is not set, which may mean anything');
  const since = property.get('IdleSinceHint')!;
  if (!/^[1-9]\d{0,19}$/.test(since)) return unavailable('the hint has no time');
  const idleMs = now - Number(BigInt(since) / 1000n);
  if (idleMs < 0) return unavailable('the hint is of the future');
  if (idleMs < BELIEVED_AFTER_MS) {
    return unavailable('the desktop called the session idle a short time ago, and not how long it waited before');
  }
  return { idleMs, source: 'logind' };
}

function entryOf(line: string): [string, string][] {
  const at = line.indexOf('=');
  return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
}
