/**
 * Stand-in for an agent CLI with a session open in a terminal: runs the hooks and MCP servers of its configuration as
 * the CLI does, and calls tools on request, a JSON line for each on standard input.
 *
 * - `{ "prompt": "…", "session": "…" }`: runs the prompt hooks
 * - `{ "tool": "alarm_set", "arguments": {…}, "meta": {…} }`: calls a tool of the server `chronos`
 *
 * It answers each with a JSON line.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

type Server = { command: string; args: string[]; env?: Record<string, string> };
type Settings = {
  mcpServers?: Record<string, Server>;
  hooks?: Record<string, { hooks: { command: string }[] }[]>;
};

const [name = '', ...files] = process.argv.slice(2);
const configured: Settings[] = files.map((file) => JSON.parse(readFileSync(file, 'utf8')));
const server = configured.flatMap(({ mcpServers }) => mcpServers?.chronos ?? [])[0]!;
const hooks = configured
  .flatMap(({ hooks }) => [...(hooks?.UserPromptSubmit ?? []), ...(hooks?.BeforeAgent ?? [])])
  .flatMap(({ hooks }) => hooks);

const mcp: ChildProcess = spawn(server.command, server.args, {
  env: { ...process.env, ...server.env },
  stdio: ['pipe', 'pipe', 'inherit'],
});
const answers = createInterface({ input: mcp.stdout! });
let lastId = 0;

async function request(method: string, params: object): Promise<object> {
  const id = ++lastId;
  const answered = new Promise<object>((resolve) => {
    const take = (line: string) => {
      const answer = JSON.parse(line);
      if (answer.id !== id) return;
      answers.off('line', take);
      resolve(answer.result ?? answer.error);
    };
    answers.on('line', take);
  });
  mcp.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  return await answered;
}

/** Like the real clients: through a shell, with the event as JSON on standard input. */
async function runHook(command: string, input: object): Promise<string> {
  const hook = spawn('sh', ['-c', command], { stdio: ['pipe', 'pipe', 'inherit'] });
  let said = '';
  hook.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  hook.stdin.end(JSON.stringify(input));
  await once(hook, 'close');
  return said;
}

await request('initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name, version: '0' },
});
mcp.stdin!.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');

for await (const line of createInterface({ input: process.stdin })) {
  const { prompt, session, tool, arguments: args, meta } = JSON.parse(line);
  if (tool === undefined) {
    const input = { session_id: session, cwd: process.cwd(), hook_event_name: 'UserPromptSubmit', prompt };
    const said = await Promise.all(hooks.map(({ command }) => runHook(command, input)));
    console.log(JSON.stringify({ said }));
  } else console.log(JSON.stringify(await request('tools/call', { name: tool, arguments: args, _meta: meta })));
}
mcp.stdin!.end();
