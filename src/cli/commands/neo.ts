/** `reveille neo`: one agent daemon in the foreground. */
import { parseNeoConfig } from '../../neo/config.ts';
import { startNeo } from '../../neo/daemon.ts';
import type { CliContext } from '../context.ts';
import { runDaemon } from '../foreground.ts';

export async function neo(context: CliContext): Promise<void> {
  const config = parseNeoConfig(context.settings);
  await runDaemon(context, 'neo', (log) => startNeo({ config, clock: context.clock, log }));
}
