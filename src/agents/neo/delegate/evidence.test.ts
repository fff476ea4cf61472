import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Turn } from '../../../turns/turn.ts';
import { CONTEXT_PIECE_MAX_BYTES, CONTEXT_PIECES_MAX, contextPieceSchema } from '../../../wire/executor.ts';
import { utf8Bytes } from '../../../wire/text.ts';
import type { JournalledCall, JournalledStep } from '../loop/journal.ts';
import { TURN } from '../testing/tool-call.ts';
import { textAnswer } from '../tools/surface.ts';
import { evidenceFor } from './evidence.ts';

const turnOf = (id: string, members: Partial<Turn> = {}): Turn => ({
  ...TURN,
  id,
  message: `message of ${id}`,
  ...members,
});

function stepOf(step: number, calls: readonly [name: string, text: string, isError?: boolean][]): JournalledStep {
  const made = calls.map(
    ([name, text, isError = false], index): JournalledCall => ({
      index,
      call: { id: `c${index}`, name, input: '{"of":"the agent"}' },
      answer: textAnswer(text, isError),
    }),
  );
  return { step, text: 'words of the agent', omittedCalls: 0, calls: made };
}

const evidenceSources = (steps: Record<string, JournalledStep[]> = {}) => ({
  earlier: [] as Turn[],
  arrived: [] as Turn[],
  stepsOf: ({ id }: Turn) => steps[id] ?? [],
});

test("messages of people, alarms and tools are quoted in their order, and never the agent's", () => {
  const earlier = [
    turnOf('a', { reply: 'reply of the agent' }),
    turnOf('b', { origin: 'chronos', payload: '{"wei":12345678901234567890}' }),
  ];
  const steps = { a: [stepOf(1, [['look', 'found 0xA']])], now: [stepOf(1, [['look', 'found 0xB']])] };
  const open = { index: 1, call: { id: 'x', name: 'core_execute', input: '{}' } };
  steps.now.push({ step: 2, text: 'I pay', omittedCalls: 0, calls: [open] });
  const arrived = [turnOf('later')];
  assert.deepEqual(evidenceFor(turnOf('now'), { ...evidenceSources(steps), earlier, arrived }), [
    { from: 'person', text: 'message of a' },
    { from: 'tool', text: 'found 0xA' },
    { from: 'alarm', text: 'message of b' },
    { from: 'alarm', text: '{"wei":12345678901234567890}' },
    { from: 'person', text: 'message of now' },
    { from: 'tool', text: 'found 0xB' },
    { from: 'person', text: 'message of later' },
  ]);
});

test('the error of a failed call and the memories of a model are no evidence', () => {
  const steps = [
    stepOf(1, [
      ['look', 'there is no account 0xINVENTED', true],
      ['memory_recall', 'Bob is 0xREMEMBERED'],
      ['core_execute', 'Intent i failed: 0xINVENTED occurs nowhere', true],
      ['core_execute', 'Intent j was completed.'],
    ]),
  ];
  const evidence = evidenceFor(turnOf('now'), evidenceSources({ now: steps })).map(({ text }) => text);
  assert.deepEqual(evidence, ['message of now', 'Intent j was completed.']);
});

test("where not everything fits the turn's message stays, and of the rest the newest", () => {
  const steps = Array.from({ length: 90 }, (_, n) => stepOf(n + 1, [['look', `result ${n}`]]));
  const evidence = evidenceFor(turnOf('now'), evidenceSources({ now: steps })).map(({ text }) => text);
  assert.equal(evidence.length, CONTEXT_PIECES_MAX);
  assert.deepEqual([evidence[0], evidence[1], evidence.at(-1)], ['message of now', 'result 27', 'result 89']);
  const long = Array.from({ length: 12 }, (_, n) => stepOf(n + 1, [['look', `${n} ${'x '.repeat(30_000)}`]]));
  const kept = evidenceFor(turnOf('now'), evidenceSources({ now: long }));
  assert.ok(utf8Bytes(JSON.stringify(kept)) < 140 * 1024);
  assert.deepEqual(
    kept.map(({ text }) => text.slice(0, 2)),
    ['me', '10', '11'],
  );
});

test('a text that is too long is cut between two values, and every piece is accepted', () => {
  const number = '12345678901234567890123';
  const texts = [
    `${`${number} `.repeat(4000)}`,
    `[${`"${number}",`.repeat(4000)}]`,
    `é ${'€'.repeat(40_000)} ${number}`,
    `${'😀'.repeat(100)}, ${'😀'.repeat(30_000)}`,
    '\ud800 half',
    '',
    'x'.repeat(100_000),
  ];
  for (const text of texts) {
    const evidence = evidenceFor(turnOf('now'), evidenceSources({ now: [stepOf(1, [['look', text]])] }));
    for (const piece of evidence) contextPieceSchema.parse(piece);
    const cut = evidence[1]?.text ?? '';
    assert.ok(text.toWellFormed().startsWith(cut) && utf8Bytes(cut) <= CONTEXT_PIECE_MAX_BYTES);
    for (const [digits] of cut.matchAll(/\d+/g)) assert.equal(digits, number);
    assert.equal(cut.includes('x'), false, 'a run that may be one value is not started');
  }
});

test('a message of another agent is a text from outside, and no words of the person or of an alarm', () => {
  const sent = turnOf('sent', { origin: 'chronos', sentBy: 'Scout', payload: '{"to":"0xC"}' });
  assert.deepEqual(evidenceFor(sent, evidenceSources()), [
    { from: 'tool', text: 'message of sent' },
    { from: 'tool', text: '{"to":"0xC"}' },
  ]);
});
