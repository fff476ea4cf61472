import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { ManualClock } from '../../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import type { NewTurn, Turn } from '../../../turns/turn.ts';
import { createRunner, MAX_ATTEMPTS } from '../runner.ts';
import { beginNext, pausedModel } from '../testing/workbench.ts';
import { type ConversationStore, type ConversationStoreOptions, openConversationStore } from './store.ts';

function workbench(t: TestContext, options: Partial<ConversationStoreOptions> = {}) {
  const clock = new ManualClock();
  const dataDir = temporaryFolder(t);
  const open = () => {
    const store = openConversationStore({ dataDir, clock, ...options });
    t.after(() => store.close());
    return store;
  };
  let given = 0;
  const newTurn = (members: Partial<NewTurn> = {}): NewTurn => ({
    id: `t${++given}`,
    conversationId: 'c1',
    origin: 'user',
    message: `message ${given}`,
    createdAt: clock.now(),
    ...members,
  });
  return { clock, dataDir, open, newTurn, store: open() };
}

const EVERYTHING = Number.MAX_SAFE_INTEGER;
const eventsOf = (store: ConversationStore, after = 0) =>
  store
    .eventsAfter(after, EVERYTHING, {})
    .map(({ id, type, data }) => ({ id, type, data: JSON.parse(data) as Record<string, unknown> }));
const turnEvents = (store: ConversationStore) =>
  eventsOf(store).map(({ type, data }) => `${type} ${data.turn_id} ${data.status ?? data.code ?? data.text}`);

async function begunTurn(store: ConversationStore, conversationId = 'c1'): Promise<Turn> {
  const turn = await beginNext(store, conversationId);
  assert.ok(turn);
  return turn;
}

test('a turn is stored exactly as received', async (t) => {
  const { store, newTurn, open } = workbench(t);
  const turn = newTurn({
    origin: 'chronos',
    alarmId: 'a1',
    fireId: 'a1@1',
    scheduledFor: 1,
    missedCount: 0,
    label: '',
    setAt: 0,
    message: '\0 \u0001\r\n  𝒳 ',
    payload: '{"a": 1.0, "a":1e400, "n": 12345678901234567890 }',
    check: { verdict: 'wake', reason: 'the folder has changed', output: '"new"' },
  });
  const { turn: stored } = await store.accept(turn);
  const expected = { ...turn, seq: 1, status: 'queued', attempts: 0, retries: 0 };
  assert.deepEqual(stored, expected);
  await store.close();
  const reopened = open();
  assert.deepEqual(reopened.turnsAfter('c1', 0, 10), { turns: [expected], more: false });
  const other = newTurn({ terms: { model: 'm' }, check: { verdict: 'wake', reason: 'r' } });
  assert.deepEqual((await reopened.accept(other)).turn, {
    ...other,
    seq: 2,
    status: 'queued',
    attempts: 0,
    retries: 0,
  });
});

test('a fire_id has one turn, also when it comes twice in one commit, and a repetition changes nothing', async (t) => {
  const { store, newTurn } = workbench(t);
  const wake = (conversationId: string) => newTurn({ origin: 'chronos', fireId: 'a1@1', conversationId });
  const [first, second] = await Promise.all([store.accept(wake('c1')), store.accept(wake('c2'))]);
  assert.deepEqual([first.deduped, second.deduped], [false, true]);
  assert.deepEqual(second.turn, first.turn);
  const third = await store.accept(wake('c3'));
  assert.deepEqual([third.deduped, third.turn.id], [true, first.turn.id]);
  assert.deepEqual(
    store.listConversations(10).map(({ id, turnCount }) => [id, turnCount]),
    [['c1', 1]],
  );
  assert.deepEqual(turnEvents(store), ['turn t1 queued']);
});

test('turns of a conversation are begun in the order of acceptance and end once', async (t) => {
  const { store, newTurn, clock } = workbench(t);
  await store.accept(newTurn());
  await store.accept(newTurn());
  const first = await begunTurn(store);
  assert.deepEqual([first.id, first.status, first.attempts, first.startedAt], ['t1', 'running', 1, clock.now()]);
  await clock.advance(5);
  const done = await store.finish(first, { status: 'done', reply: 'r', model: 'm' }, '');
  assert.deepEqual([done?.status, done?.reply, done?.finishedAt], ['done', 'r', clock.now()]);
  assert.equal(await store.finish(first, { status: 'failed', error: 'e', model: 'm' }, ''), undefined);
  assert.equal((await begunTurn(store)).id, 't2');
  assert.equal(await beginNext(store, 'c1'), undefined);
  assert.deepEqual(turnEvents(store), [
    'turn t1 queued',
    'turn t2 queued',
    'turn t1 running',
    'turn t1 done',
    'turn t2 running',
  ]);
});

