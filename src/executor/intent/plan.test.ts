import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { PlanNode } from '../../wire/intent.ts';
import { argsDigest, callDigest, callNodes, withArguments } from './plan.ts';

const call = (id: string): PlanNode => ({ id, kind: 'call', tool: 's/t', args: { id } });
const plan: PlanNode = {
  id: 'all',
  kind: 'sequence',
  nodes: [
    call('a'),
    { id: 'w', kind: 'wait', seconds: 1 },
    { id: 'p', kind: 'parallel', nodes: [call('b'), call('c')] },
  ],
};

test('the calls of a plan come in the order in which they are written', () => {
  assert.deepEqual(
    callNodes(plan).map(({ id }) => id),
    ['a', 'b', 'c'],
  );
});

test('arguments can be put in place of others, at any depth, and the plan itself stays as it was', () => {
  const other = withArguments(plan, ({ args }) => ({ ...args, key: 1 }));
  assert.deepEqual(
    callNodes(other).map(({ args }) => args),
    [
      { id: 'a', key: 1 },
      { id: 'b', key: 1 },
      { id: 'c', key: 1 },
    ],
  );
  assert.deepEqual(callNodes(plan)[0]?.args, { id: 'a' });
});

test('the digest of a call does not depend on the order of its members, and on everything else', () => {
  const canonical = '{"args":{"a":1,"b":"é"},"tool":"s/t"}';
  assert.equal(callDigest('s/t', { b: 'é', a: 1 }), createHash('sha256').update(canonical).digest('hex'));
  assert.notEqual(callDigest('s/t', { a: 1, b: 'é ' }), callDigest('s/t', { a: 1, b: 'é' }));
  assert.notEqual(callDigest('s/u', { a: 1 }), callDigest('s/t', { a: 1 }));
  assert.equal(argsDigest({ b: 2, a: 1 }), createHash('sha256').update('{"a":1,"b":2}').digest('hex'));
});
