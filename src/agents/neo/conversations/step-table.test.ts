import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { systemClock } from '../../../kit/clock/clock.ts';
import type { JournalledStep } from '../loop/journal.ts';
import { beginNext } from '../testing/workbench.ts';
import { textAnswer } from '../tools/surface.ts';
import { openConversationStore } from './store.ts';

const STEP: JournalledStep = {
  step: 1,
  text: 'Let me look.',
  omittedCalls: 2,
  calls: [
    {
      index: 0,
      call: { id: 'a', name: 'x', input: '{"n":12345678901234567890}', opaque: { endpoint: { mark: 'm' } } },
    },
    { index: 1, call: { id: 'b', name: 'y', input: '{' }, answer: textAnswer('no JSON', true) },
    { index: 2, call: { id: 'c', name: 'z', input: '' } },
  ],
};

test('a journal is read as it was written, also by the next process; an unfinished call stays unfinished', async (t) => {
  const dataDir = temporaryFolder(t);
  const open = () => openConversationStore({ dataDir, clock: systemClock });
  const store = open();
  const accepted = { id: 't1', conversationId: 'c', origin: 'user', message: 'm', createdAt: 0 } as const;
  await store.accept(accepted);
  const turn = (await beginNext(store, 'c'))!;
  assert.deepEqual(store.journal.steps('t1'), []);
  await store.journal.beginStep(turn, STEP);
  const image = { type: 'image', mediaType: 'image/png', data: 'AA==' } as const;
  const answer = { isError: false, content: [{ type: 'text', text: 'héllo 𝒳' } as const, image] };
  await store.journal.finishCall(turn, 1, { ...STEP.calls[0]!, answer }, 12);
  await store.close();

  const again = open();
  t.after(() => again.close());
  const [first, ...others] = STEP.calls;
  assert.deepEqual(again.journal.steps('t1'), [{ ...STEP, calls: [{ ...first, answer }, ...others] }]);
});

test('when a turn has ended, long texts of its journal are deleted; names and failures of calls stay', async (t) => {
  const store = openConversationStore({ dataDir: temporaryFolder(t), clock: systemClock });
  t.after(() => store.close());
  await store.accept({ id: 't1', conversationId: 'c', origin: 'user', message: 'm', createdAt: 0 });
  const turn = (await beginNext(store, 'c'))!;
  const long = 'x'.repeat(10_000);
  await store.journal.beginStep(turn, { ...STEP, calls: [{ index: 0, call: { id: 'a', name: 'x', input: long } }] });
  const call = { index: 0, call: { id: 'a', name: 'x', input: long }, answer: textAnswer(long, true) };
  await store.journal.finishCall(turn, 1, call, 1);
  await store.finish(turn, { status: 'done', reply: 'r', model: 'm' }, '');
  const [kept] = store.journal.steps('t1')[0]!.calls;
  assert.equal(kept?.call.input.length, 4096);
  assert.deepEqual(kept?.answer, textAnswer('(the result was long and has not been kept)', true));
});
