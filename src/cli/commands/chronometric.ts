/** `reveille chronometric`: the person's time and sessions, as an MCP server on stdin and stdout. */
import { startChronometric } from '../../chronometric/server.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exit-status.ts';

export type ChronometricFlags = { byCalls?: boolean };

export async function chronometric(context: CliContext, { byCalls = false }: ChronometricFlags): Promise<void> {
  const { settings, clock } = context;
  const log = await context.log('chronometric', 'warn');
  const server = startChronometric({
    dataDir: settings.CHRONOMETRIC_DATA_DIR!,
    environment: settings,
    presence: byCalls ? 'calls' : 'running',
    log,
    clock,
  });
  const end = () => void server.close();
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  await server.closed;
  process.exit(EXIT.done);
}
