import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../test/support/random/characters.ts';
import { bindNames, FUNCTION_NAME, functionName, RESERVED_NAMES } from './function-names.ts';

/** Aliases that manifests allow, many of them easy to confuse. */
const aliases = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/),
  fc.constantFrom('a', 'a_', 'a__', 'a__b', '_', '__', '-', '9', 'core', 'fs', 'x'.repeat(64)),
);
/** Names as servers may send them. */
const tools = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 200 }),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }),
  fc.stringMatching(/^[a-z_-]{1,200}$/),
  fc.constantFrom(
    'b',
    '_b',
    '__b',
    'b__c',
    'execute',
    'read_file',
    'read.file',
    'read/file',
    'read file',
    '',
    '\ud800',
    '\udfff',
  ),
  // The same long beginning, so that shortening alone would make them equal.
  fc.string({ maxLength: 3 }).map((end) => `${'long-'.repeat(40)}${end}`),
  fc
    .tuple(aliases, fc.string({ maxLength: 8 }))
    .map(([alias, tool]) => functionName(alias, `${tool} `).replace(/^.*__/, '')),
);
const pair = fc.record({ alias: aliases, tool: tools });

describe('function names', () => {
  test('are accepted by every provider, are never reserved, and stay the same', () => {
    fc.assert(
      fc.property(pair, ({ alias, tool }) => {
        const name = functionName(alias, tool);
        assert.match(name, FUNCTION_NAME);
        assert.ok(!RESERVED_NAMES.has(name));
        assert.equal(functionName(alias, tool), name);
      }),
      { numRuns: 3000 },
    );
  });

  test('of different tools are different', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(pair, { maxLength: 60, selector: ({ alias, tool }) => JSON.stringify([alias, tool]) }),
        (all) => {
          const { byName, collisions } = bindNames(all);
          assert.deepEqual(collisions, []);
          assert.equal(byName.size, all.length);
          for (const tool of all) assert.equal(byName.get(functionName(tool.alias, tool.tool)), tool);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('do not depend on the other tools', () => {
    fc.assert(
      fc.property(pair, fc.array(pair, { maxLength: 5 }), (one, others) => {
        const called = (all: { alias: string; tool: string }[]) =>
          [...bindNames(all).byName].find(([, { alias, tool }]) => alias === one.alias && tool === one.tool)?.[0];
        assert.equal(called([one, ...others]), called([one]));
      }),
    );
  });

  for (const [alias, tool, name] of [
    ['fs', 'read_file', 'fs__read_file'],
    ['paxeer-net', 'get_balance', 'paxeer-net__get_balance'],
    ['a', '_b', 'a___b'],
    ['a_', 'b', /^a___b_[0-9a-f]{12}$/],
    ['a__b', 'c', /^a__b__c_[0-9a-f]{12}$/],
    ['a', 'b__c', 'a__b__c'],
    ['fs', 'read file', /^fs__read_file_[0-9a-f]{12}$/],
    ['9to5', 'x', /^_9to5__x_[0-9a-f]{12}$/],
    ['fs', 'x_0123456789ab', /^fs__x_0123456789ab_[0-9a-f]{12}$/],
    ['fs', 'x'.repeat(59), `fs__${'x'.repeat(59)}`],
    ['fs', 'x'.repeat(60), /^fs__x{46}_[0-9a-f]{12}$/],
  ] as const) {
    test(`of ${alias} and ${tool.slice(0, 20)} never change`, () => {
      const actual = functionName(alias, tool);
      if (typeof name === 'string') assert.equal(actual, name);
      else assert.match(actual, name);
    });
  }

  test('that collide are reported with both tools', () => {
    const [one, two] = [
      { alias: 'a', tool: 'b' },
      { alias: 'c', tool: 'd' },
    ];
    assert.deepEqual(bindNames([one, two], () => 'same').collisions, [{ name: 'same', tools: [one, two] }]);
  });
});
