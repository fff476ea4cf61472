import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TurnInput } from '../../turns/turn.ts';
import { offlineModel, offlineReply } from './model.ts';

const DUE = Date.UTC(2026, 5, 15, 8, 10);
const WAKE: TurnInput = {
  origin: 'chronos',
  alarmId: 'a1',
  scheduledFor: DUE,
  missedCount: 0,
  message: 'Water the plants.',
  createdAt: DUE + 12,
};

test('a wake is answered with its cause, times, lateness, message and payload', () => {
  const reply = offlineReply({ ...WAKE, label: 'Plants', missedCount: 2, setAt: DUE - 60_000, payload: '{"n": 1.0}' });
  assert.equal(
    reply,
    [
      'I am the offline model: no language model is configured (NEO_MODEL_BASE_URL), so I can only repeat what reached me.',
      'A timer woke me, not a person: the alarm "Plants" that was due at 2026-06-15T08:10:00.000Z reached me at 2026-06-15T08:10:00.012Z, 12 ms late; it was set at 2026-06-15T08:09:00.000Z; 2 earlier occurrences were missed.',
      'My message to myself: "Water the plants." Payload: {"n": 1.0}',
    ].join('\n'),
  );
});

test('an alarm with an empty label is one without a label', () => {
  assert.match(offlineReply({ ...WAKE, label: '' }), /not a person: an alarm that was due at/);
});

test('a person is answered as a person', () => {
  const reply = offlineReply({ origin: 'user', message: 'Hi', createdAt: DUE });
  assert.match(reply, /\nA person wrote to me at 2026-06-15T08:10:00\.000Z\.\nThe message: "Hi"$/);
});

test('the answer never takes more than three lines and cannot drive a terminal', () => {
  const evil = '\u001b[2J\r\n\u009b31m\u202egnp.exe\u2028\u0007';
  const reply = offlineReply({ ...WAKE, label: evil, message: evil, payload: `{\n"a":\r\n"\u009b\u202e"}` });
  assert.equal(reply.split(/\r\n|[\n\r\u2028\u2029]/).length, 3);
  assert.doesNotMatch(reply, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
});

test('a long message is quoted from its beginning, with its length, and no character is cut in half', () => {
  const reply = offlineReply({ ...WAKE, message: `x${'𝒳'.repeat(1000)}` });
  assert.match(reply, /𝒳…" \(2001 characters in all\)$/);
  assert.ok(reply.isWellFormed());
});

test('the model streams its answer and names itself', async () => {
  const pieces: string[] = [];
  const signal = new AbortController().signal;
  const request = { system: '', messages: [], turn: WAKE, signal, onText: (piece: string) => pieces.push(piece) };
  const answer = await offlineModel.generate(request);
  const usage = { inputTokens: 0, outputTokens: 0 };
  assert.deepEqual(answer, { text: offlineReply(WAKE), model: 'offline', usage });
  assert.equal(pieces.join(''), answer.text);
});
