/** Push notifications on a real outbox and real receivers: consent of the receiver, turns of the callers, the end. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createPush, notificationOf } from '../../../src/a2a/push.ts';
import { openTaskStore, type PushConfig } from '../../../src/a2a/store.ts';
import type { StoredTask } from '../../../src/a2a/task.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { WebAccess } from '../../../src/kit/http/web-access.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { eventually } from '../../support/eventually.ts';
import { type Handle, startHttpAgent } from '../../support/stand-ins/http-agent.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

const TOKEN = 'validationToken';
const echo: Handle = ({ method, query }, response) => void response.end(method === 'GET' ? query.get(TOKEN) : '');

async function startReceiver(t: TestContext, handle: Handle) {
  const receiver = await startHttpAgent(handle);
  atEnd(t, () => receiver.close());
  return receiver;
}

/** @param isNamed whether the operator allows the receivers by name */
function openPush(t: TestContext, receivers: readonly { url: string }[], isNamed: boolean) {
  const shared = { clock: systemClock, log: silentLogger };
  const store = openTaskStore({ path: join(temporaryFolder(t), 'a2a.db'), clock: systemClock, notificationOf });
  const allow = receivers.map(({ url }) => new URL(url).host).join(',');
  const web = new WebAccess({ clock: systemClock, allow });
  const push = createPush({
    ...{ store, ...shared },
    web: { get: (request) => web.get(request), post: (request) => web.post(request), isAllowed: () => isNamed },
  });
  push.start();
  atEnd(t, async () => {
    await push.close();
    await web.close();
    await store.close();
  });
  let made = 0;
  return {
    push,
    /** A task of a caller, whose first state is sent to the address. */
    async task(caller: string, url: string): Promise<void> {
      const id = `task-${made++}`;
      const task: StoredTask = {
        ...{ id, userId: 'ada', caller, callerName: caller, contextId: 'c', conversationId: 'c', messageId: id },
        ...{ message: '{}', payload: undefined, state: 'submitted', turnId: undefined, waitsFor: [] },
        ...{ note: undefined, reply: undefined, result: undefined, createdAt: 1, updatedAt: 1 },
      };
      const config: PushConfig = {
        ...{ taskId: id, id: 'one', url, token: 'secret-of-the-receiver', scheme: '', credentials: '', version: '1.0' },
      };
      await store.create(task, { config, most: 1000, check: () => {} });
    },
  };
}

test('a receiver that does not answer the challenge gets no notification, and no token', async (t) => {
  const [silent, willing] = [
    await startReceiver(t, (_, response) => void response.end()),
    await startReceiver(t, echo),
  ];
  const { task } = openPush(t, [silent, willing], false);
  await task('mallory', `${silent.url}/hook`);
  await task('ada', `${willing.url}/hook?id=1`);
  await task('ada', `${willing.url}/hook?id=1`);
  await eventually('both states arrive', () => willing.seen.filter(({ method }) => method === 'POST').length === 2);
  await eventually('the silent one is challenged', () => silent.seen.length > 0);
  assert.deepEqual(
    silent.seen.map(({ method, headers }) => [method, headers['x-a2a-notification-token']]),
    [['GET', undefined]],
  );
  for (const { method, query, headers } of willing.seen) {
    assert.equal(query.get('id'), '1');
    const isChallenge = method === 'GET';
    assert.equal(headers['x-a2a-notification-token'], isChallenge ? undefined : 'secret-of-the-receiver');
  }
});

test('a caller with many slow receivers delays no other caller', async (t) => {
  const open: ServerResponse[] = [];
  const slow = await startReceiver(t, (_, response) => void open.push(response));
  const quick = await startReceiver(t, (_, response) => void response.end());
  const { task } = openPush(t, [slow, quick], true);
  for (let n = 0; n < 150; n++) await task('mallory', `${slow.url}/${n}`);
  await eventually('the slow receiver has requests', () => open.length > 0);
  await task('ada', quick.url);
  await eventually('the other caller is served', () => quick.seen.length === 1);
  assert.ok(open.length <= 2, `${open.length} deliveries to the slow receiver`);
  for (const response of open) response.end();
});

test('a stop awaits the answer of a receiver that has the notification', async (t) => {
  const open: ServerResponse[] = [];
  const receiver = await startReceiver(t, (_, response) => void open.push(response));
  const { push, task } = openPush(t, [receiver], true);
  await task('ada', receiver.url);
  await eventually('the receiver has it', () => open.length === 1);
  const closed = push.close();
  // The stop has begun; an aborted delivery would be sent again by the next process.
  await new Promise(setImmediate);
  assert.equal(open[0]!.destroyed || open[0]!.socket?.destroyed, false);
  open[0]!.end();
  await closed;
  assert.equal(receiver.seen.length, 1);
  assert.ok(receiver.seen[0]!.headers['webhook-id']);
});
