/** The reader of a command's output: clock, zone and terminal. */
import { machineZone } from '../../kit/clock/machine-zone.ts';
import type { CliContext } from '../context.ts';
import type { Look } from './render.ts';

export function lookOf({ clock, out, settings }: CliContext): Look {
  return {
    now: clock.now(),
    // Screens name the zone, so a fallback is visible.
    zone: machineZone(settings.TZ) ?? 'UTC',
    width: out.columns,
    paint: out.paint,
  };
}
