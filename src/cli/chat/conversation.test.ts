/** The text of a turn on a terminal: each word is written once, however often the event log sends it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import type { NeoEvent } from '../../agents/neo/client.ts';
import { openConversationStore } from '../../agents/neo/conversations/store.ts';
import { beginNext } from '../../agents/neo/testing/workbench.ts';
import { ManualClock, settle } from '../../kit/clock/testing/manual-clock.ts';
import { eventFeed } from '../../turns/event-log.ts';
import { Screen } from './conversation.ts';

function screen() {
  let written = '';
  const shown = new Screen(
    (text) => {
      written += text;
    },
    () => ({ now: 0, zone: 'UTC', width: 80, paint: (_, text) => text }),
  );
  const say = (offset: number, text: string) =>
    shown.show({ type: 'say', data: { conversation_id: 'c', turn_id: 't', offset, text } });
  const call = () =>
    shown.show({
      type: 'tool',
      data: { conversation_id: 'c', turn_id: 't', call_id: '1', step: 1, name: 'look', state: 'begun' },
    });
  return { shown, say, call, written: () => written };
}

test('a reader that is one piece behind when the log merges a reply writes each word once', async (t) => {
  const clock = new ManualClock();
  const store = openConversationStore({ dataDir: temporaryFolder(t), clock, onEvents: () => feed.wake() });
  t.after(() => store.close());
  const feed = eventFeed(store);
  const over = new AbortController();
  t.after(() => over.abort());
  await store.accept({ id: 't', conversationId: 'c', origin: 'user', message: 'm', createdAt: 0 });
  const turn = (await beginNext(store, 'c'))!;
  const { shown, written } = screen();
  const events = feed.read({}, over.signal);
  const next = async () => {
    const { value } = await events.next();
    shown.show({ type: value!.type, data: JSON.parse(value!.data) } as NeoEvent);
  };
  const first = next();
  await settle();
  await store.say(turn, 0, 'Good ');
  await first;
  // The turn ends before the reader requests the second piece: the log has the whole reply in its place by then.
  await store.say(turn, 5, 'morning.');
  await store.finish(turn, { status: 'done', reply: 'Good morning.', model: 'm' }, 'Good morning.');
  await next();
  assert.equal(written(), 'Good morning.');
});

test('a reply that restarts with other text is written anew, and a partly missed one is written completely', () => {
  const anew = screen();
  anew.say(0, 'Good morning');
  anew.say(0, 'Good');
  anew.say(4, ' evening');
  assert.equal(anew.written(), 'Good morning\nGood evening');

  const late = screen();
  late.say(5, 'morning');
  late.say(12, ' to you');
  late.say(0, 'Good morning to you');
  assert.equal(late.written(), 'morning to you\nGood morning to you');
});

test('the same text after a call is written again', () => {
  const { say, call, written, shown } = screen();
  say(0, 'Done.');
  call();
  say(0, 'Done.');
  assert.match(written(), /^Done\.\n.*look\nDone\.$/);
  assert.ok(shown.hasSaid('t'));
});
