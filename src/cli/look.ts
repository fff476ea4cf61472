/** The reader of a command's output: their clock, zone and terminal. */
import type { CliContext } from './context.ts';
import type { Look } from './render.ts';

export function lookOf({ clock, out }: CliContext): Look {
  return {
    now: clock.now(),
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    width: out.columns,
    paint: out.paint,
  };
}
