/** `reveille ledger`: the ledger of play money, as an MCP server on stdin and stdout. */
import { startLedger } from '../../../examples/ledger/server.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exit-status.ts';

export async function ledger(context: CliContext): Promise<void> {
  const log = await context.log('ledger', 'warn');
  const server = startLedger({ dataDir: context.settings.LEDGER_DATA_DIR!, log, clock: context.clock });
  const end = () => void server.close();
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  await server.closed;
  process.exit(EXIT.done);
}
