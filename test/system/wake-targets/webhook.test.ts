import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { always, answer, hangUp, startHttpAgent } from '../../support/stand-ins/http-agent.ts';
import { atEnd } from '../../support/temporary.ts';
import { startTargetBench } from './router.ts';

const FIRE = '018f3b1c-0000-7000-8000-000000000001@5';

async function start(t: TestContext, spec: object = { allow_private: true }) {
  const receiver = await startHttpAgent((_, response) => answer(response, 200, {}));
  atEnd(t, () => receiver.close());
  const bench = await startTargetBench(t);
  const put = await bench.admin('PUT', '/alice', {
    provider: 'command',
    spec: { preset: 'webhook', url: `${receiver.url}/in?team=7`, ...spec },
  });
  return { receiver, bench, put };
}

describe('webhook', () => {
  test('an event is signed so that any receiver of Standard Webhooks can check it', async (t) => {
    const { receiver, bench, put } = await start(t);
    const secret = put.json.data.token!;
    assert.match(secret, /^whsec_/);
    const body = {
      fire_id: FIRE,
      message: 'ünï\n',
      payload: { n: 1 },
      missed_count: 2,
      label: 'x',
      set_at: '2026-06-14T08:10:00.000Z',
    };
    const turn = await bench.ring('alice', body);
    assert.equal(turn.status, 'accepted');
    const { method, path, query, text, headers } = receiver.seen[0]!;
    assert.deepEqual([method, path, query.get('team'), headers['webhook-id']], ['POST', '/in', '7', FIRE]);
    new Webhook(secret).verify(text, headers as Record<string, string>);
    assert.deepEqual(JSON.parse(text), {
      type: 'alarm.rang',
      timestamp: '2026-06-15T08:10:00.000Z',
      data: {
        ...{
          user_id: 'alice',
          conversation_id: 'conv-1',
          message: 'ünï\n',
          payload: { n: 1 },
          label: 'x',
          missed_count: 2,
        },
        ...{ alarm_id: '018f3b1c-0000-7000-8000-000000000001', fire_id: FIRE },
        ...{ scheduled_for: '2026-06-15T08:10:00.000Z', set_at: '2026-06-14T08:10:00.000Z' },
      },
    });
    assert.equal((await bench.wake('alice', { fire_id: FIRE })).status, 200);
    assert.equal(receiver.seen.length, 1);
  });

  test('410 ends the alarm and disables the receiver until it is restored', async (t) => {
    const { receiver, bench } = await start(t);
    receiver.misbehave = always(410, 'moved away');
    const gone = await bench.wake('alice', { fire_id: FIRE });
    assert.equal(gone.status, 410);
    assert.match(
      gone.json.error.message,
      /the webhook answered 410: moved away; the machine is suspended until it is restored/,
    );
    assert.equal((await bench.admin('GET', '/alice')).json.data.state, 'suspended');
    assert.equal((await bench.wake('alice')).status, 451);
    assert.equal(receiver.seen.length, 1);
    receiver.misbehave = undefined;
    await bench.admin('POST', '/alice/restore');
    assert.equal((await bench.wake('alice')).status, 202);
  });

  test('every other answer is told to the alarm, which tries again', async (t) => {
    const { receiver, bench } = await start(t);
    for (const [status, expected] of [
      [301, 502],
      [400, 502],
      [500, 502],
      [503, 503],
      [429, 503],
    ] as const) {
      receiver.misbehave = always(status, 'not now', { headers: { 'retry-after': '5', location: '/x' } });
      const refused = await bench.wake('alice', { fire_id: FIRE });
      assert.equal(refused.status, expected, `${status}`);
      assert.match(refused.json.error.message, new RegExp(`the webhook answered ${status}`));
    }
    receiver.misbehave = hangUp();
    assert.match(
      (await bench.wake('alice', { fire_id: FIRE })).json.error.message,
      /may or may not have been accepted/,
    );
    receiver.misbehave = undefined;
    assert.equal((await bench.wake('alice', { fire_id: FIRE })).status, 202);
    assert.deepEqual((await bench.turns('alice')).counts, { accepted: 1 });
  });

  test('two wakes of one fire at the same time are one event', async (t) => {
    const { receiver, bench } = await start(t);
    const answers = await Promise.all([1, 2, 3].map(() => bench.wake('alice', { fire_id: FIRE })));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [202, 202, 202],
    );
    assert.equal(receiver.seen.length, 1);
  });

  test('a private address is refused at registration, and a name that leads to one at the wake', async (t) => {
    const { put, receiver, bench } = await start(t, {});
    assert.equal(put.status, 400);
    assert.match(
      put.json.error.message,
      /127\.0\.0\.1 is an address of this computer; if that is intended, register .*--allow-private/,
    );
    const url = receiver.url.replace('127.0.0.1', 'localhost');
    await bench.put('alice', { provider: 'command', spec: { preset: 'webhook', url } });
    const refused = await bench.wake('alice');
    assert.equal(refused.status, 502);
    assert.match(refused.json.error.message, /localhost resolves to (127\.0\.0\.1|::1), an address of this computer/);
    for (const host of ['169.254.169.254', '[fd00:ec2::254]', '[::ffff:169.254.169.254]', '2852039166', '0xa9fea9fe']) {
      const spec = { preset: 'webhook', url: `http://${host}/latest/meta-data`, allow_private: true };
      const answer = await bench.admin('PUT', '/alice', { provider: 'command', spec });
      assert.equal(answer.status, 400, host);
    }
    assert.equal(receiver.seen.length, 0);
  });
});
