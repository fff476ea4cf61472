import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { EventFeed } from './event-feed.ts';
import type { FeedSource } from './feed-source.ts';

type Change = { owner: string; at: number; type: string };
type Seen = { type: string; types?: readonly string[] };

/** A feed of changes that a test stores. */
function openFeed() {
  const clock = new ManualClock();
  const stored: Change[] = [];
  let report: (changes: readonly Change[]) => void = () => {};
  const source: FeedSource<Change, Seen> = {
    async follow({ onChanges }) {
      report = onChanges;
      return { refresh: async () => {} };
    },
    changesSince: async (owner, since) => stored.filter((change) => change.owner === owner && change.at >= since),
    lost: (owner, at) => ({ owner, at, type: 'reset' }),
    keyOf: ({ type, at }) => `${type} ${at}`,
    eventOf: ({ type }) => ({ type }),
    typeOf: ({ type }) => type,
    mergedEventOf: (types) => ({ type: 'changed', types }),
  };
  const feed = new EventFeed({ source, clock, name: 'the daemon' });
  const change = (type: string, owner = 'ada') => {
    const made = { owner, at: clock.now(), type };
    stored.push(made);
    report([made]);
  };
  const open = async (after?: string, everyMs?: number, onId: (id: string) => void = () => {}) => {
    const reader = await feed.open('ada', after, everyMs === undefined ? undefined : { everyMs });
    const seen: Seen[] = [];
    let last = reader.id;
    reader.onItems(() => {
      for (const { id, event } of reader.take()) {
        seen.push(event);
        last = id;
        onId(id);
      }
    });
    return { seen, last: () => last, end: () => reader.end() };
  };
  return { clock, change, open };
}

test('merged events: the first soon after a change, then one in each interval, and none without a change', async () => {
  const { clock, change, open } = openFeed();
  const { seen } = await open(undefined, 1000);
  for (let at = 0; at < 3000; at += 10) {
    change(at < 1500 ? 'one' : 'two');
    change('three', 'eve');
    await clock.advance(10);
    if (at === 80) assert.equal(seen.length, 1);
  }
  await clock.advance(2000);
  assert.deepEqual(
    seen.map(({ types }) => types),
    [['one'], ['one'], ['one', 'two'], ['two']],
  );
  await clock.advance(60_000);
  assert.equal(seen.length, 4);
});

test('a merged stream keeps no changes, and a stream of each event resumes from the store beside it', async () => {
  const { clock, change, open } = openFeed();
  const merged = await open(undefined, 1000);
  await clock.advance(61_000);
  const beginning = merged.last();
  change('one');
  await clock.advance(100);
  assert.deepEqual(merged.seen, [{ type: 'changed', types: ['one'] }]);
  const each = await open(beginning);
  assert.deepEqual(each.seen, [{ type: 'one' }]);
  change('two');
  await clock.advance(200);
  assert.deepEqual(each.seen, [{ type: 'one' }, { type: 'two' }]);
  const late = await open(merged.last(), 1000);
  assert.deepEqual(late.seen, [{ type: 'changed', types: ['two'] }]);
});

test('a cursor of a dropped log is not a position of a later log of the owner', async () => {
  for (const everyMs of [undefined, 1000]) {
    const { clock, change, open } = openFeed();
    const first = await open(undefined, everyMs);
    change('one');
    await clock.advance(2000);
    first.end();
    await clock.advance(100_000);
    change('missed');
    const second = await open(undefined, everyMs);
    change('two');
    change('two');
    await clock.advance(2000);
    const resumed = await open(first.last(), everyMs);
    const types = resumed.seen.flatMap((event) => event.types ?? [event.type]);
    assert.ok(types.includes('missed') && types.includes('two'), `${types}`);
    second.end();
  }
});

test('a reader that is interrupted between the events that it had missed gets all of them again', async () => {
  const { clock, change, open } = openFeed();
  const ids: string[] = [];
  const first = await open();
  const before = first.last();
  first.end();
  await clock.advance(100_000);
  for (const type of ['one', 'two', 'three']) change(type);
  const resumed = await open(before, undefined, (id) => ids.push(id));
  assert.deepEqual(
    resumed.seen.map(({ type }) => type),
    ['one', 'two', 'three'],
  );
  // Only the last of them ends the gap.
  assert.deepEqual(ids.slice(0, 2), [before, before]);
  assert.notEqual(ids[2], before);
  assert.deepEqual((await open(ids[1])).seen.length, 3);
  assert.deepEqual((await open(ids[2])).seen.length, 0);
});

test('a stream that was quiet for long resumes from its beginning', async () => {
  const { clock, open } = openFeed();
  const kept = await open();
  await clock.advance(3 * 3_600_000);
  const later = (await open(kept.last())).last();
  kept.end();
  await clock.advance(1000);
  const at = Number(later.split('.')[0]);
  assert.ok(at >= 3 * 3_600_000, later);
});
