/** The ledger as an MCP server, without a command line. Argument: its folder. */
import { startLedger } from '../../../examples/ledger/server.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';

const server = startLedger({ dataDir: process.argv[2]!, log: silentLogger });
await server.closed;
process.exit(0);
