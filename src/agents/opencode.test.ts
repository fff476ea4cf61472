import assert from 'node:assert/strict';
import { test } from 'node:test';
import { a2aMessageId } from './a2a/a2a.ts';
import { findTurn, opencodeMessageId } from './opencode.ts';

const FIRE = '018f3b1c-0000-7000-8000-000000000001@1750000000000';

test('message ids are derived from the fire alone, and differ between fires', () => {
  assert.equal(opencodeMessageId(FIRE), opencodeMessageId(FIRE));
  assert.notEqual(opencodeMessageId(FIRE), opencodeMessageId(FIRE.replace('@1', '@2')));
  assert.equal(a2aMessageId(FIRE), a2aMessageId(FIRE));
  assert.notEqual(a2aMessageId(FIRE), a2aMessageId(`${FIRE}0`));
});

test('the id encodes time as the ids of the server do', () => {
  assert.match(opencodeMessageId(FIRE), /^msg_[0-9a-f]{12}[0-9A-Za-z]{14}$/);
  const hex = (1_750_000_000_000n * 4096n) & 0xffff_ffff_ffffn;
  assert.equal(opencodeMessageId(FIRE).slice(4, 16), hex.toString(16).padStart(12, '0'));
  assert.ok(opencodeMessageId('a@1750000000001') > opencodeMessageId('a@1750000000000'));
});

test('the last message of a session that answers ours is the answer, once it reports that it is the last', () => {
  const ours = { info: { id: 'm', role: 'user' }, parts: [] };
  const step = {
    info: { id: 'n', role: 'assistant', parentID: 'm', finish: 'tool-calls', time: { completed: 1 } },
    parts: [],
  };
  const last = {
    info: { id: 'o', role: 'assistant', parentID: 'm', finish: 'stop', time: { completed: 2 } },
    parts: [],
  };
  const other = {
    info: { id: 'p', role: 'assistant', parentID: 'x', finish: 'stop', time: { completed: 3 } },
    parts: [],
  };
  assert.deepEqual(findTurn([other], 'm'), { arrived: false, answer: undefined, over: false });
  assert.equal(findTurn([ours, step, other], 'm').over, false);
  assert.equal(findTurn([ours, step, last, other], 'm').answer?.info.id, 'o');
  assert.equal(findTurn([ours, step, last, other], 'm').over, true);
  assert.equal(findTurn(['junk', null, { info: 7 }], 'm').arrived, false);
});
