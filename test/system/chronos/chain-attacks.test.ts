/** Attacks by chains: circles, floods of followers, and alarms of others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timedBy } from '../../../src/chronos/alarm/cause.ts';
import { followedBy } from '../../../src/chronos/alarm/chain.ts';
import { encodeOptions, optionsOf } from '../../../src/chronos/alarm/options.ts';
import { personProof } from '../../../src/kit/identity/person-rights.ts';
import { ADMIN, createHttpBench } from './http-bench.ts';

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

test('a refused circle gives a command of the agent no rights of the person', async (t) => {
  let circle: ((id: string) => Promise<unknown>) | undefined;
  const bench = await createHttpBench(t, {
    storeAround: (store) => ({
      ...store,
      async update(...given) {
        const state = await store.update(...given);
        const other = circle;
        circle = undefined;
        await other?.(given[1]);
        return state;
      },
    }),
  });
  const ada = await bench.agent('ada');
  const person = async (path: string, body: object) => {
    const text = JSON.stringify(body);
    const signed = { method: 'POST', path, body: text };
    const proof = personProof('Ada', signed, { secret: ADMIN, now: bench.clock.now() });
    const answer = await ada.call('POST', path, { body: text, headers: { 'x-chronos-person': proof } });
    assert.equal(answer.status, 200, answer.text);
    return answer.data.id;
  };
  const event = { source: 'webhook' };
  const edits = [
    [{ run: { argv: ['evil.sh'] } }, false],
    [{ wake_message: 'evil' }, false],
    [{ check: { command: { argv: ['evil.sh'] } } }, false],
    [{}, true],
  ] as const;
  for (const [more, isStillOfPerson] of edits) {
    const first = await person('/v1/alarms', { wake_message: 'x', event });
    const check = { command: { argv: ['./is-new.sh'] } };
    const id = await person('/v1/alarms', { wake_message: 'x', event, check, run: { argv: ['./backup.sh'] } });
    // Another replica closes the circle after this one has looked for it.
    circle = () =>
      bench.store.update('ada', first, ({ alarm, occurrences }) => {
        const options = encodeOptions({ ...optionsOf(alarm), event: null, after: { alarm: id } });
        return { alarm: { ...alarm, options }, occurrences };
      });
    const patch = { event: { source: 'alarm', alarm: first }, ...more };
    const answer = await ada.call('PATCH', `/v1/alarms/${id}`, { body: patch });
    assert.match(answer.error.message, /circle/);
    const { alarm } = (await bench.store.get('ada', id))!;
    const { run_by_person, check_state } = optionsOf(alarm);
    assert.equal(run_by_person ?? false, isStillOfPerson, JSON.stringify(more));
    assert.equal(check_state?.byPerson ?? false, isStillOfPerson, JSON.stringify(more));
    assert.equal(timedBy(alarm), isStillOfPerson ? 'Ada' : null, JSON.stringify(more));
  }
});
