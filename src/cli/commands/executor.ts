/** `reveille executor`: one executor in the foreground. */

import { parseExecutorConfig } from '../../executor/config.ts';
import { startExecutor } from '../../executor/daemon.ts';
import { printable } from '../../kit/text/hidden-characters.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exit-status.ts';
import { runDaemon } from '../up/foreground.ts';
import { executorWalls } from '../up/walls.ts';

export async function runExecutor(context: CliContext): Promise<void> {
  const config = parseExecutorConfig(context.settings);
  const { settings: variables, clock } = context;
  await runDaemon(context, 'executor', async (log) => {
    const onNoTools = (error: Error) => {
      // Whoever starts it again, with the manifest as it should be, finds the intents where they were.
      process.stderr.write(`${printable(error.message)}\n`);
      void executor.close().finally(() => process.exit(EXIT.failed));
    };
    const walls = executorWalls(context, config);
    const executor = await startExecutor({ config, variables, walls, clock, log, onNoTools });
    return executor;
  });
}
