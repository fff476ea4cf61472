/** `reveille router`: one router in the foreground. */
import { parseRouterConfig } from '../../router/config.ts';
import { startRouter } from '../../router/daemon.ts';
import { VERSION } from '../../wire/version.ts';
import type { CliContext } from '../context.ts';
import { runDaemon } from '../up/foreground.ts';
import { machineWalls } from '../up/walls.ts';

export async function router(context: CliContext): Promise<void> {
  const config = parseRouterConfig(context.settings);
  const { environment, clock } = context;
  const walls = machineWalls(context, config.separation);
  await runDaemon(context, 'router', (log) =>
    startRouter({ config, environment, walls, version: VERSION, clock, log }),
  );
}
