/** A client with an access token at `reveille up`: its alarm wakes the agent of this user, with the client as author. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { homeAt, readLabel, readRun } from '../../src/cli/home/home.ts';
import { PROGRAM, START_LIMIT_MS } from '../support/cluster/processes.ts';
import { reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { startIssuer } from '../system/mcp-http/mcp-http-bench.ts';

const LIMIT_MS = 2 * START_LIMIT_MS;
const CHAT = 'https://chat.example/client.json';

test('a remote client sets an alarm of this user, and every surface names the client', async (t) => {
  const folder = temporaryFolder(t);
  const issuer = await startIssuer(t);
  const issuers = [{ issuer: issuer.url, users: 'subject', clients: { [CHAT]: 'Chat' } }];
  const env = {
    ...{ PATH: process.env.PATH, HOME: folder, REVEILLE_HOME: join(folder, 'home') },
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', TZ: 'Europe/Berlin' },
    ROUTER_MCP_ISSUERS: JSON.stringify(issuers),
  };
  const up = spawn(process.execPath, [PROGRAM, 'up'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  up.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  t.after(async () => {
    up.kill('SIGTERM');
    if (up.exitCode === null) await once(up, 'exit');
  });
  await eventuallyBy(up, 'up greets', () => output.includes('Ctrl-C'), { limitMs: LIMIT_MS });
  const home = homeAt(env.REVEILLE_HOME);
  const [user, url] = [readLabel(home)!, readRun(home)!.public_url!];

  const connect = async (endpoint: string, sub = user) => {
    const scope = 'alarms:read alarms:write time:read intents:read';
    const bearer = await issuer.sign({ sub, client_id: CHAT, aud: `${url}/mcp/${endpoint}`, scope });
    const client = new Client({ name: 'test', version: '0' });
    const requestInit = { headers: { authorization: `Bearer ${bearer}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp/${endpoint}`), { requestInit }));
    return async (name: string, args: Record<string, unknown> = {}) => {
      const { isError, structuredContent } = await client.callTool({ name, arguments: args });
      assert.ok(!isError, JSON.stringify(structuredContent));
      return structuredContent as Record<string, unknown>;
    };
  };

  const alarms = await connect('chronos');
  const set = await alarms('alarm_set', { when: 'in 1 second', wake_message: 'water the violets', label: 'violets' });
  assert.equal((set.reading as { timezone: string }).timezone, 'Europe/Berlin', 'the zone of the user');
  const id = String(set.id);
  const run = async (...args: string[]) => {
    const { status, stdout, stderr } = await reveille(home.path, args, { env: { HOME: folder } });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  assert.match(
    await run('alarm', 'show', id),
    /set by +Chat \(client https:\/\/chat\.example\/client\.json\), a program/,
  );
  await eventually('the agent answers', () => /water the violets/.test(output), LIMIT_MS);
  const chat = await run('log', '--json');
  assert.match(chat, /Chat \(client https:\/\/chat\.example\/client\.json\)/);

  const time = await connect('chronometric');
  assert.match(String((await time('get_time_context')).now), /[+]0[12]:00$/);
  await time('mark_session_start', { intent: 'plant violets' });
  assert.match(await run('time'), /plant violets/, 'the sessions of this computer');

  const intents = await connect('intents');
  assert.deepEqual(await intents('intent_list'), { intents: [] });

  await assert.rejects(connect('chronos', 'another-user'), /403|access_denied|Forbidden/i);
});
