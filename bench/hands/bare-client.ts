/** The MCP library without Reveille code around it. */
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/** Starts a server and completes the handshake, with the library's defaults. Closing the client ends the server. */
export async function connectBare([command, ...args]: readonly [string, ...string[]]): Promise<Client> {
  const client = new Client({ name: 'bench', version: '0' });
  // The server's standard error would appear between the output lines of the benchmark.
  await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
  return client;
}
