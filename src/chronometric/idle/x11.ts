/** X11: the screen saver extension of the server, asked through xprintidle. */
import { ReveilleError } from '../../wire/errors.ts';
import type { IdleHost, IdleProbe } from './idle.ts';
import { isWayland, requireProgram } from './place.ts';

export function x11Probe(host: IdleHost): IdleProbe {
  const name = 'x11';
  return {
    name,
    async read(signal) {
      if (isWayland(host)) return { unavailable: 'a Wayland session, in which X does not see the person' };
      const { DISPLAY: display } = host.environment;
      if (!display) return { unavailable: 'DISPLAY is not set' };
      // With a host before the colon it would be reached over the network.
      if (!/^(unix)?:\d+(\.\d+)?$/.test(display))
        return { unavailable: 'DISPLAY is not a display of this machine (:0)' };
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
