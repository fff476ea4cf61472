/** The client of LangGraph, unmodified, sets crons at the router of a fleet; each user reaches only their own. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { Agent, fetch as fetchBy, type RequestInit } from 'undici';
import { RawJson } from '../../../src/wire/json.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { type Fleet, type Person, startFleet } from '../console/fleet-bench.ts';

const owner = sharedOwner();
let fleet: Fleet;
let ada: Person;
let bob: Person;
let dispatcher: Agent;

/** The client of a token; only the connection knows the certificate of the test. */
function clientOf(apiKey: string): Client {
  const connect = (url: URL | string, init?: object) => fetchBy(url, { ...(init as RequestInit), dispatcher });
  return new Client({
    ...{ apiUrl: `${fleet.origin}/langgraph`, apiKey },
    callerOptions: { fetch: connect as unknown as typeof fetch, maxRetries: 0 },
  });
}
const refused = (work: Promise<unknown>, status: number, detail: RegExp) =>
  assert.rejects(work, (error: Error) => {
    assert.match(error.message, new RegExp(`\\b${status}\\b`));
    assert.match(error.message, detail);
    return true;
  });

describe('crons of LangGraph', () => {
  before(async () => {
    fleet = await startFleet(owner, { ROUTER_LANGGRAPH: '1', ROUTER_PUBLIC_REQUESTS_PER_MINUTE: '100000' });
    dispatcher = new Agent({ connect: { ca: fleet.trusted } });
    [ada, bob] = [await fleet.person('ada'), await fleet.person('bob')];
  });
  after(async () => {
    await dispatcher?.close();
    await owner.end();
  });

  test('a cron is created, found, counted, updated and deleted, and is an alarm of the user', async () => {
    const { crons } = clientOf(ada.token);
    const input = { messages: [{ role: 'user', content: 'Summarise the night.' }], big: 1 };
    const made = await crons.create('news', {
      ...{ schedule: '27 15 * * *', timezone: 'Europe/Berlin', input, endTime: '2036-01-01T00:00:00Z' },
      ...{ metadata: { team: 'desk' }, config: { configurable: { depth: 2 } }, multitaskStrategy: 'reject' },
    });
    assert.match(made.next_run_date, /^\d{4}-\d\d-\d\dT1[34]:27:00/);
    assert.deepEqual(made.payload, { assistant_id: 'news', input, config: { configurable: { depth: 2 } } });
    const alarm = await ada.agent.getAlarm(made.cron_id);
    assert.deepEqual(
      [alarm.cron_expr, alarm.timezone, alarm.wake_message, alarm.label, alarm.overlap, alarm.conversation_id],
      ['27 15 * * *', 'Europe/Berlin', 'Summarise the night.', 'news', 'skip', undefined],
    );
    const threadId = randomUUID();
    const inThread = await crons.createForThread(threadId, 'watch', { schedule: '*/5 * * * *', enabled: false });
    assert.equal(inThread.thread_id, threadId);
    assert.equal((await ada.agent.getAlarm(inThread.cron_id)).conversation_id, threadId);
    // Other alarms of the user are no crons.
    await ada.agent.createAlarm({ kind: 'cron', cron_expr: '@daily', wake_message: 'x' });

    const ids = (found: readonly { cron_id: string }[]) => found.map(({ cron_id }) => cron_id);
    assert.deepEqual(ids(await crons.search()), [inThread.cron_id, made.cron_id]);
    assert.deepEqual(ids(await crons.search({ sortBy: 'assistant_id', sortOrder: 'asc' })), ids([made, inThread]));
    assert.deepEqual(ids(await crons.search({ threadId })), [inThread.cron_id]);
    assert.deepEqual(ids(await crons.search({ enabled: true })), [made.cron_id]);
    assert.deepEqual(ids(await crons.search({ metadata: { team: 'desk' } })), [made.cron_id]);
    assert.deepEqual(ids(await crons.search({ limit: 1, offset: 1 })), [made.cron_id]);
    assert.deepEqual(await crons.search({ assistantId: 'news', select: ['schedule', 'enabled'] }), [
      { schedule: '27 15 * * *', enabled: true },
    ]);
    assert.equal(await crons.count(), 2);
    assert.equal(await crons.count({ assistantId: 'watch' }), 1);
    assert.equal(await crons.count({ metadata: { team: 'other' } }), 0);

    const updated = await crons.update(made.cron_id, {
      ...{ schedule: '0 6 * * 1', endTime: null, enabled: false, metadata: { team: 'night' } },
      input: { messages: [{ type: 'human', content: [{ type: 'text', text: 'Only Mondays.' }] }] },
    });
    assert.deepEqual(
      [updated.schedule, updated.end_time, updated.enabled, updated.metadata, updated.next_run_date],
      ['0 6 * * 1', null, false, { team: 'night' }, null],
    );
    const edited = await ada.agent.getAlarm(made.cron_id);
    assert.deepEqual(
      [edited.status, edited.wake_message, edited.timezone],
      ['paused', 'Only Mondays.', 'Europe/Berlin'],
    );
    assert.deepEqual((await crons.update(inThread.cron_id, { enabled: true })).enabled, true);
    // Each update is later than the cron and than the update before it; an empty one changes nothing.
    const times: string[] = [made.updated_at];
    for (const change of [
      { enabled: true },
      { enabled: false },
      { schedule: '0 7 * * 1' },
      { metadata: { team: 'x' } },
    ])
      times.push((await crons.update(made.cron_id, change)).updated_at);
    assert.deepEqual(times.toSorted(), times);
    assert.equal(new Set(times).size, times.length);
    assert.equal((await crons.update(made.cron_id, {})).updated_at, times.at(-1));
    const found = (await crons.search()).find(({ cron_id }) => cron_id === made.cron_id);
    assert.deepEqual([found?.updated_at, found?.created_at], [times.at(-1), made.created_at]);
    assert.equal(found?.payload.updated_at, undefined);

    await crons.delete(made.cron_id);
    assert.equal((await ada.agent.getAlarm(made.cron_id)).status, 'cancelled');
    assert.deepEqual(ids(await crons.search()), [inThread.cron_id]);
    await refused(crons.delete(made.cron_id), 404, /there is no such cron/);
  });

  test('a search of large crons keeps one page, and an answer has a limit of bytes', async () => {
    const dora = await fleet.person('dora');
    const { crons } = clientOf(dora.token);
    const input = { messages: [{ role: 'user', content: 'x' }], large: 'x'.repeat(60_000) };
    for (let n = 0; n < 150; n++) await crons.create(`a${n}`, { schedule: '@daily', input });
    assert.equal(await crons.count(), 150);
    const page = await crons.search({ limit: 3, offset: 148, sortBy: 'created_at', sortOrder: 'asc' });
    assert.deepEqual(
      page.map(({ assistant_id }) => assistant_id),
      ['a148', 'a149'],
    );
    assert.equal((await crons.search({ limit: 1000, select: ['cron_id'] })).length, 150);
    await refused(crons.search({ limit: 1000 }), 400, /the answer has more than 8388608 bytes; use a smaller limit/);
  });

  test('numbers of an input keep their digits', async () => {
    const body = '{"assistant_id":"n","schedule":"@daily","input":{"id":12345678901234567890,"x":1.0}}';
    const answer = await fleet.send('/langgraph/runs/crons', {
      method: 'POST',
      body,
      headers: { 'x-api-key': ada.token },
    });
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.text, /"input":\{"id":12345678901234567890,"x":1\.0\}/);
    const { payload } = await ada.agent.getAlarm(JSON.parse(answer.text).cron_id);
    assert.ok(
      payload instanceof RawJson && payload.text.includes('"id":12345678901234567890,"x":1.0'),
      String(payload),
    );
  });

  test('what no alarm can do is refused by name', async () => {
    const { crons } = clientOf(ada.token);
    const create = (more: object) => crons.create('a', { schedule: '@daily', ...more } as never);
    await refused(
      create({ webhook: 'https://example.com/x' }),
      422,
      /webhook cannot be mapped to an alarm: .*; omit it/,
    );
    await refused(create({ interruptBefore: ['tools'] }), 422, /interrupt_before cannot be mapped/);
    await refused(create({ streamMode: 'values' }), 422, /stream_mode cannot be mapped/);
    await refused(create({ durability: 'async' }), 422, /durability cannot be mapped/);
    await refused(
      create({ multitaskStrategy: 'rollback' }),
      422,
      /multitask_strategy \\?"rollback\\?" cannot be mapped/,
    );
    await refused(create({ onRunCompleted: 'delete' }), 422, /on_run_completed \\?"delete\\?" cannot be mapped/);
    await refused(create({ schedule: '61 * * * *' }), 400, /cron_expr: minute .* is outside 0-59/);
    await refused(create({ timezone: 'Mars/Base' }), 400, /timezone/);
    await refused(create({ metadata: ['x'] }), 422, /metadata: must be an object/);
    await refused(crons.createForThread('a b', 'a', { schedule: '@daily' }), 422, /thread_id: must be/);
    await refused(crons.search({ limit: 100_000 }), 422, /limit/);
    await refused(clientOf(ada.token).threads.create(), 404, /no threads, runs, assistants or store/);
    const big = await fleet.send('/langgraph/runs/crons', {
      ...{ method: 'POST', headers: { 'x-api-key': ada.token } },
      body: JSON.stringify({ assistant_id: 'a', schedule: '@daily', input: 'x'.repeat(200_000) }),
    });
    assert.equal(big.status, 413);
    const deep = `{"assistant_id":"a","schedule":"@daily","input":${'['.repeat(5000)}${']'.repeat(5000)}}`;
    const send = (body: string) =>
      fleet.send('/langgraph/runs/crons', { method: 'POST', body, headers: { 'x-api-key': ada.token } });
    for (const body of [deep, '[]', 'null', '{', '']) assert.equal((await send(body)).status, 400, body.slice(0, 20));
  });

  test('another user, a wrong token and a revoked one reach no cron', async () => {
    const own = await clientOf(ada.token).crons.create('secret', {
      schedule: '@daily',
      input: { of: 'violet harbour' },
    });
    const stranger = clientOf(bob.token).crons;
    assert.deepEqual(await stranger.search(), []);
    assert.equal(await stranger.count(), 0);
    await refused(stranger.update(own.cron_id, { enabled: false }), 404, /there is no such cron/);
    await refused(stranger.delete(own.cron_id), 404, /there is no such cron/);
    const ids = [randomUUID(), 'x', '..%2fadmin', own.cron_id.toUpperCase()];
    for (const id of ids) {
      const path = `/langgraph/runs/crons/${encodeURIComponent(id)}`;
      const { status } = await fleet.send(path, { method: 'DELETE', headers: { 'x-api-key': ada.token } });
      assert.ok(status === 404 || status === 400, `${id}: ${status}`);
    }
    assert.equal((await ada.agent.getAlarm(own.cron_id)).status, 'active');

    for (const wrong of [`${ada.token.slice(0, -1)}~`, 'x', bob.token.slice(0, -4)])
      await refused(clientOf(wrong).crons.search(), 401, /x-api-key must be a valid token of a user/);
    const none = await fleet.send('/langgraph/runs/crons/search', { method: 'POST', body: '{}' });
    assert.deepEqual([none.status, JSON.parse(none.text).detail], [401, 'x-api-key must be a valid token of a user']);
    const bearer = { authorization: `Bearer ${ada.token}` };
    const count = await fleet.send('/langgraph/runs/crons/count', { method: 'POST', body: '{}', headers: bearer });
    assert.equal(count.status, 200);

    await fleet.run('user', 'revoke', 'ada', '--token', ada.id);
    await refused(clientOf(ada.token).crons.search(), 401, /x-api-key/);
  });

  test('no body forges an owner, reaches a prototype, or another user', async () => {
    const carol = await fleet.person('carol');
    const send = async (method: string, path: string, body: string, key = bob.token) => {
      const { status } = await fetchBy(`${fleet.origin}/langgraph${path}`, {
        ...{ method, body, dispatcher },
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
      });
      return status;
    };
    const mine = await clientOf(carol.token).crons.create('hers', { schedule: '0 4 * * *', metadata: { team: 'a' } });
    const cron = { assistant_id: 'x', schedule: '0 4 * * *' };
    const forged = ['user_id', 'owner', 'set_by', 'run', 'check', 'conversation_id', 'cron_id', 'constructor'];
    for (const name of forged)
      assert.equal(await send('POST', '/runs/crons', JSON.stringify({ ...cron, [name]: 'carol' })), 422, name);
    const prototypes = ['{"assistant_id":"x","schedule":"0 4 * * *","__proto__":{"user_id":"ada"}}'];
    for (const body of prototypes) assert.equal(await send('POST', '/runs/crons', body), 422, body);
    // The listener itself refuses some paths.
    const refusals: [status: number, what: string][] = [];
    for (const id of [mine.cron_id, '..', '%2e%2e', 'x%00', '__proto__', '%2e%2e%2fv1%2falarms'])
      for (const [method, body] of [
        ['PATCH', '{"enabled":false}'],
        ['DELETE', '{}'],
      ] as const)
        refusals.push([await send(method, `/runs/crons/${id}`, body), `${method} ${id}`]);
    const wanted = ['{"constructor":null}', '{"toString":null}', '{"hasOwnProperty":{}}'];
    for (const metadata of wanted) {
      const found = await fetchBy(`${fleet.origin}/langgraph/runs/crons/count`, {
        ...{ method: 'POST', body: `{"metadata":${metadata}}`, dispatcher },
        headers: { 'x-api-key': carol.token },
      });
      assert.deepEqual([found.status, await found.json()], [200, 0], metadata);
    }
    for (const thread of ['..%2f..%2fetc', 'a%0d%0ab', '%00', 'x'.repeat(200)])
      refusals.push([await send('POST', `/threads/${thread}/runs/crons`, JSON.stringify(cron)), thread]);
    for (const [status, what] of refusals) assert.ok([400, 404, 422].includes(status), `${what}: ${status}`);
    assert.deepEqual(refusals[0], [404, `PATCH ${mine.cron_id}`]);
    assert.equal(await clientOf(bob.token).crons.count({}), 0, 'nothing was stored');
    assert.equal((await carol.agent.getAlarm(mine.cron_id)).status, 'active');
    assert.equal(await send('POST', '/runs/crons', JSON.stringify(cron), `${carol.token}x`), 401);
  });
});
