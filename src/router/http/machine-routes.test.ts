import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { machineViewSchema } from '../machines/machine-schema.ts';
import { ADMIN_TOKEN, startBench, WAKE_TOKEN } from '../testing/bench.ts';

const machine = { provider: 'http', spec: { url: 'http://127.0.0.1:9' } };

describe('the routes of operators', () => {
  test('register, show, list, suspend, restore and delete a machine', async (t) => {
    const router = await startBench(t);
    const put = await router.admin('PUT', '/alice', { ...machine, idle_seconds: 60 });
    assert.equal(put.status, 200);
    assert.match(put.json.data.token ?? '', /^[A-Za-z0-9_-]{43}$/, 'the minted token is shown only this time');
    const again = await router.admin('PUT', '/alice', { ...machine, idle_seconds: 60 });
    assert.equal(again.json.data.token, undefined);
    assert.equal(again.json.data.updated_at, put.json.data.updated_at);
    const shown = (await router.admin('GET', '/alice')).json.data;
    assert.deepEqual(machineViewSchema.strict().parse(shown), shown);
    assert.deepEqual([shown.state, shown.idle_seconds, shown.spec?.url], ['active', 60, 'http://127.0.0.1:9']);
    assert.equal((await router.admin('POST', '/alice/suspend')).json.data.state, 'suspended');
    assert.equal((await router.admin('POST', '/alice/suspend')).json.data.state, 'suspended');
    assert.equal((await router.admin('POST', '/alice/restore')).json.data.state, 'active');
    assert.equal((await router.admin('DELETE', '/alice')).json.data.state, 'deleted');
    assert.equal((await router.admin('DELETE', '/alice')).json.data.state, 'deleted');
    const restore = await router.admin('POST', '/alice/restore');
    assert.deepEqual([restore.status, restore.json.error.code], [409, 'conflict']);
    assert.match(restore.json.error.message, /is deleted/);
    assert.equal((await router.admin('GET', '/alice')).json.data.state, 'deleted');
    assert.equal((await router.admin('GET', '')).json.data.count, 0);
    assert.equal((await router.admin('GET', '?state=deleted')).json.data.count, 1);
    assert.equal((await router.admin('PUT', '/alice', machine)).json.data.state, 'active');
  });

  test('list in pages', async (t) => {
    const router = await startBench(t);
    for (const user of ['a', 'b', 'c', 'd', 'e']) await router.put(user, machine);
    const users: string[] = [];
    let cursor: string | undefined;
    do {
      const page = (await router.admin('GET', `?limit=2${cursor ? `&cursor=${cursor}` : ''}`)).json.data;
      users.push(...page.machines!.map((view) => view.user_id));
      cursor = page.next_cursor;
    } while (cursor);
    assert.deepEqual(users, ['a', 'b', 'c', 'd', 'e']);
  });

  test('reject an invalid request with the reason', async (t) => {
    const router = await startBench(t);
    const messageOf = async (method: string, path: string, body: unknown, status = 400) => {
      const answer = await router.admin(method, path, body);
      assert.equal(answer.status, status, answer.text);
      return answer.json.error.message;
    };
    const spec = { command: ['neo'] };
    assert.match(await messageOf('PUT', '/a%2Fb', machine), /user_id must be 1 to 64 of/);
    assert.match(await messageOf('PUT', `/${'x'.repeat(65)}`, machine), /user_id must be 1 to 64 of/);
    assert.match(await messageOf('PUT', '/a', { provider: 'moon', spec }), /provider/);
    assert.match(await messageOf('PUT', '/a', { provider: 'http', spec: {} }), /spec\.url is required/);
    assert.match(
      await messageOf('PUT', '/a', { provider: 'http', spec: { url: 'ftp://x' } }),
      /must be an http:\/\/ or https/,
    );
    assert.match(
      await messageOf('PUT', '/a', { provider: 'http', spec: { url: 'http://u:p@x' } }),
      /without user, password/,
    );
    assert.match(
      await messageOf('PUT', '/a', { provider: 'process', spec: { command: [] } }),
      /spec\.command must have at least 1/,
    );
    assert.match(
      await messageOf('PUT', '/a', { provider: 'process', spec: { command: 'neo' } }),
      /spec\.command must be a list/,
    );
    assert.match(
      await messageOf('PUT', '/a', { provider: 'process', spec: { command: ['a\0b'] } }),
      /must not contain a NUL/,
    );
    assert.match(
      await messageOf('PUT', '/a', { provider: 'process', spec: { ...spec, port: 0 } }),
      /spec\.port must be at least 1/,
    );
    assert.match(
      await messageOf('PUT', '/a', { provider: 'process', spec, idle_seconds: 0 }),
      /idle_seconds must be at least 1/,
    );
    assert.match(await messageOf('PUT', '/a', { provider: 'process', spec, colour: 'red' }), /unknown field "colour"/);
    const short = await messageOf('PUT', '/a', { ...machine, token: 'too-short' });
    assert.match(short, /token must have at least 16/);
    assert.doesNotMatch(short, /too-short/);
    assert.match(await messageOf('GET', '?limit=0', undefined), /limit must be a whole number from 1 to 500/);
    assert.match(await messageOf('GET', '?page=2', undefined), /unknown field "page"/);
    assert.match(await messageOf('GET', '/nobody', undefined, 404), /no machine for nobody/);
    assert.match(await messageOf('DELETE', '/nobody', undefined, 404), /no machine for nobody/);
    assert.match(await messageOf('POST', '/nobody/suspend', undefined, 404), /no machine for nobody/);
  });

  test('reject every caller without the token', async (t) => {
    const router = await startBench(t);
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/a'],
      ['PUT', '/a'],
      ['DELETE', '/a'],
      ['POST', '/a/suspend'],
      ['POST', '/a/restore'],
    ] as const) {
      const body = method === 'PUT' ? machine : undefined;
      assert.equal((await router.send(method, `/admin/machines${path}`, WAKE_TOKEN, body)).status, 401);
    }
    const wake = await router.send('POST', '/internal/wake', ADMIN_TOKEN, {});
    assert.equal(wake.status, 401);
  });

  test('keep machines across a restart, in a file that only its owner can read', async (t) => {
    const router = await startBench(t);
    await router.put('alice', { ...machine, idle_seconds: 60 });
    const before = (await router.admin('GET', '/alice')).json.data;
    await router.close();
    assert.equal(statSync(join(router.dataDir, 'router.db')).mode & 0o777, 0o600);
    const next = await startBench(t, { settings: { ROUTER_DATA_DIR: router.dataDir } });
    assert.deepEqual((await next.admin('GET', '/alice')).json.data, before);
    await assert.rejects(startBench(t, { settings: { ROUTER_DATA_DIR: router.dataDir } }), /router\.db/);
  });
});

test('the router reports its name, its health and its readiness', async (t) => {
  const router = await startBench(t);
  const get = (path: string) => router.send('GET', path, 'none');
  assert.deepEqual((await get('/')).json.data, { name: 'router', version: '0.0.0' });
  assert.equal((await get('/healthz')).status, 200);
  assert.equal((await get('/readyz')).status, 200);
});
