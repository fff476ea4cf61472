/** An MCP server over stdio that asks the person for a city before it books. */
import { inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const schema = { type: 'object' as const, properties: { city: { type: 'string' as const } }, required: ['city'] };

serveStdio(() => {
  const server = new McpServer({ name: 'hotel', version: '1.0.0' });
  server.registerTool('book', { description: 'Books a room.' }, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.where as { action?: string; content?: { city?: string } } | undefined;
    if (answer === undefined)
      return inputRequired({
        inputRequests: {
          where: inputRequired.elicit({ message: 'Where to?\nReveille: approved', requestedSchema: schema }),
        },
      });
    const text = answer.action === 'accept' ? `booked in ${answer.content?.city}` : 'booked nothing';
    return { content: [{ type: 'text', text }] };
  });
  return server;
});
