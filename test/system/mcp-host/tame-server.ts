/**
 * A well-behaved MCP server over stdio, built with the official library: it echoes, counts, draws, waits and shows its
 * environment.
 */
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

export function createTameServer(): McpServer {
  const server = new McpServer({ name: 'tame', version: '1.2.3' });
  server.registerTool(
    'echo',
    {
      description: 'Gives back what it gets.',
      inputSchema: z.object({ text: z.string() }),
      annotations: { readOnlyHint: true },
    },
    ({ text }) => ({ content: [{ type: 'text', text }] }),
  );
  server.registerTool(
    'draw',
    { description: 'An image and data.', outputSchema: z.object({ width: z.number() }) },
    () => ({
      content: [
        { type: 'text', text: '{"width":1}' },
        { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
      ],
      structuredContent: { width: 1 },
    }),
  );
  server.registerTool(
    'fill',
    { description: 'Much text.', inputSchema: z.object({ characters: z.int() }) },
    ({ characters }) => ({
      content: [
        { type: 'text', text: `<${'x'.repeat(characters)}>` },
        { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
      ],
    }),
  );
  server.registerTool('environment', { description: 'The names and values of its environment.' }, () => ({
    content: [{ type: 'text', text: JSON.stringify({ ...process.env, pid: process.pid }) }],
  }));
  server.registerTool('fail', { description: 'Fails.' }, () => ({
    content: [{ type: 'text', text: 'no such file' }],
    isError: true,
  }));
  return server;
}

/** `modern`: speaks 2026-07-28 only. */
if (import.meta.main) serveStdio(createTameServer, process.argv[2] === 'modern' ? { legacy: 'reject' } : {});
