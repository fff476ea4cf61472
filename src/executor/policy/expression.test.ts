import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fitsGlob } from './decide.ts';
import { compileExpression, ExpressionError } from './expression.ts';

const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\d', '\\w', '\\.', '[a-c1-3]', '[\\]-]', 'é', '😀', '-');
const { expression } = fc.letrec<{ expression: string; part: string }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    atom,
    fc
      .tuple(tie('expression'), fc.constantFrom('', '?', '*', '+', '{2}', '{0}', '{1,}', '{0,2}'))
      .map(([inner, often]) => `(${inner})${often}`),
    fc.tuple(atom, fc.constantFrom('?', '*', '+', '{3}', '{1,2}')).map(([one, often]) => `${one}${often}`),
  ),
  expression: fc
    .array(
      fc.array(tie('part'), { maxLength: 3 }).map((parts) => parts.join('')),
      { minLength: 1, maxLength: 2 },
    )
    .map((ways) => ways.join('|')),
}));
const subject = fc
  .array(fc.constantFrom('a', 'b', 'c', '1', '.', '-', ']', 'é', '😀', '\n', 'A'), { maxLength: 8 })
  .map((points) => points.join(''));

describe('expressions', () => {
  test('match the same texts as in JavaScript', () => {
    fc.assert(
      fc.property(expression, subject, (source, text) => {
        const expected = new RegExp(
          `^(?:${source.replaceAll('[\\]-]', '[\\]\\-]').replaceAll('(', '(?:')})$`,
          'us',
        ).test(text);
        assert.equal(compileExpression(source)(text), expected, `${source} on ${JSON.stringify(text)}`);
      }),
      { numRuns: 1500 },
    );
  });

  test('match fast where backtracking would not end', () => {
    // Each of these would take longer than the age of the universe with backtracking.
    for (const source of ['(a*)*b', '(a|a)*b', '(a+)+b', '((a?)*)*b', '.*.*.*.*.*.*.*.*b', '(a?){100}a{100}b'])
      assert.equal(compileExpression(source)('a'.repeat(2000)), false);
  });

  test('that are too large, or of another language, are refused', () => {
    const refused = [
      '(',
      ')',
      'a**',
      '*a',
      '[',
      '[]',
      'a{2,1}',
      'a{x}',
      '\\b',
      '\\p{L}',
      '\\1',
      '(?=a)',
      '(?:a)',
      '^a',
      'a$',
      '[z-a]',
      'a{9999}',
      '((a{99}){99}){99}',
      '((){9999}){9999}',
      '((a{0}){9999}){9999}',
      `${'('.repeat(99)}a${')'.repeat(99)}`,
      'a\\',
    ];
    for (const source of refused) assert.throws(() => compileExpression(source), ExpressionError, source);
  });
});

test('a glob is the expression in which * is any text', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 8 });
  const glob = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*'), maxLength: 6 });
  fc.assert(
    fc.property(glob, text, (pattern, value) => {
      assert.equal(fitsGlob(pattern, value), new RegExp(`^${pattern.replaceAll('*', '.*')}$`, 's').test(value));
    }),
    { numRuns: 1000 },
  );
  assert.equal(fitsGlob('ledger/*', 'Ledger/transfer'), false);
});
