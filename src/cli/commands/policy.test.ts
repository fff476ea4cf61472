import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';

const POLICY = `version: 1
timezone: Europe/Berlin
quiet_hours: [{from: 22:00, to: 07:00}]
rules:
  - name: pocket money
    tool: ledger/transfer
    args: {/to: {one_of: [bob, carol]}}
    effect: allow
    limits: {per_call: {EUR: "50.00"}, per_day: {EUR: "120"}}
  - {name: no exports, tool: ledger/export, effect: deny}
`;

const MANIFEST = {
  servers: [
    {
      alias: 'ledger',
      command: 'ledger',
      tools: [
        { name: 'transfer', surface: 'escalate', rail: { amount: '/amount', currency: '/currency' } },
        { name: 'balance', surface: 'natural' },
        { name: 'history', side_effect_class: 'read' },
        { name: 'unclassed' },
      ],
    },
  ],
};

function home(t: TestContext, policy = POLICY) {
  const folder = temporaryFolder(t);
  const [policyFile, manifest] = [join(folder, 'policy.yaml'), join(folder, 'executor.json')];
  writeFileSync(policyFile, policy);
  writeFileSync(manifest, JSON.stringify(MANIFEST));
  const env = { EXECUTOR_POLICY: policyFile, EXECUTOR_MANIFEST: manifest };
  return { policyFile, run: (...words: string[]) => reveille(folder, ['policy', ...words], { env }) };
}

describe('reveille policy check', () => {
  test('says what was understood', async (t) => {
    const { policyFile, run } = home(t);
    const { status, stdout, stderr } = await run('check', policyFile);
    assert.deepEqual([status, stderr], [0, '']);
    assert.match(stdout, /policy\.yaml is understood/);
    assert.match(stdout, /quiet +22:00 to 07:00: allowed calls need approval/);
    assert.match(
      stdout,
      /pocket money +allow +ledger\/transfer +\/to is one of "bob", "carol"; at most 50\.00 EUR a call; at most 120 EUR a day\n/,
    );
    const machine = JSON.parse((await run('check', '--json')).stdout) as {
      policy: { rules: unknown[] };
      warnings: string[];
    };
    assert.deepEqual([machine.policy.rules.length, machine.warnings], [2, []]);
  });

  test('warns of what cannot be meant, and ends with 1 and every place where it is refused', async (t) => {
    const covered = home(t, `${POLICY}  - {name: all, tool: "*", effect: deny}\n`);
    const warned = await covered.run('check');
    assert.equal(warned.status, 0);
    assert.match(warned.stderr, /policy\.yaml:5:11: the rule "pocket money" has no effect: "all" denies/);
    const broken = home(t, 'version: 1\nrules:\n  - {name: a, tool: b}\nquiet: 1\n');
    const refused = await broken.run('check');
    assert.equal(refused.status, 1);
    assert.match(
      refused.stderr,
      /policy\.yaml:3:5: rules\.0\.effect is required\n.*policy\.yaml:3:21: rules\.0\.tool must be[^\n]*\n.*policy\.yaml:4:1: unknown field "quiet"/,
    );
    assert.equal((await broken.run('check', 'none.yaml')).status, 1);
    assert.equal((await broken.run('check', '--loudly')).status, 2);
  });
});

describe('reveille policy explain', () => {
  const call = (args: object, ...more: string[]) => [
    'explain',
    '--tool',
    'ledger/transfer',
    '--args',
    JSON.stringify(args),
    ...more,
  ];
  const bob = { to: 'bob', amount: '20.00', currency: 'EUR' };
  const noon = ['--at', '2026-06-15T12:00:00+02:00'];

  test('says which rule decides, and why, reading the amount where the manifest says that it stands', async (t) => {
    const { run } = home(t);
    const allowed = await run(...call(bob, ...noon));
    assert.deepEqual([allowed.status, allowed.stderr], [0, '']);
    assert.match(allowed.stdout, /ledger\/transfer \(escalate, about 20\.00 EUR\) at 2026-06-15T10:00:00\.000Z/);
    assert.match(allowed.stdout, /allow {2}by pocket money\nThe rule "pocket money" allows it\.\n/);
    assert.match(allowed.stdout, /no exports +deny +no +it matches ledger\/export/);
    const effect = async (...words: string[]) => JSON.parse((await run(...words, '--json')).stdout).effect as string;
    assert.equal(await effect(...call(bob, ...noon, '--unattended')), 'ask');
    assert.equal(await effect(...call(bob, ...noon, '--spent', '60 EUR', '--spent', '41 EUR')), 'deny');
    assert.equal(await effect(...call(bob, '--at', '2026-06-15T23:00:00+02:00')), 'ask');
    assert.equal(await effect('explain', '--tool', 'ledger/balance', ...noon), 'allow');
  });

  test('classes a tool as the executor does: what its manifest does not vouch for is escalate-class, whatever its name', async (t) => {
    const { run } = home(t);
    const classed = async (tool: string) => {
      const { stdout, stderr } = await run('explain', '--tool', tool, '--json');
      return [(JSON.parse(stdout) as { surface: string }).surface, stderr] as const;
    };
    for (const name of ['ledger/list_everything', 'ledger/test_transfer', 'elsewhere/get_balance']) {
      const [surface, remark] = await classed(name);
      assert.equal(surface, 'escalate', name);
      assert.match(remark, /does not declare .*: it is of the escalate class/);
    }
    assert.deepEqual(await classed('ledger/unclassed'), ['escalate', '']);
    assert.equal((await classed('ledger/history'))[0], 'natural');
  });

  test('refuses what cannot be meant with status 2', async (t) => {
    const { run } = home(t);
    for (const [words, message] of [
      [['explain'], /--tool must be <alias>\/<tool>/],
      [['explain', '--tool', 'a/b', '--args', '{'], /--args must be JSON/],
      [['explain', '--tool', 'a/b', '--args', '[]'], /--args must be a JSON object/],
      [['explain', '--tool', 'a/b', '--args', '{"n":12345678901234567890}'], /--args must be JSON/],
      [['explain', '--tool', 'a/b', '--spent', '-5'], /--spent must be an amount/],
      [['explain', '--tool', 'a/b', '--at', 'noon'], /--at must be an instant/],
      [['explain', '--tool', 'a/b', '--surface', 'deep'], /--surface must be one of natural, escalate/],
    ] as const) {
      const { status, stderr } = await run(...words);
      assert.equal(status, 2, stderr);
      assert.match(stderr, message);
    }
  });
});
