import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type McpProcess, mcpCommand, spawnMcp } from './mcp-process.ts';

const UNREACHABLE = { MATRIX_CHRONOS_URL: 'http://127.0.0.1:1', MATRIX_CHRONOS_TOKEN: 'nobody-checks-this' };
const TOOLS = ['alarm_set', 'alarm_list', 'alarm_cancel'];

let mcp: McpProcess | undefined;
afterEach(() => mcp?.kill());

for (const version of ['2024-10-07', '2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
  test(`the handshake of ${version} and tools/list are answered while chronosd is down`, async () => {
    mcp = spawnMcp(UNREACHABLE);
    const hello = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'test', version: '0' } };
    const { answer } = await mcp.request('initialize', JSON.stringify(hello));
    assert.equal(answer.result.protocolVersion, version);
    assert.equal(answer.result.serverInfo.name, 'chronos');
    assert.ok(answer.result.capabilities.tools);
    mcp.write('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    const listed = await mcp.request('tools/list', '{}');
    assert.deepEqual(
      listed.answer.result.tools.map((tool: { name: string }) => tool.name),
      TOOLS,
    );
    assert.deepEqual((await mcp.request('ping', '{}')).answer.result, {});
    assert.equal(await mcp.end(), 0);
  });
}

test('server/discover and tools/list of 2026-07-28 are answered while chronosd is down', async () => {
  const client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StdioClientTransport({ ...mcpCommand(UNREACHABLE), stderr: 'ignore' }));
  try {
    const { supportedVersions, capabilities } = await client.discover();
    assert.ok(supportedVersions.includes('2026-07-28'));
    assert.ok(capabilities.tools);
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      TOOLS,
    );
  } finally {
    await client.close();
  }
});

test('a subscription names the id of its request digit for digit, and does not delay the end', async () => {
  mcp = spawnMcp(UNREACHABLE);
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = JSON.stringify({ notifications: {}, _meta: envelope });
  mcp.write(`{"jsonrpc":"2.0","id":12345678901234567890,"method":"subscriptions/listen","params":${params}}`);
  assert.match(
    await mcp.nextLine(),
    /acknowledged.*"io\.modelcontextprotocol\/subscriptionId":12345678901234567890[,}]/,
  );
  mcp.write(`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`);
  assert.match(await mcp.nextLine(), /"code":-32600,"message":"a batch of messages needs protocol revision 2025-03-26/);
  assert.equal(await mcp.end(), 0);
});

test('a client that detects the version itself can call tools', async () => {
  const client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new StdioClientTransport({ ...mcpCommand(UNREACHABLE), stderr: 'ignore' }));
  try {
    const { isError, structuredContent } = await client.callTool({ name: 'alarm_list', arguments: {} });
    assert.equal(isError, true);
    assert.match(JSON.stringify(structuredContent), /MATRIX_USER_ID/);
  } finally {
    await client.close();
  }
});

test('stdout carries nothing but MCP, and faults are logged on stderr', async () => {
  mcp = spawnMcp(UNREACHABLE);
  await mcp.initialize();
  const { answer } = await mcp.request('tools/call', '{"name":"alarm_list","arguments":{}}');
  assert.equal(answer.result.isError, true);
  assert.equal(await mcp.end(), 0);
  const logged = mcp
    .stderr()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { tool?: string; code?: string });
  assert.ok(logged.some(({ tool, code }) => tool === 'alarm_list' && code === 'unavailable'));
});

test('a wrong variable stops the start and is named', async () => {
  mcp = spawnMcp({ MATRIX_CHRONOS_TIMEOUT_MS: 'soon' });
  await assert.rejects(mcp.initialize(), /MATRIX_CHRONOS_TIMEOUT_MS must be a whole number/);
});
