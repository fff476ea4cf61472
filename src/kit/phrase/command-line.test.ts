import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { joinCommand, shellCharacterIn, splitCommand } from './command-line.ts';

for (const [text, words] of [
  ['reveille mcp', ['reveille', 'mcp']],
  ['  node   /a/b.mjs\t--x ', ['node', '/a/b.mjs', '--x']],
  [`"/My Programs/x" 'a b' c\\ d`, ['/My Programs/x', 'a b', 'c d']],
  [`a "b \\" \\\\ \\n" 'c \\'`, ['a', 'b " \\ \\n', 'c \\']],
  [`a '' ""`, ['a', '', '']],
  ['a $(rm -rf /) ; b | c > d', ['a', '$(rm', '-rf', '/)', ';', 'b', '|', 'c', '>', 'd']],
] as const) {
  test(`${text} becomes ${words.length} words`, () => assert.deepEqual(splitCommand(text), words));
}

test('words in single quotes come back as they were', () => {
  const words = fc.array(
    fc.string({ unit: 'grapheme' }).filter((word) => !word.includes("'")),
    { minLength: 1 },
  );
  fc.assert(
    fc.property(words, (all) => {
      fc.pre(all[0] !== '');
      assert.deepEqual(splitCommand(all.map((word) => `'${word}'`).join(' ')), all);
    }),
  );
});

for (const [text, message] of [
  ['', /must name a program/],
  ['  ', /must name a program/],
  [`'' a`, /must name a program/],
  ['a "b', /has a " without its counterpart/],
  [`a 'b`, /has a ' without/],
  ['a \\', /must not end with a backslash/],
] as const) {
  test(`${JSON.stringify(text)} is refused`, () =>
    assert.throws(() => splitCommand(text), { name: 'CommandLineError', message }));
}

test('words become one command that has the same words', () => {
  const words = fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1 });
  fc.assert(
    fc.property(words, (all) => {
      fc.pre(all[0] !== '');
      assert.deepEqual(splitCommand(joinCommand(all)), all);
    }),
  );
  assert.equal(joinCommand(['./x.sh', '--day', "it's", '']), String.raw`./x.sh --day 'it'\''s' ''`);
});

test('a command for a shell is recognised by its first bare character', () => {
  for (const [text, found] of [
    ['make && ls', '&'],
    ['ls | wc', '|'],
    ['echo $HOME', '$'],
    ['echo \'$HOME\' "a;b" \\;', undefined],
    ['curl https://example.com/?a=1', undefined],
  ] as const)
    assert.equal(shellCharacterIn(text), found, text);
});
