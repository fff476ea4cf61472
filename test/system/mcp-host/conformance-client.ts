/**
 * The client that the MCP conformance suite drives: a pool with one server, each of whose tools is called once.
 * Argument: the server's address. `MCP_CONFORMANCE_CONTEXT` contains the inputs of the scenario.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { createLogger } from '../../../src/kit/log/log.ts';
import { loadManifest } from '../../../src/mcp-host/manifest.ts';
import { type HostedTool, ServerPool } from '../../../src/mcp-host/server-pool.ts';

type WantedCall = { name: string; arguments?: Record<string, unknown> };

/** A value for each required argument of a tool. */
function sampleArguments({ tool, definition }: HostedTool, all: readonly HostedTool[]): Record<string, unknown> {
  const { properties = {}, required = [] } = definition.inputSchema as {
    properties?: Record<string, { type?: string }>;
    required?: string[];
  };
  const samples: Record<string, unknown> = { number: 1, integer: 1, string: 'x', boolean: true, array: [], object: {} };
  // One scenario expects the received schema of another tool.
  const schema = all.find((other) => other.tool !== tool)?.definition.inputSchema;
  return Object.fromEntries(
    required.map((name) => [name, name === 'schema' ? schema : samples[properties[name]?.type ?? 'string']]),
  );
}

const url = process.argv.at(-1)!;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as { toolCalls?: WantedCall[] };
const dataDir = mkdtempSync(join(tmpdir(), 'reveille-conformance-'));
try {
  const path = join(dataDir, 'agent.json');
  writeFileSync(path, JSON.stringify({ servers: [{ alias: 'suite', transport: 'http', url, required: true }] }));
  const pool = await ServerPool.start(loadManifest(path, {}), {
    clock: systemClock,
    log: createLogger('suite'),
    dataDir,
  });
  const wanted =
    context.toolCalls ??
    pool.tools().map((tool) => ({ name: tool.tool, arguments: sampleArguments(tool, pool.tools()) }));
  for (const call of wanted) {
    const outcome = await pool
      .call('suite', call.name, call.arguments ?? {})
      .catch((thrown: unknown) => String(thrown));
    console.error(call.name, JSON.stringify(outcome));
  }
  await pool.close();
} finally {
  rmSync(dataDir, { recursive: true });
}
