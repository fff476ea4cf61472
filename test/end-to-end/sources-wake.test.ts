/**
 * A scheduler with the wire format of the sources alone, in front of a real router: it wakes a sleeping Neo, a program
 * and a webhook. Every part is a process.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { WAKE_TOKEN } from '../../src/router/testing/bench.ts';
import { startRouterProcess } from '../../src/router/testing/router-process.ts';
import { eventually } from '../support/eventually.ts';
import { COMPILED, LEAN } from '../support/quick-start.ts';
import { callsIn, installAgent } from '../support/stand-ins/agents/executable.ts';
import { answer, startHttpAgent } from '../support/stand-ins/http-agent.ts';
import { atEnd, temporaryFolder } from '../support/temporary.ts';

const NEO = fileURLToPath(new URL('../../src/agents/neo/testing/neo-process.fixture.ts', import.meta.url));
const SCHEDULER = fileURLToPath(new URL('./plain-scheduler.mjs', import.meta.url));
const USER = '11111111-2222-3333-4444-555555555555';
const MESSAGE = 'Resume the airdrop: cursor at holder 240/512, batch size 50…';

/** The example of the sources, as their Go structure is written: its fields in their order. */
const bodyFor = (user: string) =>
  `{"user_id":"${user}","conversation_id":"conv_abc123","message":"${MESSAGE}","payload":{"cursor":240,"batch":50},"alarm_id":"alarm_xyz789","origin":"chronos"}`;

/** The status that the scheduler got. */
async function sent(url: string, user: string): Promise<string> {
  const scheduler = spawn(process.execPath, [SCHEDULER, `${url}/internal/wake`, WAKE_TOKEN]);
  scheduler.stdin.end(bodyFor(user));
  return (await text(scheduler.stdout)).slice(0, 3);
}

test('the body of the sources wakes a sleeping Neo, a program and a webhook; sent again, also after a kill of the router, it stays one turn', async (t) => {
  const folder = temporaryFolder(t);
  const data = (name: string) => join(folder, name);
  mkdirSync(data('work'));
  installAgent(data('bin'), 'claude');
  const receiver = await startHttpAgent((_, response) => answer(response, 200, {}));
  atEnd(t, () => receiver.close());
  // A killed router leaves its Neo running for the next one.
  const settings = { PATH: `${data('bin')}:/usr/bin:/bin`, HOME: folder, ROUTER_ORPHAN_SECONDS: '30' };
  const router = await startRouterProcess(t, data('router'), settings);
  const env = { ...COMPILED, NEO_DATA_DIR: data('neo') };
  await router.put(USER, { provider: 'process', spec: { command: [process.execPath, ...LEAN, NEO], env } });
  await router.put('coder', { provider: 'command', spec: { preset: 'claude', cwd: data('work') } });
  const hook = { preset: 'webhook', url: `${receiver.url}/in`, allow_private: true };
  await router.put('hooked', { provider: 'command', spec: hook });

  const users = [USER, 'coder', 'hooked'];
  const url = router.url;
  assert.deepEqual(await Promise.all(users.map((user) => sent(url, user))), ['202', '202', '202']);
  assert.deepEqual(await Promise.all(users.map((user) => sent(url, user))), ['200', '200', '200']);
  await router.kill();
  const next = await startRouterProcess(t, data('router'), settings);
  assert.deepEqual(await Promise.all(users.map((user) => sent(next.url, user))), ['200', '200', '200']);

  await eventually('the program has run', () => callsIn(folder).length > 0);
  const [call, ...more] = callsIn(folder);
  assert.ok(
    call!.stdin!.includes(`\n${MESSAGE}\n`) && call!.stdin!.includes('\n{"cursor":240,"batch":50}\n'),
    call!.stdin,
  );
  assert.ok(call!.stdin!.includes('Alarm id: alarm_xyz789\nConversation id: conv_abc123\n'), call!.stdin);
  assert.deepEqual([more.length, receiver.seen.length], [0, 1]);
  const { alarm_id, conversation_id, payload } = JSON.parse(receiver.seen[0]!.text).data;
  assert.deepEqual([alarm_id, conversation_id, payload], ['alarm_xyz789', 'conv_abc123', { cursor: 240, batch: 50 }]);

  // After its removal, Neo closes its file.
  await next.admin('DELETE', `/${USER}`);
  const db = new DatabaseSync(data('neo/neo.db'), { readOnly: true });
  const turns = db.prepare('SELECT conversation_id, origin, alarm_id, message, payload FROM turns').all();
  db.close();
  const expectedBody = { message: MESSAGE, payload: '{"cursor":240,"batch":50}' };
  assert.deepEqual(
    turns.map((turn) => ({ ...turn })),
    [{ conversation_id: 'conv_abc123', origin: 'chronos', alarm_id: 'alarm_xyz789', ...expectedBody }],
  );
});
