/**
 * An MCP server over stdio, of the 2026 revision. Its tool counts its calls in a file and asks for another call each
 * time.
 */
import { appendFileSync } from 'node:fs';
import { inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const [file = ''] = process.argv.slice(2);

serveStdio(
  () => {
    const server = new McpServer({ name: 'asking', version: '1.0.0' });
    server.registerTool('work', { description: 'Never gets done.' }, () => {
      appendFileSync(file, 'called\n');
      return inputRequired({ requestState: 'once more' });
    });
    return server;
  },
  { legacy: 'reject' },
);
