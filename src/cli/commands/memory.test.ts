import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { openCortex } from '../../agents/neo/memory/cortex.ts';
import type { NewMemory } from '../../agents/neo/memory/memory.ts';
import { systemClock } from '../../kit/clock/clock.ts';

const AT = Date.UTC(2026, 5, 15, 8, 10);

const town = (value: string): NewMemory => ({
  kind: 'fact',
  text: `The user lives in ${value}.`,
  salience: 0.5,
  claim: { subject: 'user', attribute: 'home town', value },
});

/** A home whose Neo has three memories; the file stays open, as it is while Neo runs. */
async function home(t: TestContext) {
  const folder = temporaryFolder(t);
  const cortex = openCortex({ path: join(folder, 'neo', 'cortex.db'), clock: systemClock });
  t.after(() => cortex.close());
  await cortex.remember([town('Porto')], { turnId: 't1', conversationId: 'c1', at: AT });
  await cortex.remember([town('Lisbon')], { turnId: 't2', conversationId: 'c1', at: AT + 1000 });
  const tea: NewMemory = { kind: 'preference', text: 'The user prefers tea\u001b[31m', salience: 0.9 };
  await cortex.remember([tea], { turnId: 't3', conversationId: 'c2', at: AT + 2000 });
  return { folder, cortex };
}

const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .filter((line) => line !== '');

test('list shows valid memories, harmless for a terminal, and --all also contradicted ones', async (t) => {
  const { folder } = await home(t);
  const { status, stdout, stderr } = await reveille(folder, ['memory', 'list']);
  assert.equal(status, 0, stderr);
  assert.match(stdout, /preference\s+0\.90\s.*The user prefers tea\\u001b\[31m[\s\S]*Lisbon/);
  assert.doesNotMatch(stdout, /Porto/);
  const all = await reveille(folder, ['memory', 'list', '--all', '--kind', 'fact', '--json']);
  const records = lines(all.stdout).map((line) => JSON.parse(line));
  assert.deepEqual(
    records.map(({ text, superseded_by }) => [text, superseded_by === undefined]),
    [
      ['The user lives in Lisbon.', true],
      ['The user lives in Porto.', false],
    ],
  );
  assert.deepEqual([records[0].created_at, records[0].turn_id], ['2026-06-15T08:10:01.000Z', 't2']);
});

test('list --query searches', async (t) => {
  const { folder } = await home(t);
  const { stdout } = await reveille(folder, ['memory', 'list', '--query', 'tea "or" coffee?', '--json']);
  assert.deepEqual(
    lines(stdout).map((line) => JSON.parse(line).kind),
    ['preference'],
  );
  const nothing = await reveille(folder, ['memory', 'list', '--query', 'submarine']);
  assert.match(nothing.stdout, /^None of 3 memories\.$/m);
});

test('forget accepts an id or its prefix, while Neo has the file open', async (t) => {
  const { folder, cortex } = await home(t);
  const [tea] = cortex.list({ kind: 'preference', superseded: false, limit: 1 });
  const ambiguous = await reveille(folder, ['memory', 'forget', tea!.id.slice(0, 8)]);
  assert.equal(ambiguous.status, 1);
  assert.match(ambiguous.stderr, /matches .*give more of the id/);
  const done = await reveille(folder, ['memory', 'forget', tea!.id]);
  assert.equal(done.status, 0, done.stderr);
  assert.match(done.stdout, /^Forgotten: The user prefers tea/);
  assert.equal(cortex.count(), 2);
  const again = await reveille(folder, ['memory', 'forget', tea!.id, '--json']);
  assert.equal(again.status, 1);
  assert.equal(JSON.parse(again.stderr).error.code, 'not_found');
});

test('forget --all needs --yes, and then nothing remains', async (t) => {
  const { folder, cortex } = await home(t);
  for (const words of [['--all'], [], ['not-an-id'], ['--all', '--yes', 'abcdef']]) {
    const refused = await reveille(folder, ['memory', 'forget', ...words]);
    assert.equal(refused.status, 2, refused.stderr);
  }
  assert.equal(cortex.count(), 3);
  const { status, stdout } = await reveille(folder, ['memory', 'forget', '--all', '--yes', '--json']);
  assert.deepEqual([status, JSON.parse(stdout)], [0, { forgotten: 3 }]);
  assert.equal(cortex.count(), 0);
});

test('export prints every memory with its source turns', async (t) => {
  const { folder, cortex } = await home(t);
  await cortex.remember([town('Lisbon')], { turnId: 't9', conversationId: 'c1', at: AT + 9000 });
  const { stdout } = await reveille(folder, ['memory', 'export']);
  const records = lines(stdout).map((line) => JSON.parse(line));
  assert.equal(records.length, 3);
  const lisbon = records.find(({ text }) => text.includes('Lisbon'));
  assert.deepEqual(lisbon.turns, [
    { turn_id: 't2', at: '2026-06-15T08:10:01.000Z' },
    { turn_id: 't9', at: '2026-06-15T08:10:09.000Z' },
  ]);
  assert.equal(records.find(({ kind }) => kind === 'preference').text, 'The user prefers tea\u001b[31m');
});

test('without a file there are no memories and none is made; a damaged one is named', async (t) => {
  const folder = temporaryFolder(t);
  assert.match((await reveille(folder, ['memory', 'list'])).stdout, /^No memories\.$/m);
  assert.equal((await reveille(folder, ['memory', 'export'])).stdout, '');
  assert.match((await reveille(folder, ['memory', 'forget', 'abcdef12'])).stderr, /there are no memories yet/);
  const elsewhere = temporaryFolder(t);
  writeFileSync(join(elsewhere, 'cortex.db'), 'no database at all'.repeat(1000));
  const damaged = await reveille(folder, ['memory', 'list', '--data-dir', elsewhere]);
  assert.equal(damaged.status, 1);
  assert.match(damaged.stderr, /cortex\.db is damaged .*left untouched/);
});
