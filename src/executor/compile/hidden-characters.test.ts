import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hiddenCharacters, lookalikes, namesOf, withHiddenShown } from './hidden-characters.ts';

test('characters that cannot be seen are found with their code points and places', () => {
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

test('line ends, emoji and scripts that need joiners are what they are', () => {
  for (const text of ['one\r\n\ttwo', '❤️ 👨‍👩‍👧 👍🏽 🏳️‍🌈', 'می‌خواهم', 'क्‍ष', '日本語', 'naïve', '\u00a0']) {
    assert.deepEqual(hiddenCharacters(text), [], text);
    assert.equal(withHiddenShown(text), text);
  }
});

test('they are shown as escapes where a text has to be shown', () => {
  assert.equal(withHiddenShown('a\u200bb\u{e0041}'), 'a\\u{200b}b\\u{e0041}');
});

test('letters of another alphabet among Latin ones are found, words of another alphabet are not', () => {
  assert.deepEqual(lookalikes('pаypal'), ['U+0430']);
  assert.deepEqual(lookalikes('acct-１'), ['U+FF11']);
  assert.deepEqual(lookalikes('𝐚cct'), ['U+1D41A']);
  for (const text of ['перевод 5 рублей', 'ΑΒΓ', 'café', 'straße…', 'pay Москва'])
    assert.deepEqual(lookalikes(text), [], text);
});
