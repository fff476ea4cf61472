import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOptions, WrongOption } from './options.ts';
import { needsServers, SYSTEMS, WORKLOADS } from './plan.ts';
import { peersIn } from './systems/peers.ts';
import { reveilleOnPostgres } from './systems/reveille-postgres.ts';
import { reveilleOnSqlite } from './systems/reveille-sqlite.ts';
import type { Workbench } from './workbench.ts';

test('without options everything runs except the hour-long workloads, and the committed pages are written', () => {
  const options = readOptions([]);
  assert.deepEqual(
    options.only,
    WORKLOADS.filter((name) => name !== 'endurance' && name !== 'resident'),
  );
  assert.deepEqual(options.out, {
    benchmarks: 'docs/benchmarks.md',
    results: 'bench/results.md',
    data: 'bench/results.json',
  });
});

test('a quick run writes nothing without --out', () => {
  assert.equal(readOptions(['--quick']).out, undefined);
  assert.deepEqual(readOptions(['--quick', '--out', 'here']).out, {
    benchmarks: 'here/benchmarks.md',
    results: 'here/results.md',
    data: 'here/results.json',
  });
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

test('an unknown or empty name of a system is refused with the known names', () => {
  const burst = (...more: string[]) => readOptions(['--only', 'burst', ...more]);
  assert.equal(burst().systems, undefined);
  assert.deepEqual(burst('--systems', 'pg-boss,reveille-sqlite').systems, ['reveille-sqlite', 'pg-boss']);
  assert.throws(() => burst('--systems', 'reveille'), /--systems knows reveille-sqlite, .*-default \(got reveille\)/);
  for (const empty of ['', ' ', ',', 'pg-boss,'])
    assert.throws(() => burst('--systems', empty), /--systems knows reveille-sqlite.*\(got an empty name\)/);
  assert.throws(() => burst('--systems'), WrongOption);
  assert.throws(() => readOptions(['--only', '']), /--only knows lateness.*\(got an empty name\)/);
});

test('the known names are those of the systems', () => {
  const bench = {} as Workbench;
  const own = [reveilleOnSqlite(bench), reveilleOnPostgres(bench)];
  const systems = [...own, ...peersIn(bench, 'best'), ...peersIn(bench, 'default')];
  assert.deepEqual(
    systems.map(({ name }) => name),
    SYSTEMS,
  );
});
