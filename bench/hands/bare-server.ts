/**
 * An MCP server with the library alone and tools that do nothing: a lower limit for every server built on the library.
 */
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

serveStdio(() => {
  const server = new McpServer({ name: 'bare', version: '0' });
  for (const name of process.argv.slice(2)) {
    const config = { inputSchema: z.looseObject({}), outputSchema: z.looseObject({}), description: name };
    server.registerTool(name, config, () => ({ content: [{ type: 'text', text: '{}' }], structuredContent: {} }));
  }
  return server;
});
// An orderly end, so that Node keeps its compile cache, as it does for Reveille.
process.once('SIGTERM', () => process.exit());
