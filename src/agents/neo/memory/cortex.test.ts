import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { anyCharacter } from '../../../../test/support/random/characters.ts';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { ManualClock } from '../../../kit/clock/testing/manual-clock.ts';
import { type Cortex, openCortex } from './cortex.ts';
import type { StoredMemory } from './memory.ts';
import { recall } from './recall.ts';
import { CLOCK_START, claimed, cortexBench, from, note } from './testing/cortex-bench.ts';

const DAY = 86_400_000;
const everything = (cortex: Cortex) => cortex.list({ superseded: true, limit: 10_000 });
const current = (cortex: Cortex) => cortex.list({ superseded: false, limit: 10_000 }).map(({ text }) => text);
const recalled = async (cortex: Cortex, query: string, limit = 10) =>
  (await recall({ query, limit, now: CLOCK_START }, { cortex, semantics: undefined })).map(({ text }) => text);

test('a memory is stored with its source, and is there after the file was closed', async (t) => {
  const { cortex, open } = cortexBench(t);
  const item = claimed('home town', 'Lisbon', 'The user lives in Lisbon since 2019, flat 0xAbC7.');
  const [remembered] = await cortex.remember([item], from('t1'));
  assert.equal(remembered?.outcome, 'new');
  await cortex.close();
  const [kept] = everything(open());
  assert.deepEqual(kept, {
    ...item,
    seq: 1,
    id: remembered!.id,
    strength: 1,
    createdAt: CLOCK_START,
    lastSeenAt: CLOCK_START,
    turnId: 't1',
    conversationId: 'c1',
  });
});

test('the same text with other letter case is strengthened, once for each turn', async (t) => {
  const { cortex } = cortexBench(t);
  await cortex.remember([note('The user drinks oat milk.')], from('t1'));
  const [again] = await cortex.remember([note('user drinks Oat Milk')], from('t2', CLOCK_START + DAY));
  const [repeated] = await cortex.remember([note('user drinks Oat Milk')], from('t2', CLOCK_START + DAY));
  assert.deepEqual([again!.outcome, repeated!.outcome], ['strengthened', 'known']);
  const [only, ...others] = everything(cortex);
  assert.deepEqual(others, []);
  assert.deepEqual([only!.strength, only!.lastSeenAt, only!.salience], [2, CLOCK_START + DAY, 0.55]);
  assert.deepEqual(
    cortex.turnsOf(only!.seq).map(({ turnId }) => turnId),
    ['t1', 't2'],
  );
});

test('a paraphrase of the same claim with the same value is the same memory', async (t) => {
  const { cortex } = cortexBench(t);
  await cortex.remember([claimed('favourite editor', 'Vim')], from('t1'));
  const paraphrase = claimed('Favourite editor', 'vim', 'Of all editors the person likes Vim most');
  assert.equal((await cortex.remember([paraphrase], from('t2')))[0]!.outcome, 'strengthened');
  assert.deepEqual(current(cortex), ["The user's favourite editor is Vim."]);
});

test('of contradictory memories the newest holds; the others are kept, marked with it and found after it', async (t) => {
  const { cortex } = cortexBench(t);
  await cortex.remember([claimed('home town', 'Porto')], from('t1', CLOCK_START - 9 * DAY));
  await cortex.remember([claimed('home town', 'Lisbon')], from('t2', CLOCK_START));
  // An older turn with late learning contradicts nothing newer.
  await cortex.remember([claimed('home town', 'Faro')], from('t0', CLOCK_START - 20 * DAY));
  assert.deepEqual(current(cortex), ["The user's home town is Lisbon."]);
  const lisbon = everything(cortex).find(({ text }) => text.includes('Lisbon'))!;
  for (const { text, supersededBy } of everything(cortex))
    assert.equal(supersededBy, text.includes('Lisbon') ? undefined : lisbon.id);
  assert.match((await recalled(cortex, 'home town Porto Lisbon'))[0]!, /Lisbon/);
  assert.equal((await recalled(cortex, 'home town')).length, 3);
});

test('a contradicted memory holds again when it is learned again', async (t) => {
  const { cortex } = cortexBench(t);
  await cortex.remember([claimed('home town', 'Porto')], from('t1', CLOCK_START));
  await cortex.remember([claimed('home town', 'Lisbon')], from('t2', CLOCK_START + DAY));
  await cortex.remember([claimed('home town', 'Porto')], from('t3', CLOCK_START + 2 * DAY));
  assert.deepEqual(current(cortex), ["The user's home town is Porto."]);
});

