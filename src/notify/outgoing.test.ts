import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { atEnd, temporaryFolder } from '../../test/support/temporary.ts';
import { ManualClock } from '../kit/clock/testing/manual-clock.ts';
import type { News } from './news.ts';
import { outgoingOf } from './outgoing.ts';
import { type ChannelAdd, NotifyStore } from './store.ts';

/** 23:00 in Berlin. */
const NOW = Date.parse('2026-11-22T22:00:00Z');
const HOUR = 3_600_000;
const QUIET = { from: '22:00', to: '07:00', timezone: 'Europe/Berlin' };

function bench(t: TestContext, dir = temporaryFolder(t)) {
  const clock = new ManualClock(NOW);
  const store = new NotifyStore({ dir, clock, lock: 'shared' });
  atEnd(t, () => store.close());
  const outgoing = outgoingOf(store, { zone: 'Europe/Berlin', now: () => clock.now() });
  return {
    ...{ clock, store, outgoing, dir },
    add: (more: Partial<ChannelAdd> = {}) =>
      store.addChannel(
        {
          ...{ user: 'ada', name: 'phone', kind: 'ntfy', spec: { topic: 't', token: 'tk_sesame' } },
          ...{ told: ['approvals', 'failures', 'missed', 'rings'], quiet: undefined, quietAll: false, ...more },
        },
        clock.now(),
      ),
    find: (...news: News[]) => store.record({ user: 'ada', source: 'alarms', news, since: clock.now() }, clock.now()),
    titles: () => outgoing.due(clock.now(), 100).map(({ content }) => content.title),
    async deliverAll() {
      const delivered: string[] = [];
      for (let due = outgoing.due(clock.now(), 100); due.length > 0; due = outgoing.due(clock.now(), 100)) {
        for (const { id, content: one } of due) {
          delivered.push(`${one.title}\n${one.text}`);
          await outgoing.done(id);
        }
      }
      return delivered;
    },
  };
}

function newsOf(title: string, more: Partial<News> = {}): News {
  return { key: title, kinds: ['rings'], at: NOW, title, text: 'words', about: {}, ...more };
}

const question = {
  ...{ intent_id: 'i', node_id: 'n', call_sha256: 'a'.repeat(64), displayed_sha256: 'b'.repeat(64) },
  expires_at: '2026-11-24T00:00:00Z',
};

test('a repeated event is notified once, also by another process, and each channel gets its own events', async (t) => {
  const { store, dir, add, find, deliverAll } = bench(t);
  add();
  add({ name: 'desk', told: ['failures'] });
  assert.equal(find(newsOf('one'), newsOf('two', { kinds: ['failures'] })).length, 2);
  assert.equal(find(newsOf('one'), newsOf('two', { kinds: ['failures'] })).length, 0);
  const other = bench(t, dir);
  assert.deepEqual(
    other.find(newsOf('one'), newsOf('three')).map(({ title }) => title),
    ['three'],
  );
  assert.deepEqual((await deliverAll()).map((text) => text.split('\n')[0]).sort(), ['one', 'three', 'two', 'two']);
  assert.equal(store.waiting(store.channel('ada', 'phone').id), 0);
  assert.equal(statSync(join(dir, 'notify.db')).mode & 0o777, 0o600);
});

test('a named channel gets an event once, beside its kinds, and never one of another user', async (t) => {
  const { add, find, deliverAll, store } = bench(t);
  add({ told: [] });
  add({ name: 'desk', told: ['rings'] });
  store.addChannel(
    {
      user: 'bob',
      name: 'phone',
      kind: 'ntfy',
      spec: { topic: 'b' },
      told: ['rings'],
      quiet: undefined,
      quietAll: false,
    },
    NOW,
  );
  const about = { alarm_id: 'a-1' };
  find(newsOf('done', { channels: ['phone', 'desk', 'fax'], about }));
  assert.deepEqual(await deliverAll(), ['done\nwords', 'done\nwords']);
  assert.equal(store.waiting(store.channel('bob', 'phone').id), 0);
  add({ name: 'log', told: ['failures'] });
  // The same names of the same alarm are news once.
  assert.deepEqual(
    find(newsOf('again', { channels: ['fax'], about })).map(({ title }) => title),
    ['again'],
  );
  const other = find(newsOf('other', { channels: ['fax'], about: { alarm_id: 'a-2' } }));
  assert.deepEqual(
    other.map(({ title }) => title),
    ['other', 'No channel "fax"'],
  );
});

