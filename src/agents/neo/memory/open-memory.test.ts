import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { ManualClock } from '../../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import { openCortex } from './cortex.ts';
import { embeddingEndpoint } from './embedding-endpoint.ts';
import { type MemoryOptions, openMemory, openMemoryOrWarn } from './open-memory.ts';
import { CLOCK_START, claimed, doneTurn, from, note } from './testing/cortex-bench.ts';
import { embeddingServer, refusingWith } from './testing/embedding-endpoint.ts';

function optionsFor(t: TestContext, members: Partial<MemoryOptions> = {}): MemoryOptions {
  return {
    dataDir: temporaryFolder(t),
    clock: new ManualClock(CLOCK_START),
    log: silentLogger,
    turns: { turn: () => undefined },
    ...members,
  };
}

function opened(t: TestContext, members: Partial<MemoryOptions> = {}) {
  const memory = openMemory(optionsFor(t, members));
  t.after(() => memory.close());
  return memory;
}

test('the digest shows the findings and the profile, each memory once', async (t) => {
  const memory = opened(t);
  await memory.remember(
    [
      note('The user prefers short answers', { kind: 'preference', salience: 0.9 }),
      note('The user wants to run a marathon', { kind: 'goal' }),
      note('The airdrop stopped at holder 240 of 512'),
      claimed('home town', 'Lisbon'),
      note('The moon landing was in 1969'),
    ],
    from('t1'),
  );
  const digest = await memory.digest('airdrop, marathon');
  assert.equal(digest.split('marathon').length, 2);
  assert.match(digest, /holder 240 of 512[\s\S]*What you know about the person[\s\S]*short answers[\s\S]*Lisbon/);
  assert.doesNotMatch(digest, /moon/);
  assert.match(await memory.digest(undefined), /^What you remember that matters most\.[\s\S]*short answers/);
  assert.match(memory.profile()!, /short answers[\s\S]*marathon[\s\S]*Lisbon/);
  assert.doesNotMatch(memory.profile()!, /moon|airdrop/);
});

test('relevant memories leave out the profile, and nothing is relevant to an empty turn', async (t) => {
  const memory = opened(t);
  await memory.remember(
    [note('The user prefers the airdrop in batches', { kind: 'preference' }), note('The airdrop is at holder 240')],
    from('t1'),
  );
  const relevant = (await memory.relevantTo(doneTurn('t2', { message: 'how is the airdrop?' }), 5))!;
  assert.match(relevant, /holder 240/);
  assert.doesNotMatch(relevant, /batches/);
  assert.match((await memory.relevantTo({ message: 'go on', label: 'airdrop' }, 5))!, /holder 240/);
  assert.equal(await memory.relevantTo({ message: ' ' }, 5), undefined);
  assert.equal(await memory.relevantTo({ message: 'quantum chromodynamics' }, 5), undefined);
});

test('an empty memory says that it is empty', async (t) => {
  const memory = opened(t);
  assert.equal(await memory.digest('anything'), 'You remember nothing about this.');
  assert.equal(memory.profile(), undefined);
  assert.deepEqual(memory.warnings(), []);
  assert.equal(memory.learner, undefined, 'there is no model to learn with');
});

test('a file that is not a database leaves Neo without memory, with the reason, and stays unchanged', (t) => {
  const options = optionsFor(t);
  const path = join(options.dataDir, 'cortex.db');
  writeFileSync(path, 'this is no database'.repeat(1000));
  const { memory, warnings } = openMemoryOrWarn(options);
  assert.equal(memory, undefined);
  assert.match(warnings[0]!, /^Neo runs without memory: .*cortex\.db is damaged .*left untouched/);
  assert.ok(readFileSync(path, 'utf8').startsWith('this is no database'));
});

test('damage that appears only later loses memory and not the turn', async (t) => {
  const options = optionsFor(t);
  const path = join(options.dataDir, 'cortex.db');
  const writer = openCortex({ path, clock: options.clock });
  const items = Array.from({ length: 3000 }, (_, at) => note(`The user bought item${at} at the market in the town`));
  await writer.remember(items, from('t1'));
  // Empties the write-ahead log into the file.
  await writer.forget([]);
  const memory = openMemory(options);
  t.after(() => memory.close());
  await writer.close();
  const file = openSync(path, 'r+');
  for (let at = 4096; at < statSync(path).size; at += 4096) writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, at);
  closeSync(file);
  assert.equal(await memory.relevantTo({ message: 'item12' }, 5), undefined);
  memory.profile();
  assert.match(memory.warnings()[0]!, /^memory cannot be read: the database file is damaged/);
  await assert.rejects(memory.digest('item12'), { code: 'unavailable' });
});

test('an unreachable embedding endpoint is a warning, and words still find memories', async (t) => {
  const server = await embeddingServer(t, refusingWith(500));
  const clock = new ManualClock(CLOCK_START);
  const embed = embeddingEndpoint({ baseUrl: server.baseUrl, model: 'e', apiKey: undefined }, clock);
  const memory = opened(t, { clock, embedding: { model: 'e', embed } });
  await memory.remember([note('The user plays the cello')], from('t1'));
  assert.match(await memory.digest('cello'), /plays the cello/);
  assert.match(memory.warnings()[0]!, /only full-text search finds memories/);
});

test('the profile is bounded, and contradicted memories are not in it', async (t) => {
  const memory = opened(t);
  const preferences = Array.from({ length: 60 }, (_, at) => note(`Preference ${at}`, { kind: 'preference' }));
  await memory.remember([...preferences, claimed('home town', 'Porto')], from('t1', CLOCK_START));
  await memory.remember([claimed('home town', 'Lisbon')], from('t2', CLOCK_START + 1));
  const profile = memory.profile()!;
  assert.ok(profile.split('\n').length < 30);
  assert.match(profile, /Lisbon/);
  assert.doesNotMatch(profile, /Porto/);
});
