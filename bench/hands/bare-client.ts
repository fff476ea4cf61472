/** The MCP library with nothing of ours around it. */
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/**
 * Starts a server and shakes hands with it, everything as the library has it by default. Closing the client ends the
 * server.
 */
export async function connectBare([command, ...args]: readonly [string, ...string[]]): Promise<Client> {
  const client = new Client({ name: 'bench', version: '0' });
  // What the server says on its standard error would stand between the lines of the bench.
  await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
  return client;
}