test('a fire that waits for its turn is sent with the result, at its time, or never', async (t) => {
  const { clock, add, find, titles, deliverAll } = bench(t);
  add();
  const ring = (key: string) => newsOf(key, { waitsUntil: clock.now() + 30_000 });
  const end = (key: string, isSent: boolean) =>
    newsOf(`end of ${key}`, { settles: { key, isSent }, ...(isSent ? {} : { kinds: [] }) });
  find(ring('silent'), ring('answered'), ring('long'));
  assert.deepEqual(titles(), []);
  find(end('silent', false), end('answered', true));
  assert.deepEqual(
    (await deliverAll()).map((text) => text.split('\n')[0]),
    ['answered', 'end of answered'],
  );
  clock.jump(30_000);
  assert.deepEqual(
    (await deliverAll()).map((text) => text.split('\n')[0]),
    ['long'],
  );
});

test('quiet hours defer all notifications but questions, and deferred ones arrive as one summary at their end', async (t) => {
  const { clock, store, add, find, deliverAll, titles, outgoing } = bench(t);
  const { id } = add({ quiet: QUIET });
  find(newsOf('first'), newsOf('Approve?', { kinds: ['approvals'], question }));
  clock.jump(HOUR);
  find(newsOf('second', { kinds: ['failures'], at: clock.now() }));
  assert.deepEqual(titles(), ['Approve?']);
  await deliverAll();
  assert.equal(store.waiting(id), 2);
  assert.equal(outgoing.nextDue(), Date.parse('2026-11-23T06:00:00Z'));
  // A notifier that ends checks the waiting ones once more; that does not end quiet hours.
  assert.deepEqual(outgoing.due(Number.POSITIVE_INFINITY, 10), []);
  clock.jump(7 * HOUR);
  assert.deepEqual(await deliverAll(), ['2 events\nSun 22 Nov 23:00  first\nMon 23 Nov 00:00  second']);
  assert.equal(store.waiting(id), 0);
  assert.equal(outgoing.nextDue(), undefined);
});

test('a single deferred one arrives as itself, and a deferred question is never part of a summary', async (t) => {
  const { clock, add, find, deliverAll } = bench(t);
  add({ quiet: QUIET, quietAll: true });
  find(newsOf('alone'), newsOf('Approve?', { kinds: ['approvals'], question }));
  assert.deepEqual(await deliverAll(), []);
  clock.jump(8 * HOUR);
  assert.deepEqual((await deliverAll()).sort(), ['Approve?\nwords', 'alone\nwords']);
});

test('late events arrive as one summary, and so does a flood', async (t) => {
  const { clock, store, add, find, deliverAll } = bench(t);
  const { id } = add();
  clock.jump(HOUR);
  find(...Array.from({ length: 40 }, (_, n) => newsOf(`old ${n}`)));
  assert.equal(store.waiting(id), 40);
  clock.jump(2000);
  const [summary] = await deliverAll();
  assert.match(summary!, /^40 events\n(.+\n){30}and 10 more; see: reveille log$/);
  // A channel that is down: the first fifty wait for it one by one, the others become a summary.
  find(...Array.from({ length: 80 }, (_, n) => newsOf(`flood ${n}`, { at: clock.now() })));
  clock.jump(2000);
  const delivered = await deliverAll();
  assert.equal(delivered.length, 50);
  clock.jump(60_000);
  assert.match((await deliverAll()).join(), /^30 events/);
});

test('a failing channel delays no other, and its list names the error', async (t) => {
  const { clock, store, add, find, outgoing } = bench(t);
  add();
  add({ name: 'desk' });
  find(newsOf('one'), newsOf('two'));
  const due = outgoing.due(clock.now(), 10);
  assert.deepEqual(
    due.map(({ channel, content }) => [channel.name, content.title]),
    [
      ['phone', 'one'],
      ['desk', 'one'],
    ],
  );
  await outgoing.later(due[0]!.id, clock.now() + 60_000, 'ntfy answered 503');
  await outgoing.done(due[1]!.id);
  assert.deepEqual(
    outgoing.due(clock.now(), 10).map(({ channel, content }) => [channel.name, content.title]),
    [
      ['phone', 'two'],
      ['desk', 'two'],
    ],
  );
  assert.equal(store.channel('ada', 'phone').lastError, 'ntfy answered 503');
  assert.equal(store.channel('ada', 'desk').lastError, undefined);
});

test('a removed channel removes its queued notifications; a paused one gets none', (t) => {
  const { store, add, find, outgoing, clock } = bench(t);
  const phone = add();
  const desk = add({ name: 'desk' });
  store.pauseChannel(desk.id, true);
  find(newsOf('one'), newsOf('two'));
  assert.equal(store.removeChannel(phone.id), 2);
  assert.deepEqual(outgoing.due(clock.now(), 10), []);
  assert.equal(outgoing.nextDue(), undefined);
  assert.throws(() => store.channel('ada', 'phone'), /ada has no channel phone; see: reveille notify list/);
  assert.throws(() => add({ name: 'desk' }), /ada already has a channel desk; choose another one with --name/);
});
