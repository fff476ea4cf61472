import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ManualClock, settle } from '../../kit/clock/testing/manual-clock.ts';
import { eventFeed, type FeedItem, type FeedRequest } from '../../turns/event-log.ts';
import type { Turn } from '../../turns/turn.ts';
import { openConversationStore } from './conversations/store.ts';

async function workbench(t: TestContext, eventsRetained = 10_000) {
  const clock = new ManualClock();
  const store = openConversationStore({
    dataDir: temporaryFolder(t),
    clock,
    eventsRetained,
    onEvents: () => feed.wake(),
  });
  t.after(() => store.close());
  const feed = eventFeed(store);
  const over = new AbortController();
  t.after(() => over.abort());

  const turns: Record<string, Turn> = {};
  for (const conversationId of ['a', 'b']) {
    const id = `t-${conversationId}`;
    const given = { id, conversationId, origin: 'user', message: 'm', createdAt: 0 } as const;
    turns[conversationId] = (await store.accept(given)).turn;
  }
  const add = (conversationId: string, text: string) => store.status(turns[conversationId]!, text);

  /** Reads in the background; the events so far are in `items`. */
  function reading(request: FeedRequest) {
    const items: FeedItem[] = [];
    const done = (async () => {
      for await (const item of feed.read(request, over.signal)) items.push(item);
    })();
    const texts = () => items.map(({ data }) => JSON.parse(data).code ?? JSON.parse(data).text);
    return { items, texts, done };
  }
  return { store, feed, add, reading, over, turns };
}

test('a reader without a position gets the events from now on', async (t) => {
  const { add, reading } = await workbench(t);
  await add('a', 'before');
  const reader = reading({});
  await add('a', 'one');
  await add('b', 'two');
  await settle();
  assert.deepEqual(reader.texts(), ['one', 'two']);
});

test('a reader that comes back gets everything after its position, and of its conversation only', async (t) => {
  const { add, reading } = await workbench(t);
  for (let n = 0; n < 250; n++) {
    await add('a', `a${n}`);
    await add('b', `b${n}`);
  }
  const reader = reading({ conversationId: 'a', after: 2 });
  await settle();
  await add('b', 'not for it');
  await add('a', 'live');
  await settle();
  assert.deepEqual(reader.texts(), [...Array.from({ length: 250 }, (_, n) => `a${n}`), 'live']);
  const ids = reader.items.map(({ id }) => id!);
  assert.deepEqual(
    ids,
    [...ids].sort((one, other) => one - other),
  );
});

test('no event is lost or repeated with any number of readers and writers', async (t) => {
  const { add, reading } = await workbench(t);
  const readers = [];
  for (let n = 0; n < 300; n++) {
    if (n % 30 === 0) readers.push(reading({ after: 2 }));
    const added = add(n % 2 ? 'a' : 'b', String(n));
    if (n % 7 === 0) await added;
  }
  await add('a', 'end');
  await settle();
  const expected = [...Array.from({ length: 300 }, (_, n) => String(n)), 'end'];
  for (const reader of readers) assert.deepEqual(reader.texts(), expected);
});

test('a reader whose position was dropped gets a notice before the retained events', async (t) => {
  const { add, reading } = await workbench(t, 10);
  for (let n = 0; n < 600; n++) add('a', String(n));
  await add('a', 'end');
  const reader = reading({ conversationId: 'a', after: 5 });
  await settle();
  assert.equal(reader.texts()[0], 'events_lost');
  assert.equal(reader.items[0]!.id, undefined);
  assert.equal(reader.texts().at(-1), 'end');
  assert.ok(reader.items.length > 10);
});

test('a reader that keeps up gets no notice about losses in other conversations', async (t) => {
  const { add, reading, store } = await workbench(t, 700);
  const reader = reading({ conversationId: 'b' });
  for (let n = 0; n <= 1800; n++) {
    const added = add('a', String(n));
    if (n % 100 === 0) await added;
  }
  await add('b', 'mine');
  await settle();
  assert.ok(store.eventBounds().droppedThrough > 500);
  assert.deepEqual(reader.texts(), ['mine']);
});

test('a position that was never assigned starts at the oldest retained event, with a notice', async (t) => {
  const { add, reading } = await workbench(t);
  await add('a', 'one');
  const reader = reading({ conversationId: 'a', after: 999 });
  await settle();
  assert.deepEqual(reader.texts(), ['unknown_event_id', undefined, 'one']);
  assert.match(reader.items[0]!.data, /event 999 has not been issued here \(the newest is 3\)/);
});

test('a reader ends with its signal', async (t) => {
  const { reading, over } = await workbench(t);
  const reader = reading({});
  over.abort();
  await reader.done;
});
