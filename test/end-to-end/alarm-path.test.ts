import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { sliceAt } from '../../src/wire/json.ts';
import { readNeo } from '../support/cluster/neo-reader.ts';
import { PROGRAM } from '../support/cluster/processes.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';

/**
 * Mixed scripts, directions, planes and controls; spaces that trimming would remove, line ends that normalising would
 * change.
 */
const MESSAGE =
  '\ufeff  Guten Morgen — доброе утро — 早上好 — صباح الخير 🦉\u0000\u0001\u001b[31m\t\r\n"quoted" \\ back\u2028\u0085 e\u0301 \ud83d\ude80   \n ';
const PAYLOAD =
  '{"cursor":12345678901234567890,"price":1.0,"huge":1e400,"tiny":-0.0,"10":"ten","2":"two","same":1,"same":2,  "spaced" : [ 98765432109876543210 , "\\u00e9\\ud83d\\ude80" ] }';

const home = mkdtempSync(join(tmpdir(), 'reveille-walk-'));
const env = {
  PATH: process.env.PATH ?? '',
  REVEILLE_HOME: home,
  CHRONOS_PORT: '0',
  ROUTER_PORT: '0',
  EXECUTOR_PORT: '0',
};
const rings: Record<string, unknown>[] = [];
let up: ChildProcess;
/** No alarm fires before this instant: the welcome of the first start comes 5 s after it. Epoch milliseconds. */
let firstDueAt: number;

before(async () => {
  firstDueAt = Date.now() + 5000;
  up = spawn(process.execPath, [PROGRAM, 'up', '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  createInterface({ input: up.stdout! }).on('line', (line) => rings.push(JSON.parse(line)));
  await eventuallyBy(up, 'reveille up is ready', () => existsSync(join(home, 'run.json')));
  const early = neoRuns() && Date.now() < firstDueAt;
  assert.equal(early, false, 'Neo must not exist before an alarm fires');
});

after(async () => {
  await stopUp();
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
});

async function stopUp(): Promise<void> {
  if (up.exitCode !== null || up.signalCode !== null) return;
  const exited = new Promise((resolve) => up.once('exit', resolve));
  up.kill('SIGTERM');
  await exited;
}

function neoRuns(): boolean {
  return existsSync(join(home, 'neo', 'neo.db'));
}

test('an alarm that an ended agent set over MCP arrives byte for byte in one turn of its conversation', async (t) => {
  const client = new Client({ name: 'test', version: '1.0.0' });
  t.after(() => client.close());
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [PROGRAM, 'mcp'], env }));
  // The payload is a raw JSON source text, so that this client does not round it either.
  const payload = {
    toJSON: () => (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON('12345678901234567890'),
  };
  const answer = await client.callTool({
    name: 'alarm_set',
    arguments: {
      kind: 'once',
      delay_seconds: 2,
      wake_message: MESSAGE,
      conversation_id: 'the-conversation-it-left',
      payload,
    },
  });
  assert.equal(answer.isError ?? false, false, JSON.stringify(answer));
  const { id, next_fire_at } = answer.structuredContent as { id: string; next_fire_at: string };
  await client.close();
  const early = neoRuns() && Date.now() < Math.min(firstDueAt, Date.parse(next_fire_at));
  assert.equal(early, false, 'Neo must not exist before an alarm fires');

  await eventually('it has fired', () => rings.some((fire) => fire.alarm_id === id));
  const fire = rings.find((one) => one.alarm_id === id)!;
  assert.equal(fire.conversation_id, 'the-conversation-it-left');
  assert.ok((fire.lateness_ms as number) >= 0, 'the alarm fired early');
  assert.equal(typeof fire.reply, 'string');
});

test('a payload with every trap of JSON arrives as the text that was sent', async (t) => {
  // Written by hand: no JSON library processes this text before the server.
  const server = spawn(process.execPath, [PROGRAM, 'mcp'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => server.kill('SIGKILL'));
  const answers: Record<string, unknown>[] = [];
  createInterface({ input: server.stdout }).on('line', (line) => answers.push(JSON.parse(line)));
  const send = (text: string) => server.stdin.write(`${text}\n`);
  send(
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}',
  );
  send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  const argumentsText = `{"kind":"once","delay_seconds":1,"wake_message":${JSON.stringify(MESSAGE)},"conversation_id":"raw","payload":${PAYLOAD}}`;
  send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"alarm_set","arguments":${argumentsText}}}`);
  await eventually('the call is answered', () => answers.some((answer) => answer.id === 2));
  server.stdin.end();
  const { result } = answers.find((answer) => answer.id === 2) as { result: { structuredContent: { id: string } } };
  await eventually('it has fired', () => rings.some((fire) => fire.alarm_id === result.structuredContent.id));
});

test('Neo stores the text that was sent, and has one turn for each alarm', async () => {
  await stopUp();
  const { NEO_DAEMON_TOKEN: token } = JSON.parse(readFileSync(join(home, 'secrets.json'), 'utf8'));
  await readNeo({ home, dataDir: join(home, 'neo'), token }, async (get) => {
    for (const [conversation, payload] of [
      ['the-conversation-it-left', '12345678901234567890'],
      ['raw', PAYLOAD],
    ] as const) {
      const text = await get(`/conversations/${conversation}`);
      const { turns } = JSON.parse(text) as { turns: Record<string, unknown>[] };
      assert.equal(turns.length, 1);
      assert.equal(turns[0]!.message, MESSAGE);
      assert.equal(turns[0]!.origin, 'chronos');
      assert.equal(turns[0]!.status, 'done');
      const turnText = sliceAt(text, ['turns'])!.slice(1, -1);
      assert.equal(sliceAt(turnText, ['payload']), payload);
    }
  });
});
