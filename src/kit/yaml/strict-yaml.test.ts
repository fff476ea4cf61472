import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import { readYaml } from './placed-yaml.ts';

const lines = (text: string) =>
  readYaml(text).problems.map(({ line, column, sentence }) => `${line}:${column}: ${sentence}`);

describe('YAML with positions', () => {
  test('has the positions of values and of their names', () => {
    const yaml = readYaml('one:\n  - {name: a, to: "18:30"}\n  - {name: 0500}\n');
    assert.deepEqual(yaml.place(['one', 0, 'to']), { line: 2, column: 19 });
    assert.deepEqual(yaml.place(['one', 0, 'to'], true), { line: 2, column: 15 });
    assert.deepEqual(
      yaml.place(['one', 0, 'gone', 'further'], true),
      { line: 2, column: 5 },
      'the nearest enclosing value',
    );
    assert.deepEqual(yaml.place(['one'], true), { line: 1, column: 1 });
    assert.deepEqual([yaml.source(['one', 1, 'name']), yaml.source(['one', 0])], ['0500', undefined]);
  });

  test('distinguishes invalid text from ambiguous values', () => {
    const [broken] = readYaml('a: [1\nb: 2').problems;
    assert.equal(broken?.broken, true);
    const ambiguous = readYaml('a:\n  - &x yes\n  - *x\n1: 2\n# \u200b');
    assert.deepEqual(
      ambiguous.problems.map(({ broken, path, line }) => [broken, path, line]),
      [
        [false, undefined, 5],
        [false, ['a', 0], 2],
        [false, ['a', 0], 2],
        [false, ['a', 1], 3],
        [false, [], 4],
      ],
    );
  });

  test('reports only the nesting depth for text that is nested too deep', () => {
    for (const depth of [22, 300, 5000, 50_000])
      for (const text of [`${'['.repeat(depth)}${']'.repeat(depth)}`, `${'- '.repeat(depth)}x`]) {
        const found = lines(text);
        assert.equal(found.length, 1, `${depth}: ${found.slice(0, 3)}`);
        assert.match(found[0]!, /^1:\d+: is nested more than 20 deep$/);
      }
    assert.deepEqual(lines(`${'['.repeat(20)}${']'.repeat(20)}`), []);
  });

  test('reports a duplicate name in a mapping as broken, also among many names', () => {
    const many = Array.from({ length: 20_000 }, (_, at) => `k${at}: 1\n`).join('');
    assert.deepEqual(lines(`${many}k7: 2`), ['20001:1: Map keys must be unique; "k7" is not']);
    assert.deepEqual(
      readYaml('a: {b: 1, "b": 2}\nb: {b: 3}').problems.map(({ broken, column }) => [broken, column]),
      [[true, 11]],
    );
  });

  test('gives every problem a position, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        for (const line of lines(text)) assert.match(line, /^[1-9]\d*:[1-9]\d*: ./);
      }),
      { numRuns: 300 },
    );
  });
});
