/** Attacks by chains: circles, floods of followers, and alarms of others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followedBy } from '../../../src/chronos/alarm/chain.ts';
import { createHttpBench } from './http-bench.ts';

const after = (alarm: string) => ({ kind: 'event', delay_seconds: undefined, after: { alarm } });

test('edits at the same time make no circle', async (t) => {
  // Every read of the store takes a moment, so that the requests see the same state.
  const bench = await createHttpBench(t, {
    storeAround: (store) => ({
      ...store,
      async get(owner, id) {
        const state = await store.get(owner, id);
        await new Promise((resolve) => setTimeout(resolve, 2));
        return state;
      },
    }),
  });
  const ada = await bench.agent('ada');
  const first = await ada.set({});
  const next = async (id: string) => followedBy((await bench.store.get('ada', id))!.alarm)?.id;
  let [circles, attacks] = [0, 0];
  for (const size of [2, 2, 2, 3, 3, 5]) {
    const ids: string[] = [];
    for (let n = 0; n < size; n++) ids.push(await ada.set(after(first)));
    const edits = ids.map((id, n) =>
      ada.call('PATCH', `/v1/alarms/${id}`, { body: { after: { alarm: ids[(n + 1) % size] } } }),
    );
    for (const { status, text } of await Promise.all(edits)) assert.ok([200, 400, 409].includes(status), text);
    const seen = new Set<string>();
    for (let id: string | undefined = ids[0]; id !== undefined; id = await next(id)) {
      if (seen.has(id)) {
        circles++;
        break;
      }
      seen.add(id);
    }
    attacks += size;
  }
  assert.equal(circles, 0);
  // One after the other they are refused by name, and so is an alarm that follows itself.
  const [one, two] = [await ada.set(after(first)), await ada.set(after(first))];
  assert.equal((await ada.call('PATCH', `/v1/alarms/${one}`, { body: { after: { alarm: two } } })).status, 200);
  for (const [id, alarm] of [
    [two, one],
    [one, one],
  ] as const) {
    const answer = await ada.call('PATCH', `/v1/alarms/${id}`, { body: { after: { alarm } } });
    assert.equal(answer.status, 400);
    assert.match(answer.error.message, /circle/);
    attacks++;
  }
  t.diagnostic(`${attacks} attacks`);
});
