import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PlanNode } from '../../wire/intent.ts';
import { callNodes, withArguments } from './plan.ts';

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

test('the calls of a plan are listed in written order', () => {
  assert.deepEqual(
    callNodes(plan).map(({ id }) => id),
    ['a', 'b', 'c'],
  );
});

test('arguments can be replaced at any depth; the original plan is unchanged', () => {
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
