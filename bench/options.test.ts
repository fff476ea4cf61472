import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOptions, WrongOption } from './options.ts';
import { needsServers, WORKLOADS } from './plan.ts';

test('without options everything runs except the hour-long workloads, and docs/internals is written', () => {
  const options = readOptions([]);
  assert.deepEqual(
    options.only,
    WORKLOADS.filter((name) => name !== 'endurance' && name !== 'resident'),
  );
  assert.equal(options.out, 'docs/internals');
});

test('a quick run writes nothing without --out', () => {
  assert.equal(readOptions(['--quick']).out, undefined);
  assert.equal(readOptions(['--quick', '--out', 'here']).out, 'here');
});

test('workloads keep their order, in any order of the option', () => {
  assert.deepEqual(readOptions(['--only', 'burst, lateness']).only, ['lateness', 'burst']);
});

test('an agent’s workloads are valid and need no servers, unless chronosd is measured too', () => {
  const { only } = readOptions(['--only', 'memory,tools,boot']);
  assert.deepEqual(only, ['tools', 'boot', 'memory']);
  assert.equal(needsServers(only), false);
  assert.equal(needsServers(readOptions(['--only', 'memory,footprint']).only), true);
  assert.equal(needsServers(WORKLOADS), true);
});

test('the message about a wrong option names the valid values', () => {
  assert.throws(() => readOptions(['--only', 'lateness,latency']), /--only knows lateness.*\(got latency\)/);
  assert.throws(() => readOptions(['--rounds', '0']), /--rounds must be a whole number from 1 \(got 0\)/);
  assert.throws(() => readOptions(['--fast']), WrongOption);
});
