/** The bundled capabilities of the executor, started as the executor starts them, in the sandbox of this computer. */
import { mkdirSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { type IsolationMode, NO_SANDBOX_PATHS, Sandbox } from '../../../src/kit/process/isolation.ts';
import { bundledManifest } from '../../../src/mcp-host/bundled-programs.ts';
import type { ToolResult } from '../../../src/mcp-host/output-cap.ts';
import { type ServerPool, startManifest } from '../../../src/mcp-host/server-pool.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const textOf = ({ content }: ToolResult) =>
  content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');

/** The sandbox of this computer. */
export const means = () => new Sandbox('auto', NO_SANDBOX_PATHS, process.env.PATH).mechanism();

/** A site on loopback. @returns its port */
export async function site(t: TestContext, answer: RequestListener): Promise<number> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Calls tools by `alias/tool`. */
const callerOf = (pool: ServerPool) => async (name: string, args: Record<string, unknown>) => {
  const [alias, tool] = name.split('/');
  const result = await pool.call(alias!, tool!, args);
  return { isError: result.isError, text: textOf(result), data: result.structuredContent };
};

/** The bundled manifest of Neo, without a sandbox. */
export async function openNeo(t: TestContext, variables: Record<string, string> = {}) {
  const dataDir = temporaryFolder(t);
  const own = { PATH: process.env.PATH, HOME: dataDir, NEO_WORKSPACE: dataDir, NEO_TOOL_OUTPUT: dataDir };
  const { pool } = await startManifest({
    manifestPath: bundledManifest('neo'),
    variables: { ...own, ...variables },
    ...{ dataDir, clock: systemClock, log: silentLogger },
  });
  t.after(() => pool.close());
  return { pool, call: callerOf(pool) };
}

/** @param variables further variables of the executor */
export async function openCapabilities(
  t: TestContext,
  { mode = 'auto', variables = {} }: { mode?: IsolationMode; variables?: Record<string, string> } = {},
) {
  const folder = temporaryFolder(t);
  const workspace = join(folder, 'workspace');
  mkdirSync(workspace);
  const { pool } = await startManifest({
    manifestPath: bundledManifest('executor'),
    variables: { PATH: process.env.PATH, HOME: folder, EXECUTOR_WORKSPACE: workspace, ...variables },
    dataDir: folder,
    sandbox: new Sandbox(mode, NO_SANDBOX_PATHS, process.env.PATH),
    clock: systemClock,
    log: silentLogger,
  });
  t.after(() => pool.close());
  return { folder, workspace, pool, call: callerOf(pool) };
}
