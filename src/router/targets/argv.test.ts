import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from './argv.ts';
import type { TerminalPreset } from './preset.ts';
import { Presets } from './presets.ts';

const shipped = new Presets('/nowhere');
const preset = (name: string) => shipped.get(name) as TerminalPreset;
const ID = '3f0d5d1e-0000-4000-8000-000000000001';

test('the presets that ship are called as their makers say', () => {
  const line = (name: string, session?: string) => commandLine(preset(name), 'words', session, ['--more']);
  assert.deepEqual(line('claude'), {
    arguments: ['-p', 'words', '--output-format', 'json', '--more'],
    input: undefined,
  });
  assert.deepEqual(line('claude', ID), {
    arguments: ['-p', '--resume', ID, 'words', '--output-format', 'json', '--more'],
    input: undefined,
  });
  assert.deepEqual(line('codex'), { arguments: ['exec', '--more', '-', '--json'], input: 'words' });
  assert.deepEqual(line('codex', ID), { arguments: ['exec', '--more', 'resume', ID, '-', '--json'], input: 'words' });
  assert.deepEqual(line('gemini', ID), {
    arguments: ['--resume', ID, '-p', 'words', '--output-format', 'json', '--more'],
    input: undefined,
  });
});

test('words that cannot be an argument go over standard input, or nowhere', () => {
  const { stdin: _, ...argumentOnly } = preset('claude').new;
  const bare = { ...preset('claude'), new: argumentOnly };
  for (const [words, because] of [
    ['-rf /', /begins with a dash/],
    ['a\0b', /holds a NUL/],
    ['ü'.repeat(70_000), /has 140000 bytes with its payload, and an argument holds 131071 at most/],
  ] as const) {
    const line = commandLine(preset('claude'), words, undefined, []);
    assert.deepEqual(line, { arguments: ['-p', '--output-format', 'json'], input: words });
    const refused = commandLine(bare, words, undefined, []);
    assert.ok('impossible' in refused && because.test(refused.impossible));
  }
});

test('nothing in words, session or arguments is taken for a part of the template', () => {
  const line = commandLine(preset('claude'), '<session> <args> $&', '$&$1', ['<message>', '<session>']);
  assert.ok('arguments' in line);
  assert.deepEqual(line.arguments, [
    ...['-p', '--resume', '$&$1', '<session> <args> $&', '--output-format', 'json', '<message>', '<session>'],
  ]);
});
