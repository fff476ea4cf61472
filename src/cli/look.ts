/** The reader of a command's output: their clock, zone and terminal. */
import type { CliContext } from './context.ts';
import type { Look } from './render.ts';

/** Where nobody watches, text is as wide as on an ordinary terminal. */
const ORDINARY_WIDTH = 80;

export function lookOf({ clock, out }: CliContext): Look {
  return {
    now: clock.now(),
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    width: (out.live && process.stdout.columns) || ORDINARY_WIDTH,
    paint: out.paint,
  };
}
