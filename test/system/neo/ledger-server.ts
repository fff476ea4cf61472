/** An MCP server that writes a line to a file for every call, so that a test can count the real calls. */
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const file = process.argv[2]!;
const tookMs = Number(process.argv[3] ?? 0);

async function record(tool: string, note: string) {
  appendFileSync(file, `${tool} ${note}\n`);
  // Long enough for a kill to fall between the effect and the answer that reports it.
  await delay(tookMs);
  return { content: [{ type: 'text' as const, text: `${tool} ${note} is in the ledger` }] };
}

const inputSchema = z.object({ note: z.string() });

serveStdio(() => {
  const server = new McpServer({ name: 'ledger', version: '1.0.0' });
  server.registerTool('enter', { description: 'Enters a note.', inputSchema }, ({ note }) => record('enter', note));
  server.registerTool(
    'look',
    { description: 'Looks a note up.', inputSchema, annotations: { readOnlyHint: true } },
    ({ note }) => record('look', note),
  );
  return server;
});
