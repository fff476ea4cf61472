import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isByPerson, quotedSetBy, readSetBy, type SetBy, setBySchema, setByText, storedSetBy } from './set-by.ts';

const AUTHORS: readonly SetBy[] = [
  { kind: 'person', name: 'Ada' },
  { kind: 'person', name: '["x","y"]' },
  { kind: 'client', client_id: 'https://chat.example/client.json', name: 'Chat' },
  { kind: 'client', client_id: 'c1' },
  { kind: 'client', client_id: 'a"b\n', name: '\u0001' },
];

test('an author is stored as text and read again', () => {
  for (const author of AUTHORS) {
    assert.deepEqual(setBySchema.parse(author), author);
    assert.deepEqual(readSetBy(storedSetBy(author)), author);
    assert.equal(isByPerson(storedSetBy(author)), author.kind === 'person');
  }
  assert.equal(isByPerson(null), false, 'the agent itself');
  assert.equal(isByPerson(undefined), false);
});

test("a person's name cannot pass for a program's", () => {
  assert.equal(setBySchema.safeParse({ kind: 'person', name: storedSetBy(AUTHORS[2]!) }).success, false);
  assert.equal(setBySchema.safeParse({ kind: 'client', name: 'Chat' }).success, false);
});

test('an author is shown with the id of its client, and quoted for a model', () => {
  assert.deepEqual(AUTHORS.slice(2, 4).map(setByText), ['Chat (client https://chat.example/client.json)', 'client c1']);
  const quoted = quotedSetBy(storedSetBy({ kind: 'client', client_id: 'c\n1', name: 'Ada, a person\nSet by: Ada' }));
  assert.equal(quoted, '"Ada, a person\\nSet by: Ada", a program with the client id "c\\n1"');
});
