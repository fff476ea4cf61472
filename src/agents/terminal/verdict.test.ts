import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import { Presets, type TerminalPreset } from '../preset.ts';
import type { Exit } from './readers.ts';
import { boundedReply, verdictOf } from './verdict.ts';

const shipped = new Presets('/nowhere');
const SESSION = '3f0d5d1e-0000-4000-8000-000000000001';

function verdict(name: string, stdout: string, more: { stderr?: string; exit?: Exit; ended?: string } = {}) {
  const { stderr = '', ended, exit = 'exit' in more ? undefined : { code: 0 } } = more;
  const output = { stdout: { text: stdout, whole: true }, stderr: { text: stderr, whole: true } };
  return verdictOf(shipped.get(name) as TerminalPreset, {
    output,
    exit,
    ended,
    session: SESSION,
    secrets: ['sk-secret'],
  });
}

const result = (more: object) =>
  JSON.stringify({ type: 'result', subtype: 'success', num_turns: 1, session_id: SESSION, ...more });

test('a result is found between other lines, pretty-printed, and at the end of a list', () => {
  const done = { status: 'done', session: SESSION, reply: 'ok' };
  const text = result({ result: 'ok' });
  const forms = [
    text,
    `warning\n${text}\n`,
    `${text}\nbye`,
    `[{"type":"system"},${text}]`,
    `npm notice\n${JSON.stringify(JSON.parse(text), null, 2)}`,
  ];
  for (const form of forms) assert.deepEqual(verdict('claude', form), done, form);
  assert.deepEqual(verdict('claude', text, { exit: undefined }), done);
});

test('text of the agent is never parsed as an error of the program', () => {
  const reply = 'No conversation found with session ID, I would say; it already has an active writer';
  assert.equal(verdict('claude', result({ result: reply })).status, 'done');
  assert.equal(verdict('claude', result({ result: reply, is_error: true })).status, 'failed');
  const events = [
    { type: 'thread.started', thread_id: SESSION },
    { type: 'item.completed', item: { type: 'agent_message', text: 'it already has an active writer' } },
    { type: 'turn.failed', error: { message: 'cut off' } },
  ];
  assert.equal(verdict('codex', events.map((event) => JSON.stringify(event)).join('\n')).status, 'failed');
});

test('a missing session is recognized in each known error text', () => {
  const text = `No conversation found with session ID: ${SESSION}`;
  assert.equal(verdict('claude', '', { stderr: text, exit: { code: 1 } }).status, 'no_session');
  const error = { type: 'result', subtype: 'error_during_execution', is_error: true, num_turns: 0, errors: [text] };
  assert.equal(verdict('claude', JSON.stringify(error), { exit: { code: 1 } }).status, 'no_session');
});

test('an ended program failed, unless it had reported success', () => {
  const ended = 'took longer than 5 s and was ended';
  const exit = { signal: 'SIGTERM' };
  assert.deepEqual(verdict('claude', '', { ended, exit, stderr: 'with sk-secret' }), {
    ...{ status: 'failed', session: undefined, reply: undefined },
    error: 'claude took longer than 5 s and was ended: with [redacted]',
  });
  assert.equal(verdict('claude', result({ result: 'ok' }), { ended, exit }).status, 'done');
  assert.equal(verdict('claude', '', { exit: undefined }).status, 'unknown');
});

test('a session id that looks like an option is not stored', () => {
  const outcome = verdict('claude', result({ result: 'ok', session_id: '--dangerously-skip-permissions' }));
  assert.deepEqual(outcome, { status: 'done', session: undefined, reply: 'ok' });
});

test('a reply that is too long is cut at a character boundary, with a note', () => {
  const reply = boundedReply('ü'.repeat(200_000))!;
  assert.ok(Buffer.byteLength(reply) < 256 * 1024 + 64);
  assert.match(reply, /ü\n\[cut here: the reply has 400000 bytes\]$/);
  assert.ok(!reply.includes('\ufffd'));
});

test('every output has a result, and only the expected format marks a turn as done', () => {
  const line = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.json(),
    fc.constantFrom(
      '{"type":"result"',
      '{"error":{}}',
      '{"type":"turn.started"}',
      '[',
      '{',
      '{"status":null}',
      '\ufffd',
    ),
  );
  const output = fc.array(line, { maxLength: 6 }).map((lines) => lines.join('\n'));
  const exits = fc.constantFrom<Exit>({ code: 0 }, { code: 1 }, { signal: 'SIGKILL' }, undefined);
  fc.assert(
    fc.property(fc.constantFrom('claude', 'codex', 'gemini'), output, output, exits, (name, stdout, stderr, exit) => {
      const outcome = verdict(name, stdout, { stderr, exit });
      assert.notEqual(outcome.status, 'done');
      if ('error' in outcome) assert.ok(outcome.error.length < 2500 && outcome.error.isWellFormed());
    }),
  );
});

test('a reply of many replacement characters is cut in linear time', () => {
  const before = process.cpuUsage().user;
  const reply = boundedReply(`${'\ufffd'.repeat(87_000)}${'x'.repeat(200_000)}`)!;
  assert.ok(reply.startsWith('\ufffd'));
  // Processor time, which a busy computer does not change: a millisecond, against 2.7 seconds.
  assert.ok(process.cpuUsage().user - before < 500_000);
});