test('a forgotten memory is removed from every table and from the bytes of the file', async (t) => {
  const { cortex, path } = cortexBench(t);
  const others = Array.from({ length: 50 }, (_, at) => note(`Some other thing number ${at}`));
  await cortex.remember([claimed('home town', 'Porto')], from('t1'));
  await cortex.remember([...others, claimed('home town', 'Xyzzyville', 'The user moved to Xyzzyville')], from('t2'));
  const secret = everything(cortex).find(({ text }) => text.includes('Xyzzyville'))!;
  assert.equal(await cortex.forget([secret.id, secret.id, 'no-such-id']), 1);
  assert.deepEqual(await recalled(cortex, 'Xyzzyville'), []);
  assert.ok(current(cortex).includes("The user's home town is Porto."), 'what it contradicted holds again');
  assert.doesNotMatch(readFileSync(path, 'latin1'), /xyzzyville/i);
  assert.doesNotMatch(readFileSync(`${path}-wal`, 'latin1'), /xyzzyville/i);
});

test('another process that writes and forgets is consistent with this one', async (t) => {
  const { cortex, open } = cortexBench(t);
  const other = open();
  await cortex.remember([note('The user plays the cello')], from('t1'));
  assert.deepEqual(await recalled(other, 'cello'), ['The user plays the cello']);
  await other.forget(everything(other).map(({ id }) => id));
  assert.deepEqual(await recalled(cortex, 'cello'), []);
  assert.equal((await cortex.remember([note('The user plays the cello')], from('t2')))[0]!.outcome, 'new');
});

test('processes that open a new file concurrently all succeed', async (t) => {
  const entry = fileURLToPath(import.meta.resolve('./testing/opener.fixture.ts'));
  const open = promisify(execFile);
  const path = join(temporaryFolder(t), 'cortex.db');
  const output = await Promise.all(Array.from({ length: 4 }, () => open(process.execPath, [entry, path])));
  assert.deepEqual(
    output.map(({ stdout }) => stdout),
    ['ok', 'ok', 'ok', 'ok'],
  );
  const cortex = openCortex({ path, clock: new ManualClock() });
  t.after(() => cortex.close());
  assert.equal(cortex.count(), 4);
});

test('a full disk loses only the memories being written', (t) => {
  const entry = fileURLToPath(import.meta.resolve('./testing/full-disk.fixture.ts'));
  const path = join(temporaryFolder(t), 'cortex.db');
  // The shell's file size limit simulates a full disk: every file ends at 512 KiB.
  const words = ['-c', 'ulimit -f 1024; exec "$0" "$@"', process.execPath, entry, path];
  const output = JSON.parse(spawnSync('/bin/sh', words, { encoding: 'utf8' }).stdout);
  assert.deepEqual([output.error.code, output.error.retryable], ['unavailable', true]);
  assert.equal(output.found, 1, 'it goes on to answer');
  const cortex = openCortex({ path, clock: new ManualClock() });
  t.after(() => cortex.close());
  assert.equal(cortex.count(), output.acknowledged, 'acknowledged memories are there, and half a batch is not');
});

test('memories are found in every script, by emoji, by identifier and by another form of a word', async (t) => {
  const { cortex } = cortexBench(t);
  const texts = [
    'The user likes long walks',
    '用户每天早上喜欢喝咖啡',
    'ユーザーは犬を飼っている',
    '사용자는 커피를 좋아합니다',
    'ผู้ใช้ชอบดื่มกาแฟ',
    'उपयोगकर्ता को चाय पसंद है',
    'The user celebrates with 🍕',
    'The airdrop contract is 0x52908400098527886E0F7030069857D2E4169EE7',
    'The café is on Zoë’s street',
  ];
  await cortex.remember(
    texts.map((text) => note(text)),
    from('t1'),
  );
  for (const [query, at] of [
    ['liking a walk', 0],
    ['咖啡', 1],
    ['犬', 2],
    ['커피', 3],
    ['กาแฟ', 4],
    ['चाय', 5],
    ['🍕?', 6],
    ['contract 0x52908400098527886e0f7030069857d2e4169ee7', 7],
    ['cafe zoe', 8],
  ] as const)
    assert.equal((await recalled(cortex, query))[0], texts[at], query);
});