test('a running turn runs again after a crash, with its attempt counted, and is given up after the third', async (t) => {
  const { store, newTurn, open, clock } = workbench(t);
  await store.accept(newTurn());
  await store.accept(newTurn({ conversationId: 'c2' }));
  let current = store;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const turn = attempt === 1 ? await begunTurn(current) : current.turnById('t1')!;
    assert.deepEqual([turn.status, turn.attempts], ['running', attempt]);
    await current.close();
    current = open();
    const model = pausedModel();
    const runner = createRunner({ store: current, model, clock, log: silentLogger });
    assert.deepEqual(runner.state(), { busy: true, queued: attempt === 1 ? 1 : 0 });
    runner.start();
    const remaining = attempt < MAX_ATTEMPTS ? 2 : 1;
    await eventually('the turns run', () => model.held.length === remaining);
    // An attempt from before the crash can no longer end the turn.
    if (attempt === MAX_ATTEMPTS)
      assert.equal(await current.finish(turn, { status: 'done', reply: 'late', model: 'm' }, ''), undefined);
  }
  const [turn] = current.turnsAfter('c1', 0, 1).turns;
  assert.deepEqual(
    [turn?.status, turn?.attempts, turn?.error],
    ['interrupted', 3, 'Neo was stopped 3 times while this turn ran; it is not begun again'],
  );
  assert.ok(turn?.finishedAt);
  const notices = eventsOf(current).filter(({ type, data }) => type === 'notice' && data.turn_id === 't1');
  assert.deepEqual(
    notices.map(({ data }) => data.code),
    ['run_again', 'run_again', 'interrupted'],
  );
  assert.match(String(notices[0]?.data.text), /attempt 2 of 3/);
  assert.deepEqual(
    turnEvents(current)
      .filter((event) => event.includes('t1'))
      .slice(0, 5),
    ['turn t1 queued', 'turn t1 running', 'notice t1 run_again', 'turn t1 queued', 'turn t1 running'],
  );
});

test('a turn that was put back keeps its place before later ones', async (t) => {
  const { store, newTurn } = workbench(t);
  await store.accept(newTurn());
  await store.accept(newTurn());
  await store.putBack(await begunTurn(store));
  const again = await begunTurn(store);
  assert.deepEqual([again.id, again.attempts], ['t1', 2]);
});

test('conversations are listed by newest activity, page by page, also when instants are equal', async (t) => {
  const { store, newTurn, clock } = workbench(t);
  for (const conversationId of ['a', 'b', 'c', 'd']) await store.accept(newTurn({ conversationId }));
  await clock.advance(10);
  await store.accept(newTurn({ conversationId: 'b', message: `${'x'.repeat(199)}𝒳` }));
  const first = store.listConversations(2);
  assert.deepEqual(
    first.map(({ id, turnCount, lastMessage }) => [id, turnCount, lastMessage]),
    [
      ['b', 2, 'x'.repeat(199)],
      ['d', 1, 'message 4'],
    ],
  );
  const rest = store.listConversations(10, first.at(-1));
  assert.deepEqual(
    rest.map(({ id }) => id),
    ['c', 'a'],
  );
});

test('a page of turns ends early when its text is large', async (t) => {
  const { store, newTurn } = workbench(t);
  const message = 'x'.repeat(1024 * 1024);
  for (let n = 0; n < 8; n++) await store.accept(newTurn({ message }));
  const page = store.turnsAfter('c1', 0, 500);
  assert.deepEqual([page.turns.length, page.more], [5, true]);
  const rest = store.turnsAfter('c1', page.turns.at(-1)!.seq, 500);
  assert.deepEqual([rest.turns.length, rest.more], [3, false]);
});

test('earlier turns are the newest before a turn, oldest first, of its conversation only', async (t) => {
  const { store, newTurn } = workbench(t);
  for (let n = 0; n < 3; n++) await store.accept(newTurn());
  await store.accept(newTurn({ conversationId: 'other' }));
  const { turn } = await store.accept(newTurn());
  assert.deepEqual(
    store.turnsBefore(turn, 2).map(({ id }) => id),
    ['t2', 't3'],
  );
});

test('the text of a turn is folded into its last say event when the turn ends', async (t) => {
  const { store, newTurn } = workbench(t);
  await store.accept(newTurn());
  const turn = await begunTurn(store);
  await store.say(turn, 0, 'Good ');
  await store.say(turn, 5, 'morning');
  const before = eventsOf(store).filter(({ type }) => type === 'say');
  await store.finish(turn, { status: 'done', reply: 'Good morning', model: 'm' }, 'Good morning');
  const after = eventsOf(store).filter(({ type }) => type === 'say');
  assert.deepEqual(after, [
    { ...before[1], data: { conversation_id: 'c1', turn_id: 't1', offset: 0, text: 'Good morning' } },
  ]);
});

test('event ids are not reused after old events were dropped, even after a restart', async (t) => {
  const { store, newTurn, open } = workbench(t, { eventsRetained: 20 });
  await store.accept(newTurn());
  const turn = await begunTurn(store);
  for (let n = 0; n < 1000; n++) store.status(turn, String(n)).catch(() => {});
  await store.status(turn, 'last');
  await store.close();
  const again = open();
  const bounds = again.eventBounds();
  assert.equal(eventsOf(again).length, 20);
  assert.equal(eventsOf(again)[0]?.id, bounds.droppedThrough + 1);
  const { newest } = bounds;
  await again.accept(newTurn());
  assert.equal(again.eventBounds().newest, newest + 1);
});

test('readers are notified after a commit, not before', async (t) => {
  const seen: number[] = [];
  const { store, newTurn } = workbench(t, { onEvents: () => seen.push(store.eventBounds().newest) });
  await store.accept(newTurn());
  assert.deepEqual(seen, [1]);
});

test("a second process is refused with the id of the data folder's owner", async (t) => {
  const { open } = workbench(t);
  assert.throws(open, { code: 'unavailable', message: /already open in this process/ });
});

test('a full queue accepts no new turn, but still returns an existing one', async (t) => {
  const { store, newTurn } = workbench(t);
  const fireId = '01977777-0000-7000-8000-000000000001@1';
  await store.accept(newTurn({ origin: 'chronos', fireId }));
  const isFull = () => true;
  await assert.rejects(store.accept(newTurn(), isFull), { code: 'rate_limited', retryAfterSeconds: 60 });
  assert.equal((await store.accept(newTurn({ origin: 'chronos', fireId }), isFull)).deduped, true);
  assert.equal(store.listConversations(10).length, 1);
});
