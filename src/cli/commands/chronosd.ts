/** `reveille chronosd`: one chronosd in the foreground. */
import { parseChronosConfig } from '../../chronos/config.ts';
import { startChronos } from '../../chronos/daemon.ts';
import type { CliContext } from '../context.ts';
import { runDaemon } from '../up/foreground.ts';

export async function chronosd(context: CliContext): Promise<void> {
  const config = parseChronosConfig(context.settings);
  await runDaemon(context, 'chronosd', (log) => startChronos({ config, clock: context.clock, log }));
}
