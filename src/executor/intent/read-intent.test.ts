import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ReveilleError } from '../../wire/errors.ts';
import { PLAN_DEPTH_MAX, PLAN_NODES_MAX, type PlanNode } from '../../wire/intent.ts';
import { INTENT_MAX_BYTES, readIntent } from './read-intent.ts';

const call = (id: string, args = '{}') => `{"id":"${id}","kind":"call","tool":"ledger/transfer","args":${args}}`;
const sequence = (...nodes: string[]) => `{"id":"all","kind":"sequence","nodes":[${nodes.join(',')}]}`;
const intent = (plan: string) => `{"verb":"transfer","plan":${plan}}`;

function refuses(source: string, pattern: RegExp) {
  assert.throws(
    () => readIntent(source),
    (thrown) => {
      assert.ok(thrown instanceof ReveilleError, String(thrown));
      assert.equal(thrown.code, 'invalid_request');
      assert.match(thrown.message, pattern);
      return true;
    },
    source.slice(0, 200),
  );
}

test('an intent is read with its exact arguments', () => {
  const source = intent(
    sequence(call('a', '{"amount":"12.50","n":[0.1,-3,1e3]}'), '{"id":"w","kind":"wait","seconds":5}'),
  );
  const plan: PlanNode = {
    id: 'all',
    kind: 'sequence',
    nodes: [
      { id: 'a', kind: 'call', tool: 'ledger/transfer', args: { amount: '12.50', n: [0.1, -3, 1000] } },
      { id: 'w', kind: 'wait', seconds: 5 },
    ],
  };
  assert.deepEqual(readIntent(source), { verb: 'transfer', plan });
});

test('ambiguous text is refused with its position', () => {
  const second = (args: string) => intent(sequence(call('a'), call('b', args)));
  refuses(
    second('{"amount":12345678901234567890}'),
    /^plan\.nodes\[1\]\.args\.amount cannot be read .*12345678901234567890/,
  );
  refuses(second('{"amount":0.10000000000000000001}'), /^plan\.nodes\[1\]\.args\.amount .*exactly/);
  refuses(second('{"amount":1e400}'), /^plan\.nodes\[1\]\.args\.amount .*exactly/);
  refuses(second('{"list":[1,[2,{"x":9007199254740993}]]}'), /^plan\.nodes\[1\]\.args\.list\[1\]\[1\]\.x /);
  refuses(second('{"amount":1,"amount":2}'), /^plan\.nodes\[1\]\.args .*"amount" is duplicated/);
  refuses(second('{"amount":1,"\\u0061mount":2}'), /"amount" is duplicated/);
  refuses(second('{"to":"\\ud800"}'), /^plan\.nodes\[1\]\.args\.to .*surrogate/);
  refuses(second('{"\\udc00":1}'), /^plan\.nodes\[1\]\.args .*surrogate/);
  refuses(second('{"__proto__":{"admin":true}}'), /^plan\.nodes\[1\]\.args .*__proto__/);
  refuses(second('{"a":{"constructor":1}}'), /^plan\.nodes\[1\]\.args\.a .*constructor/);
});

test('unknown members are refused with their position', () => {
  refuses(intent(call('a').replace('"args"', '"approve":true,"args"')), /plan\.approve/);
  refuses(
    intent(sequence(call('a'), '{"id":"w","kind":"wait","seconds":0}')),
    /plan\.nodes\[1\]\.seconds must be at least 1/,
  );
  refuses(intent(sequence(call('a'), '{"id":"w","kind":"shell","command":"rm"}')), /plan\.nodes\[1\]\.kind/);
  refuses(intent(call('../a')), /plan\.id/);
  refuses(intent(call('a').replace('ledger/transfer', 'transfer')), /plan\.tool must be <alias>\/<tool>/);
  refuses('{"verb":"x"}', /plan is required/);
  refuses(`{"verb":"x","deadline":"tomorrow","plan":${call('a')}}`, /deadline must be an RFC 3339 instant/);
  refuses('[]', /the intent must be an object/);
  refuses('', /cannot be read/);
  refuses(`${intent(call('a'))} {}`, /unexpected text after the value/);
});

test('ids are used once, in the whole plan', () => {
  const inner = `{"id":"b","kind":"parallel","nodes":[${call('a')}]}`;
  refuses(
    intent(sequence(call('a'), inner)),
    /plan\.nodes\[1\]\.nodes\[0\]\.id is "a", which is the id of plan\.nodes\[0\]/,
  );
});

test('plans are neither too long nor too deep nor too big', () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => call(`n${at}`));
  assert.ok(readIntent(intent(sequence(...many(PLAN_NODES_MAX - 1)))));
  refuses(intent(sequence(...many(PLAN_NODES_MAX))), /at most 64/);
  const nest = (depth: number): string =>
    depth === 0 ? call('leaf') : `{"id":"g${depth}","kind":"sequence","nodes":[${nest(depth - 1)}]}`;
  assert.ok(readIntent(intent(nest(PLAN_DEPTH_MAX))));
  refuses(intent(nest(PLAN_DEPTH_MAX + 1)), /is nested too deep/);
  refuses(intent(nest(1000)), /nested|deep/);
  refuses(intent(call('a', `{"x":${'['.repeat(100_000)}`)), /nested/);
  refuses(intent(call('a', `{"x":"${'é'.repeat(INTENT_MAX_BYTES / 2)}"}`)), /at most 262144 bytes/);
});

test('any text gives an intent or a refusal', () => {
  const pieces = fc.constantFrom(
    ...'{}[],:"',
    '"plan"',
    '"id"',
    '"kind":"call"',
    '1e5',
    'null',
    '\\ud800',
    ' ',
    'true',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(pieces).map((all) => all.join('')),
        fc.json(),
        fc.string(),
      ),
      (text) => {
        try {
          readIntent(text);
        } catch (thrown) {
          assert.ok(thrown instanceof ReveilleError, String(thrown));
        }
      },
    ),
  );
});

test('arguments that survive the reading are the same JSON as in the text', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ noUnicodeString: true })), (args) => {
      const source = intent(call('a', JSON.stringify(args)));
      try {
        assert.equal(JSON.stringify((readIntent(source).plan as { args: unknown }).args), JSON.stringify(args));
      } catch (thrown) {
        assert.ok(thrown instanceof ReveilleError, String(thrown));
      }
    }),
  );
});