test('every query is accepted: syntax, NUL, half characters, a megabyte', async (t) => {
  const { cortex } = cortexBench(t);
  await cortex.remember([note('The user likes tea')], from('t1'));
  const strange = [
    '"',
    '" OR *',
    'search:tea AND (',
    'NEAR(tea, 5)',
    '^tea*',
    '-tea',
    '\0tea\0',
    'tea\ud800',
    '🍵',
    "';--",
    '{tea}',
  ];
  for (const query of strange) assert.ok((await recalled(cortex, query)).length <= 1, query);
  for (const query of ['^tea*', '-tea', '\0tea\0', 'tea\ud800', 'search:tea AND ('])
    assert.deepEqual(await recalled(cortex, query), ['The user likes tea'], query);
  assert.equal((await recalled(cortex, `tea ${'x '.repeat(512 * 1024)}`)).length, 1);
  assert.deepEqual(
    await recalled(cortex, '   '),
    ['The user likes tea'],
    'a blank query returns the most important memories',
  );
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: anyCharacter, maxLength: 60 }), async (query) => {
      await recalled(cortex, query);
    }),
    { numRuns: 50 },
  );
});

test('an invalid memory is refused by name, and nothing of the batch is stored', async (t) => {
  const { cortex } = cortexBench(t);
  for (const [item, message] of [
    [note(' '), /^text must not be empty/],
    [note('x'.repeat(1001)), /^text must be at most 1000 characters, it has 1001/],
    [note('a\0b'), /^text must be well-formed/],
    [note('a\ud800'), /^text must be well-formed/],
    [note('a', { salience: Number.NaN }), /^salience must be from 0 to 1/],
    [note('a', { kind: 'rumour' as 'fact' }), /^kind must be one of fact/],
    [note('a', { claim: { subject: 'x', attribute: '', value: 'y' } }), /^attribute must not be empty/],
  ] as const)
    await assert.rejects(cortex.remember([note('fine'), item], from('t1')), { code: 'invalid_request', message });
  assert.equal(cortex.count(), 0);
});

test('with many memories of the same words the rare word decides, and frequent words alone find the newest', async (t) => {
  const { cortex } = cortexBench(t);
  const items = Array.from({ length: 2000 }, (_, at) => note(`The user bought item${at} at the market`));
  await cortex.remember(items, from('t1'));
  assert.equal((await recalled(cortex, 'what did the user buy at the market, item1234 or so'))[0], items[1234]!.text);
  const found = await recalled(cortex, 'user market');
  assert.equal(found.length, 10);
  assert.equal(found[0], items[1999]!.text);
});

/** Memories that may be learned in any order: three claims with three values each, and plain notes. */
const step = fc.record({
  text: fc.constantFrom('', 'The user sings', 'the user SINGS!', 'The user does not sing'),
  attribute: fc.constantFrom('town', 'editor', 'car'),
  value: fc.constantFrom('A', 'B', 'C'),
  turn: fc.integer({ min: 1, max: 12 }),
  forget: fc.boolean(),
});

test('for any order of learning and forgetting: no duplicates, and of each claim only the newest holds', async (t) => {
  const { cortex } = cortexBench(t);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      await cortex.forget(everything(cortex).map(({ id }) => id));
      for (const { text, attribute, value, turn, forget } of steps) {
        const item = text === '' ? claimed(attribute, value) : note(text);
        const [one] = await cortex.remember([item], from(`t${turn}`, CLOCK_START + turn * DAY));
        const [again] = await cortex.remember([item], from(`t${turn}`, CLOCK_START + turn * DAY));
        assert.deepEqual(again, { id: one!.id, outcome: 'known' });
        if (forget && turn % 4 === 0) await cortex.forget([one!.id]);
      }
      const all = everything(cortex);
      assert.equal(new Set(all.map(({ text }) => text.toLowerCase().replace('!', ''))).size, all.length);
      const groups = Map.groupBy(
        all.filter(({ claim }) => claim),
        ({ claim }) => claim!.attribute,
      );
      for (const group of groups.values()) {
        const holding = group.filter(({ supersededBy }) => supersededBy === undefined);
        assert.equal(holding.length, 1);
        const newest = Math.max(...group.map(({ lastSeenAt }: StoredMemory) => lastSeenAt));
        assert.equal(holding[0]!.lastSeenAt, newest);
        for (const { supersededBy } of group) assert.ok([undefined, holding[0]!.id].includes(supersededBy));
      }
    }),
    { numRuns: 25 },
  );
});
