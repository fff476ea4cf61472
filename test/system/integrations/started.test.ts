/**
 * Every server that `integrations/` and `reveille connect` name, started from the packed artefact as its client would
 * start it, by a real MCP client.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { unzipSync } from 'fflate';
import { parse as parseToml } from 'smol-toml';
import { makeBundles } from '../../../integrations/bundle.ts';
import { mcpServerSchema } from '../../../integrations/formats.ts';
import { BUNDLE_FOLDER, BUNDLES } from '../../../integrations/generate.ts';
import { START_LIMIT_MS } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { type InstalledPackage, installedPackage } from '../../support/package.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';

const run = promisify(execFile);

const owner = sharedOwner();
let installed: InstalledPackage;

before(async () => {
  installed = await installedPackage(owner);
});
after(() => owner.end());

type Start = { command: string; args: string[]; env?: Record<string, string> };

/** A client of that server, started by a program that has only a home and a PATH. */
async function clientOf({ command, args, env = {} }: Start): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' });
  const own = { ...installed.env, ...env };
  await client.connect(new StdioClientTransport({ command, args, env: own, cwd: installed.folder }));
  return client;
}

async function toolsOf(start: Start): Promise<string[]> {
  const client = await clientOf(start);
  const { tools } = await client.listTools();
  await client.close();
  return tools.map(({ name }) => name).sort();
}

const ALARMS = ['alarm_cancel', 'alarm_list', 'alarm_set'];
const TIME = ['get_time_context', 'idle_status', 'mark_session_end', 'mark_session_start', 'request_break_if_needed'];

/** A file of the installed package. */
const packed = (name: string) => readFileSync(join(installed.program, '..', '..', name), 'utf8');

test('the servers of the plugin, the extension, the snippets and the registry entry', async () => {
  const plugin: Record<string, Start> = JSON.parse(packed('integrations/claude/.mcp.json')).mcpServers;
  // The others name the same two; equal commands are started once.
  assert.deepEqual(JSON.parse(packed('integrations/gemini/gemini-extension.json')).mcpServers, plugin);
  assert.deepEqual(JSON.parse(packed('integrations/cursor/mcp.json')).mcpServers, plugin);
  const codex = JSON.stringify(parseToml(packed('integrations/codex/config.toml')).mcp_servers);
  assert.deepEqual(JSON.parse(codex), plugin);
  const entry = mcpServerSchema.parse(JSON.parse(packed('integrations/registry/server.json')));
  const [{ runtimeHint, identifier, version, packageArguments }] = entry.packages as [(typeof entry.packages)[number]];
  const commandArgs = packageArguments.map(({ value }) => value);
  assert.deepEqual({ command: runtimeHint, args: ['-y', `${identifier}@${version}`, ...commandArgs] }, plugin.chronos);
  assert.equal(JSON.parse(packed('package.json')).mcpName, entry.name);

  assert.deepEqual(await Promise.all([toolsOf(plugin.chronos!), toolsOf(plugin.chronometric!)]), [ALARMS, TIME]);
});

test("the plugin's hook prints the time where reveille is installed, and nothing where it is not", async () => {
  const { hooks } = JSON.parse(packed('integrations/claude/hooks/hooks.json'));
  const [{ command }] = hooks.UserPromptSubmit[0].hooks;
  const inShell = (path: string) => run('sh', ['-c', command], { env: { ...installed.env, PATH: path } });
  const bin = join(installed.folder, 'node_modules', '.bin');
  const { PATH = '' } = installed.env;
  assert.match((await inShell(bin + delimiter + PATH)).stdout, /^Time: /);
  const without = PATH.split(delimiter).filter((folder) => !existsSync(join(folder, 'reveille')));
  assert.deepEqual(await inShell(without.join(delimiter)), { stdout: '', stderr: '' });
});

test('the desktop bundles, unpacked as a client does', async () => {
  const target = temporaryFolder(owner);
  const bundles = makeBundles(dirname(dirname(installed.program)), target);
  const tools = bundles.map(async (bundle, at) => {
    const folder = join(target, String(at));
    for (const [name, bytes] of Object.entries(unzipSync(readFileSync(bundle)))) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), bytes);
    }
    const { server, tools: listed } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
    assert.ok(existsSync(join(folder, server.entry_point)));
    const args = server.mcp_config.args.map((arg: string) => arg.replace(BUNDLE_FOLDER, folder));
    const found = await toolsOf({ command: process.execPath, args });
    assert.deepEqual(listed.map(({ name }: { name: string }) => name).sort(), found);
    return found;
  });
  assert.deepEqual(await Promise.all(tools), [ALARMS, TIME]);
  assert.equal(bundles.length, BUNDLES.length);
});

test('"connect" writes a command with which an alarm can be set, and removes it again', async () => {
  const { env, program, folder } = installed;
  const home = join(env.HOME!, '.reveille');
  const ports = { CHRONOS_PORT: '0', ROUTER_PORT: '0', ROUTER_PUBLIC_PORT: '0', EXECUTOR_PORT: '0' };
  const up = spawn(process.execPath, [program, 'up', '--json'], { env: { ...env, ...ports }, stdio: 'ignore' });
  const exited = new Promise((resolve) => up.once('exit', resolve));
  owner.after(async () => {
    up.kill('SIGTERM');
    await exited;
  });
  await eventually('reveille up accepts requests', () => existsSync(join(home, 'run.json')), START_LIMIT_MS);

  const connect = (...commandArgs: string[]) =>
    run(process.execPath, [program, 'connect', ...commandArgs, '--yes'], { cwd: folder, env });
  const file = join(env.HOME!, '.cursor', 'mcp.json');
  await connect('cursor');
  const { mcpServers } = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual(mcpServers.chronos.args, [program, 'mcp']);
  const client = await clientOf(mcpServers.chronos);
  const arguments_ = { kind: 'once', delay_seconds: 3600, wake_message: 'Look at the build' };
  const answer = await client.callTool({ name: 'alarm_set', arguments: arguments_ });
  await client.close();
  assert.equal(answer.isError ?? false, false, JSON.stringify(answer));
  const { stdout } = await run(process.execPath, [program, 'alarm', 'list', '--json'], { env });
  assert.match(stdout, /Look at the build/);
  await connect('cursor', '--undo');
  assert.equal(existsSync(file), false);
});
