import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import { misleading } from './hidden-characters.ts';
import { argumentLines } from './visible.ts';

test('text that the compiler refuses as misleading is marked on the approval screen, even if it is cut', () => {
  const hostile = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 40 }),
    fc.constantFrom('p\u0430ypal', 'a\u200bb', '１0', 'x\u202e'),
  );
  const value = fc.record({ text: hostile, before: fc.nat(400), lines: fc.nat(160) });
  fc.assert(
    fc.property(value, ({ text, before, lines }) => {
      const args = { rest: Array.from({ length: lines }, () => 'plain'), to: `${'x '.repeat(before)}${text}` };
      if (misleading(args.to) === undefined) return;
      const shown = argumentLines(args).join('\n');
      assert.match(shown, /\\u|\\[bf]|cannot be seen|look like others/);
    }),
  );
});

test('hidden characters in omitted lines are reported, control characters included', () => {
  const args = { rest: Array.from({ length: 120 }, () => 'plain'), to: '\u0000' };
  assert.match(argumentLines(args).at(-1)!, /it holds characters that cannot be seen: U\+0000 at character 1$/);
});
