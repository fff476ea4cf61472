import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type ChronosClient, createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { type RunningChronos, startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey, readKeyFile } from '../../../src/kit/identity/keys.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { RawJson, sliceAt } from '../../../src/wire/json.ts';
import { type AgentFiles, makeAgentFiles } from './agent-files.ts';
import { type McpProcess, spawnMcp } from './mcp-process.ts';

const TOKEN = 'transport-token-of-this-test';
const ADMIN_TOKEN = 'admin-token-of-this-test';
const PAYLOAD = '{ "10":12345678901234567890, "2": 1.0,\t"e":1e400 }';
const HOUR = 3600;

describe('the client and the tools with a real chronosd', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-chronosd-'));
  const fired: string[] = [];
  const router = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => fired.push(chunk.toString()));
    request.on('end', () => response.writeHead(202).end('{"ok":true,"data":{}}'));
  });
  let chronosd: RunningChronos;
  let agent: AgentFiles;
  let client: ChronosClient;
  let mcp: McpProcess;
  before(async () => {
    await new Promise<void>((resolve) => router.listen(0, '127.0.0.1', resolve));
    const config = parseChronosConfig({
      CHRONOS_PORT: '0',
      CHRONOS_PUBLIC_URL: 'http://127.0.0.1:1',
      CHRONOS_DATA_DIR: folder,
      CHRONOS_TOKEN: TOKEN,
      CHRONOS_AGENT_AUTH_SECRET: 'auth-secret-of-this-test',
      CHRONOS_ADMIN_TOKEN: ADMIN_TOKEN,
      CHRONOS_WAKE_TOKEN: 'wake-token-of-this-test',
      CHRONOS_ROUTER_WAKE_URL: `http://127.0.0.1:${(router.address() as AddressInfo).port}/internal/wake`,
    });
    chronosd = await startChronos({ config, clock: systemClock, log: silentLogger });
    agent = makeAgentFiles();
    const identity = agentIdentity(agent.userId, readKeyFile(agent.keyFile));
    client = createChronosClient({
      url: chronosd.url,
      token: TOKEN,
      adminToken: ADMIN_TOKEN,
      identity,
      principal: holdPrincipal(),
    });
    mcp = spawnMcp(agent.envFor({ url: chronosd.url, token: TOKEN }));
    await mcp.initialize();
  });
  after(async () => {
    await mcp.end();
    await chronosd.close();
    router.close();
    agent.remove();
    rmSync(folder, { recursive: true });
  });
  const callTool = async (name: string, args: string) => {
    const { line, answer } = await mcp.request('tools/call', `{"name":"${name}","arguments":${args}}`);
    return { line, isError: answer.result.isError, data: answer.result.structuredContent };
  };

  test('an alarm set through the tool is seen by the client and cancelled through the tool', async () => {
    const set = await callTool(
      'alarm_set',
      `{"kind":"once","delay_seconds":"${HOUR}","wake_message":"hé ","payload":${PAYLOAD},"idempotency_key":"one"}`,
    );
    assert.equal(set.isError, undefined, set.line);
    assert.deepEqual([set.data.status, set.data.deduped], ['active', false]);
    const view = await client.getAlarm(set.data.id);
    assert.equal(view.payload?.text, PAYLOAD);
    assert.equal(view.wake_message, 'hé ');
    const again = await callTool(
      'alarm_set',
      `{"kind":"once","delay_seconds":${HOUR},"wake_message":"hé ","payload":${PAYLOAD},"idempotency_key":"one"}`,
    );
    assert.deepEqual([again.data.id, again.data.deduped], [set.data.id, true]);
    const listed = await callTool('alarm_list', '{"status":"active","kind":"once","limit":1,"full":true}');
    assert.ok(sliceAt(listed.line, ['result', 'structuredContent', 'alarms'])?.includes(PAYLOAD));
    const cancelled = await callTool('alarm_cancel', `{"alarm_id":"${set.data.id}"}`);
    assert.equal(cancelled.data.status, 'cancelled');
    assert.equal((await client.getAlarm(set.data.id)).status, 'cancelled');
  });

  test('an error that only chronosd can detect is returned in its words', async () => {
    const cases: [args: string, says: RegExp][] = [
      ['{"kind":"once","wake_message":"x"}', /delay_seconds or fire_at/],
      ['{"kind":"once","wake_message":"x","delay_seconds":5,"fire_at":"2999-01-01T00:00:00Z"}', /exclude each other/],
      ['{"kind":"once","wake_message":"x","fire_at":"2001-01-01T00:00:00Z"}', /must be in the future/],
      ['{"kind":"cron","wake_message":"x","cron_expr":"0 0 30 2 *"}', /cron_expr/],
      ['{"kind":"cron","wake_message":"x","cron_expr":"@daily","timezone":"Mars/Olympus"}', /timezone/],
    ];
    for (const [args, message] of cases) {
      const { isError, data } = await callTool('alarm_set', args);
      assert.deepEqual([isError, data.code], [true, 'invalid_request'], args);
      assert.match(data.message, message);
    }
  });

  test('pages are read with the cursor', async () => {
    for (const n of [1, 2, 3]) await client.createAlarm({ kind: 'once', wake_message: `${n}`, delay_seconds: HOUR });
    const first = await callTool('alarm_list', '{"status":"active","limit":2}');
    assert.equal(first.data.count, 2);
    const second = await callTool('alarm_list', `{"status":"active","limit":2,"cursor":"${first.data.next_cursor}"}`);
    assert.deepEqual([second.data.count, second.data.next_cursor], [1, undefined]);
  });

  test('pages have each active alarm once, the ones without a time last', async () => {
    const event = { source: 'webhook' } as const;
    const waiting = await client.createAlarm({ wake_message: 'waits', event });
    const timed = await client.createAlarm({ wake_message: 'has a deadline', event: { ...event, deadline: 'P1D' } });
    const all = (await callTool('alarm_list', '{}')).data.alarms.map(({ id }: { id: string }) => id);
    assert.deepEqual(all.slice(-2), [timed.id, waiting.id]);
    for (const limit of [1, 2, 3, all.length]) {
      const listed: string[] = [];
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const { data } = await callTool('alarm_list', JSON.stringify({ limit, cursor }));
        listed.push(...data.alarms.map(({ id }: { id: string }) => id));
        cursor = data.next_cursor;
      }
      assert.deepEqual(listed, all, `limit ${limit}`);
    }
    for (const { id } of [waiting, timed]) await client.cancelAlarm(id);
  });

  test('an agent edits, pauses, resumes and triggers its alarm through alarm_set', async () => {
    const set = await callTool('alarm_set', '{"kind":"cron","cron_expr":"@yearly","wake_message":"x","label":"one"}');
    const { id } = set.data;
    const change = async (fields: string) => {
      const { line, isError, data } = await callTool('alarm_set', `{"alarm_id":"${id}",${fields}}`);
      assert.equal(isError, undefined, line);
      assert.equal(data.id, id);
      return data;
    };
    const edited = await change(`"cron_expr":"0 9 1 1 *","timezone":"Asia/Tokyo","payload":${PAYLOAD},"max_fires":"2"`);
    const view = await client.getAlarm(id);
    assert.deepEqual([view.cron_expr, view.timezone, view.max_fires], ['0 9 1 1 *', 'Asia/Tokyo', 2]);
    assert.equal(view.payload?.text, PAYLOAD);
    // The answer is short: the model knows the fields that it has sent.
    const { reading, agent: woken, totals, ...short } = edited;
    assert.deepEqual(short, { id, next_fire_at: view.next_fire_at, status: 'active', timezone: 'Asia/Tokyo' });
    assert.deepEqual([reading.text, woken], ['every year on January 1 at 09:00 in Asia/Tokyo', agent.userId]);
    assert.ok(totals.active > 0 && totals.wakes_per_day >= 0);
    await change('"clear":["label"],"max_fires":null');
    const { label, max_fires: most } = await client.getAlarm(id);
    assert.deepEqual([label, most], ['', undefined]);

    assert.equal((await change('"action":"pause"')).status, 'paused');
    const both = await change('"action":"resume","label":"two"');
    assert.deepEqual([both.status, (await client.getAlarm(id)).label], ['active', 'two']);
    assert.match((await change('"action":"trigger"')).fire_id, new RegExp(`^${id}@`));
    assert.equal((await client.getAlarm(id)).status, 'active');
  });

  test('alarm_set shows the secret that an edit makes, also with an action', async () => {
    const set = await callTool('alarm_set', '{"expect":{"every":"PT1H"},"wake_message":"x"}');
    const { id } = set.data;
    const event = '"event":{"source":"webhook"}';
    const { data } = await callTool('alarm_set', `{"alarm_id":"${id}",${event},"action":"pause"}`);
    assert.equal(data.status, 'paused');
    assert.match(data.hook.secret, /^whsec_/);
  });

  test('edit, pause, resume, trigger and the ledger work through the client', { timeout: 30_000 }, async () => {
    const payload = new RawJson(PAYLOAD);
    const { id } = await client.createAlarm({ kind: 'cron', cron_expr: '@yearly', wake_message: 'x', payload });
    assert.equal((await client.patchAlarm(id, { label: 'yearly', max_fires: 3 })).label, 'yearly');
    assert.equal((await client.pauseAlarm(id)).status, 'paused');
    assert.equal((await client.resumeAlarm(id)).status, 'active');
    const triggered = await client.triggerAlarm(id);
    assert.match(triggered.fire_id, new RegExp(`^${id}@`));
    let fires = (await client.listFires(id)).fires;
    while (fires.length === 0) fires = (await client.listFires(id)).fires;
    assert.deepEqual([fires[0]?.fire_id, fires[0]?.outcome], [triggered.fire_id, 'delivered']);
    assert.ok(fired.join('').includes(PAYLOAD));
    await assert.rejects(client.redriveAlarm(id), { code: 'conflict' });
  });

  test('keys are listed, enrolled and revoked, and a revoked key stops working at once', async () => {
    const { agents } = await client.listAgents();
    assert.deepEqual(
      agents.map(({ label, source }) => [label, source]),
      [[agent.userId, 'tofu']],
    );
    const second = generateKey();
    const enrolled = await client.enrollAgent({ label: agent.userId, public_key: second.publicKeyHex });
    assert.equal(enrolled.source, 'enrolled');
    const identity = agentIdentity(agent.userId, second);
    const other = createChronosClient({ url: chronosd.url, token: TOKEN, identity });
    assert.ok((await other.listAlarms()).count > 0);
    const revoked = await client.revokeAgent({ label: agent.userId, public_key: second.publicKeyHex });
    assert.deepEqual(
      revoked.map(({ public_key }) => public_key),
      [second.publicKeyHex],
    );
    await assert.rejects(other.listAlarms(), { name: 'ReveilleError' });
  });

  test('a change of an ended, unknown or foreign alarm is refused as by chronosd, and names what was done', async () => {
    const refusal = async (id: string, fields: string) => {
      const { isError, data } = await callTool('alarm_set', `{"alarm_id":"${id}"${fields}}`);
      assert.equal(isError, true);
      return data as { code: string; message: string };
    };
    const unknown = await refusal('01a206a3-09b9-75e1-9cfa-bb6341bc3a57', ',"label":"x"');
    assert.equal(unknown.code, 'not_found');
    const other = createChronosClient({
      ...{ url: chronosd.url, token: TOKEN, principal: holdPrincipal() },
      identity: agentIdentity('another-agent', generateKey()),
    });
    const foreign = await other.createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: HOUR });
    for (const fields of [',"label":"x"', ',"action":"trigger"', ',"action":"pause"']) {
      const { code, message } = await refusal(foreign.id, fields);
      assert.deepEqual([code, message], ['not_found', unknown.message.replace(/[0-9a-f-]{36}/, foreign.id)]);
    }
    assert.equal((await other.getAlarm(foreign.id)).label, '');

    const { id } = await client.createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: HOUR });
    assert.match((await refusal(id, '')).message, /nothing to edit/);
    assert.match((await refusal(id, ',"cron_expr":"@daily"')).message, /cron_expr is only for kind "cron"/);
    await client.cancelAlarm(id);
    const ended = await refusal(id, ',"label":"late"');
    assert.deepEqual([ended.code, /set a new one/.test(ended.message)], ['conflict', true]);
  });

  test('20 calls from a pipe are answered 20 times, and all alarms are set', async () => {
    const calls = Array.from({ length: 20 }, (_, at) => {
      const args = `{"kind":"once","delay_seconds":${HOUR},"wake_message":"piped","idempotency_key":"piped-${at}"}`;
      return `{"jsonrpc":"2.0","id":${at},"method":"tools/call","params":{"name":"alarm_set","arguments":${args}}}`;
    });
    const env = { ...agent.envFor({ url: chronosd.url, token: TOKEN }), REVEILLE_HOME: join(folder, 'home') };
    const program = fileURLToPath(import.meta.resolve('../../../bin/reveille.mjs'));
    const running = promisify(execFile)(process.execPath, [program, 'mcp'], { env });
    running.child.stdin!.end(calls.join('\r\n'));
    const answers = (await running).stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      answers.map(({ id }) => id).sort((a, b) => a - b),
      [...calls.keys()],
    );
    const { alarms } = await client.listAlarms({ limit: 100 });
    const set = new Set(alarms.flatMap(({ id, wake_message }) => (wake_message === 'piped' ? [id] : [])));
    assert.deepEqual(new Set(answers.map(({ result }) => result.structuredContent.id)), set);
    assert.equal(set.size, 20);
  });

  test('health and readiness are reported without a token', async () => {
    const plain = createChronosClient({ url: chronosd.url, token: 'unused' });
    assert.equal((await plain.health()).status, 'ok');
    assert.equal((await plain.ready()).status, 'ready');
  });
});
