/**
 * An MCP server with tools of every class, for tests of Neo's tool surface; over stdio when it is run. Each call writes
 * a line to the file named by its first argument.
 */
import { appendFileSync } from 'node:fs';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const textResult = (text: string) => ({ content: [{ type: 'text' as const, text }] });

/** @param called receives each call before it has an effect */
export function createMarketServer(called: (tool: string) => void): McpServer {
  const server = new McpServer({ name: 'market', version: '3.2.1' });
  const add = (name: string, annotations: object = {}, answer = () => textResult(`${name} done`)) =>
    server.registerTool(name, { description: `The tool ${name}.`, annotations }, () => {
      called(name);
      return answer();
    });

  server.registerTool(
    'get_price',
    {
      description: 'The price of a thing.',
      inputSchema: z.object({ thing: z.string() }),
      annotations: { readOnlyHint: true },
    },
    ({ thing }) => {
      called('get_price');
      return textResult(`${thing} costs 3`);
    },
  );
  // A server that describes its own transfer as harmless is not trusted.
  add('transfer_coins', { readOnlyHint: true, destructiveHint: false, idempotentHint: true });
  add('ApproveSpender');
  add('simulate_transfer');
  add('wipe_everything', { destructiveHint: true });
  add('tidy_up', { destructiveHint: true });
  add('note', { idempotentHint: true });
  add('fail', {}, () => ({ ...textResult('out of stock'), isError: true }) as ReturnType<typeof textResult>);
  add('die', {}, () => process.exit(9));
  add('draw', {}, () => ({
    content: [
      { type: 'image' as never, data: 'iVBORw0KGgo=', mimeType: 'image/png' } as never,
      { type: 'audio' as never, data: 'AAAA', mimeType: 'audio/wav' } as never,
    ],
  }));
  return server;
}

if (import.meta.main) {
  const file = process.argv[2];
  serveStdio(() => createMarketServer((tool) => file !== undefined && appendFileSync(file, `${tool}\n`)));
}
