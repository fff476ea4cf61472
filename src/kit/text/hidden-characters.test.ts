import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import {
  hiddenBlanked,
  hiddenCharacters,
  jsonForTerminal,
  laidOpen,
  lookalikes,
  namesOf,
  oneLine,
  printable,
  withHiddenShown,
} from './hidden-characters.ts';

test('invisible characters are found with their code points and positions', () => {
  const cases: [string, string][] = [
    ['a\u200bb', 'U+200B'],
    ['a\u202eb', 'U+202E'],
    ['a\u2066b', 'U+2066'],
    ['a\u{e0041}b', 'U+E0041'],
    ['a\u0000b', 'U+0000'],
    ['a\u001b[8mb', 'U+001B'],
    ['a\u00adb', 'U+00AD'],
    ['a\ufeffb', 'U+FEFF'],
    ['a\u2028b', 'U+2028'],
    ['a\u3164b', 'U+3164'],
    ['a\u034fb', 'U+034F'],
    ['a\ufe0fb', 'U+FE0F'],
    ['a\u{e0100}b', 'U+E0100'],
    ['a\u200db', 'U+200D'],
    ['a\ue000b', 'U+E000'],
    ['a\u0085b', 'U+0085'],
  ];
  for (const [text, name] of cases) {
    assert.deepEqual(
      hiddenCharacters(text).map(({ codePoint, index }) => [codePoint, index]),
      [[name, 1]],
      name,
    );
  }
  assert.equal(namesOf(hiddenCharacters('a\u200bb\u202e')), 'U+200B at character 2, U+202E at character 4');
});

test('line ends, emoji and scripts with joiners are not reported', () => {
  for (const text of ['one\r\n\ttwo', '❤️ 👨‍👩‍👧 👍🏽 🏳️‍🌈', 'می‌خواهم', 'क्‍ष', '日本語', 'naïve', '\u00a0']) {
    assert.deepEqual(hiddenCharacters(text), [], text);
    assert.equal(withHiddenShown(text), text);
  }
});

test('invisible characters are shown as escapes', () => {
  assert.equal(withHiddenShown('a\u200bb\u{e0041}'), 'a\\u{200b}b\\u{e0041}');
});

test('letters of another alphabet among Latin ones are found; words of another alphabet are not', () => {
  assert.deepEqual(lookalikes('pаypal'), ['U+0430']);
  assert.deepEqual(lookalikes('acct-１'), ['U+FF11']);
  assert.deepEqual(lookalikes('𝐚cct'), ['U+1D41A']);
  for (const text of ['перевод 5 рублей', 'ΑΒΓ', 'café', 'straße…', 'pay Москва'])
    assert.deepEqual(lookalikes(text), [], text);
});

/** One character of each kind that controls a terminal or is invisible. */
const HOSTILE =
  '\u0007\b\u001b\u007f\u009b\u009d\u00ad\u061c\u200b\u200d\u200e\u2028\u202e\u2066\ufeff\ue000\u0378\ud800x\u{e0001}\u{e0041}\u{f0000}';

test('control, invisible and direction characters are shown by their code points on every screen', () => {
  for (const character of HOSTILE.replace('x', '')) {
    for (const shown of [printable, oneLine, laidOpen, withHiddenShown, jsonForTerminal]) {
      assert.match(
        shown(`a${character}b`),
        /^a[\x20-\x7e]+b$/,
        `${shown.name} ${namesOf(hiddenCharacters(character))}`,
      );
    }
    assert.equal(hiddenBlanked(`a${character}b`), 'a b');
  }
  assert.equal(oneLine('a\nb\tc\u001b[31m\u202e\r'), 'a\\nb\\tc\\u001b[31m\\u202e\\u000d');
  assert.equal(printable('a\nb\tc'), 'a\nb\tc');
  assert.equal(laidOpen('a\nb\u00a0\u{e0041}'), 'a\\u{000a}b\\u{00a0}\\u{e0041}');
});

test('every character that the compiler refuses is escaped on a screen', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 100 }), (text) => {
      for (const shown of [printable, oneLine, laidOpen, hiddenBlanked])
        assert.deepEqual(hiddenCharacters(shown(text)), [], shown.name);
      assert.doesNotMatch(laidOpen(text), /(?! )[\p{C}\p{Z}]/u);
    }),
  );
});

test('JSON for a terminal has no hidden characters and parses to the same value', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: anyCharacter }), (json) => {
      const shown = jsonForTerminal(json);
      assert.deepEqual(hiddenCharacters(shown), []);
      assert.deepEqual(JSON.parse(shown), JSON.parse(json));
    }),
  );
  assert.equal(jsonForTerminal('{"a":\r\n"\u009b\u{e0041}"}'), '{"a": \n"\\u009b\\udb40\\udc41"}');
});
