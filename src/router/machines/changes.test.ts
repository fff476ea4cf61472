import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { startBench } from '../testing/bench.ts';
import { startPlainDaemon } from '../testing/plain-daemon.ts';

type Change = { at: string; actor: string; action: string; fields: string[]; state: string; reason?: string };

const SECRET = 'a-secret-that-must-not-be-kept';

test('every change of a machine is recorded with author, members and new state, without values', async (t) => {
  const dataDir = temporaryFolder(t);
  const settings = { ROUTER_DATA_DIR: dataDir };
  const first = await startBench(t, { settings });
  const machine = { provider: 'process', spec: { command: ['neo'], env: { API_KEY: SECRET, MODEL: 'small' } } };
  await first.put('alice', { ...machine, token: `${SECRET}-token` });
  await first.put('alice', { ...machine, token: `${SECRET}-token` });
  await first.put('alice', {
    ...machine,
    spec: { command: ['neo', '-v'], env: { API_KEY: `${SECRET}2` } },
    budget: { wakes_per_hour: 3, quiet: { from: '22:00', to: '07:00', timezone: 'UTC' } },
    idle_seconds: 5,
  });
  await first.admin('POST', '/alice/suspend');
  await first.admin('POST', '/alice/suspend');
  await first.admin('POST', '/alice/restore');
  await first.admin('DELETE', '/alice');
  await first.close();

  const second = await startBench(t, { settings });
  const changesOf = async (query = '') => {
    const answer = await second.admin('GET', `/alice/changes${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json.data as unknown as { changes: Change[]; next_cursor?: string };
  };
  const { changes, next_cursor } = await changesOf();
  assert.equal(next_cursor, undefined);
  assert.deepEqual(
    changes.map(({ actor, action, state, fields }) => [actor, action, state, fields]),
    [
      ['admin', 'delete', 'deleted', ['spec.env.API_KEY', 'state', 'token']],
      ['admin', 'restore', 'active', ['state']],
      ['admin', 'suspend', 'suspended', ['state']],
      [
        'admin',
        'put',
        'active',
        [
          'spec.command',
          'spec.env.API_KEY',
          'spec.env.MODEL',
          'idle_seconds',
          'budget.wakes_per_hour',
          'budget.quiet.from',
          'budget.quiet.to',
          'budget.quiet.timezone',
          // Another command is another program, which has its own token.
          'token',
        ],
      ],
      ['admin', 'put', 'active', ['provider', 'spec.command', 'spec.env.API_KEY', 'spec.env.MODEL', 'state', 'token']],
    ],
  );
  assert.ok(!JSON.stringify(changes).includes(SECRET));
  assert.ok(changes.every(({ at }) => !Number.isNaN(Date.parse(at))));

  const page = await changesOf('?limit=2');
  assert.deepEqual(page.changes, changes.slice(0, 2));
  assert.deepEqual((await changesOf(`?limit=500&cursor=${page.next_cursor}`)).changes, changes.slice(2));
  assert.equal((await second.admin('GET', '/nobody/changes')).status, 404);
  assert.equal((await second.admin('GET', '/alice/changes?limit=0')).status, 400);
  assert.equal((await second.send('GET', '/admin/machines/alice/changes', 'not the token at all')).status, 401);
});

test('changes by the router itself are recorded with their reason', async (t) => {
  const router = await startBench(t);
  const gone = await startPlainDaemon(t);
  gone.answer = (response) => response.writeHead(410).end();
  const spec = { preset: 'webhook', url: `${gone.url}/hook`, allow_private: true };
  await router.put('alice', { provider: 'command', spec });
  assert.equal((await router.wake('alice')).status, 410);
  const answer = await router.admin('GET', '/alice/changes');
  const [last] = (answer.json.data as unknown as { changes: Change[] }).changes;
  assert.deepEqual(
    [last?.actor, last?.action, last?.state, last?.fields],
    ['router', 'suspend', 'suspended', ['state']],
  );
  assert.match(last?.reason ?? '', /410/);
});
