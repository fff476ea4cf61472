/** The reader of a command's output: clock, zone and terminal. */
import { machineZone } from '../../kit/clock/zone.ts';
import type { CliContext } from '../context.ts';
import type { Reader } from './render.ts';

export function readerOf({ clock, out, settings }: CliContext): Reader {
  return {
    now: clock.now(),
    // Screens name the zone, so a fallback is visible.
    zone: machineZone(settings.TZ) ?? 'UTC',
    width: out.columns,
    paint: out.paint,
  };
}
