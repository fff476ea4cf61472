import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conversationListSchema } from '../../../wire/turn.ts';
import { accepted, ask, dataOf, errorOf, settledTurns, startedNeo } from '../testing/workbench.ts';

test('conversations and their turns are listed in pages', async (t) => {
  const neo = await startedNeo(t);
  for (const id of ['a', 'b', 'c']) await accepted(neo, { message: `hello ${id}`, conversation_id: id });
  await accepted(neo, { message: 'again', conversation_id: 'a' });
  for (const id of ['a', 'b', 'c']) await settledTurns(neo, id);
  const seen: [string, number][] = [];
  let cursor: string | undefined = '';
  while (cursor !== undefined) {
    const query: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = conversationListSchema.parse(dataOf(await ask(neo, `/conversations?limit=2${query}`)));
    assert.ok(page.conversations.length <= 2);
    seen.push(...page.conversations.map(({ id, turn_count }): [string, number] => [id, turn_count]));
    cursor = page.next_cursor;
  }
  assert.deepEqual(
    seen.sort(([one], [other]) => one.localeCompare(other)),
    [
      ['a', 2],
      ['b', 1],
      ['c', 1],
    ],
  );
  const first = dataOf(await ask(neo, '/conversations/a?limit=1'));
  assert.deepEqual([first.turn_count, first.turns.length, first.turns[0].message], [2, 1, 'hello a']);
  const second = dataOf(await ask(neo, `/conversations/a?limit=1&cursor=${first.next_cursor}`));
  assert.deepEqual([second.turns[0].message, second.next_cursor], ['again', undefined]);
});

test('a single turn can be read within its conversation', async (t) => {
  const neo = await startedNeo(t);
  const { turn_id } = await accepted(neo, { message: 'x', conversation_id: 'c' });
  await accepted(neo, { message: 'y', conversation_id: 'other' });
  const [turn] = await settledTurns(neo, 'c');
  assert.deepEqual(dataOf(await ask(neo, `/conversations/c/turns/${turn_id}`)), turn);
  assert.equal(errorOf(await ask(neo, `/conversations/other/turns/${turn_id}`)).code, 'not_found');
  assert.equal(errorOf(await ask(neo, '/conversations/c/turns/nothing')).code, 'not_found');
});

test('errors name unknown routes, conversations and query members', async (t) => {
  const neo = await startedNeo(t);
  assert.equal(errorOf(await ask(neo, '/intents/1', { method: 'POST' })).code, 'not_found');
  assert.equal(errorOf(await ask(neo, '/conversations/unknown')).code, 'not_found');
  assert.equal(errorOf(await ask(neo, '/conversations/a%20b')).code, 'not_found');
  assert.match(errorOf(await ask(neo, '/conversations?limit=0')).message, /limit must be a whole number from 1 to 500/);
  assert.match(errorOf(await ask(neo, '/conversations?page=2')).message, /unknown field "page"/);
  assert.match(errorOf(await ask(neo, '/conversations?cursor=x')).message, /cursor must be the next_cursor/);
  assert.match(
    errorOf(await ask(neo, '/events?last_event_id=x')).message,
    /last_event_id must be the id of an earlier event/,
  );
});
