import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { createReplyStream } from './answer.ts';

function workbench() {
  const clock = new ManualClock();
  const written: [number, string][] = [];
  return { clock, written, speech: createReplyStream(clock, (offset, text) => written.push([offset, text])) };
}

test('pieces that arrive within 50 ms are written as one, each at its offset in the reply', async () => {
  const { clock, written, speech } = workbench();
  speech.add('Good ');
  speech.add('morning');
  assert.deepEqual(written, []);
  await clock.advance(50);
  speech.add(', you');
  assert.equal(speech.end(), 'Good morning, you');
  speech.add(' there?');
  assert.deepEqual(written, [
    [0, 'Good morning'],
    [12, ', you'],
  ]);
  assert.equal(clock.timers, 0);
});

test('a large piece is written at once', () => {
  const { written, speech } = workbench();
  speech.add('x'.repeat(5000));
  assert.equal(written.length, 1);
});

test('a reply that begins again is written from offset 0', async () => {
  const { clock, written, speech } = workbench();
  speech.add('half of a');
  await clock.advance(50);
  speech.add(' never written');
  speech.restart();
  speech.add('whole');
  assert.equal(speech.end(), 'whole');
  assert.deepEqual(written, [
    [0, 'half of a'],
    [0, 'whole'],
  ]);
});

test('a reply without text writes nothing', () => {
  const { written, speech } = workbench();
  assert.equal(speech.end(), '');
  assert.deepEqual(written, []);
});

test('the text of an earlier step is written, though another text replaces it', () => {
  const { clock, written, speech } = workbench();
  speech.add('Let me look.');
  speech.nextStep();
  speech.add('It is so.');
  assert.equal(speech.end(), 'It is so.');
  assert.deepEqual(written, [
    [0, 'Let me look.'],
    [0, 'It is so.'],
  ]);
  assert.equal(clock.timers, 0);
});
