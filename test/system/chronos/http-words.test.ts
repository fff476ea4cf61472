/** Times in words over HTTP: what they become, how they are echoed and repeated, and the preview of an alarm. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHttpBench, refused } from './http-bench.ts';

const BERLIN = 'Europe/Berlin';
const HOUR_MS = 3_600_000;
const words = (when: string, more: object = {}) => ({ wake_message: 'hello', when, timezone: BERLIN, ...more });

test('the answers to a create and an edit have the reading', async (t) => {
  const bench = await createHttpBench(t);
  const ada = await bench.agent('ada');
  const { data } = await ada.call('POST', '/v1/alarms', { body: words('every other monday') });
  assert.deepEqual(data.reading, {
    text: 'every 2 weeks on Monday at 09:00 from 2026-06-22 in Europe/Berlin (at 09:00, because no time was given)',
    timezone: BERLIN,
    next: ['2026-06-22T09:00:00+02:00', '2026-07-06T09:00:00+02:00', '2026-07-20T09:00:00+02:00'],
  });
  assert.equal(data.next_fire_at, '2026-06-22T07:00:00.000Z');
  const edited = await ada.call('PATCH', `/v1/alarms/${data.id}`, { body: { when: 'every other friday at 16:00' } });
  assert.equal(edited.data.reading?.text, 'every 2 weeks on Friday at 16:00 from 2026-06-19 in Europe/Berlin');
  assert.deepEqual([edited.data.kind, edited.data.when], ['rrule', 'every other friday at 16:00']);
  const view = await ada.call('GET', `/v1/alarms/${data.id}`);
  assert.equal(view.data.reading, undefined);
  assert.equal(view.data.rrule?.split('\n')[0], 'DTSTART:20260619T160000');
  const labelled = await ada.call('PATCH', `/v1/alarms/${data.id}`, { body: { label: 'x' } });
  assert.equal(labelled.data.reading, undefined);
});

test('words that need a zone, have two readings or are not known set nothing', async (t) => {
  const bench = await createHttpBench(t);
  const ada = await bench.agent('ada');
  const post = (body: object) => ada.call('POST', '/v1/alarms', { body });
  for (const [body, message] of [
    [{ wake_message: 'x', when: 'tomorrow 9am' }, 'when: "tomorrow 9am" needs timezone, such as Europe/Berlin'],
    [
      words('next friday'),
      'when: "next friday" is ambiguous: it can be the coming one or the one after; write "2026-06-19 09:00" or "2026-06-26 09:00"',
    ],
    [words('3/4'), 'when: "3/4" can be two days; write "march 4" or "april 3"'],
    [words('at sunset'), 'when: "sunset" differs each day and place, so an alarm needs a time; write "at 18:00"'],
    [words('every monday at 9', { cron_expr: '@daily' }), 'when and cron_expr both give a time; omit cron_expr'],
  ] as const)
    refused(await post(body), 400, 'invalid_request', message);
  assert.deepEqual((await ada.call('GET', '/v1/alarms')).data.alarms, []);
});

test('a create is recognised when it is repeated after its words have another meaning, or have passed', async (t) => {
  const bench = await createHttpBench(t);
  const ada = await bench.agent('ada');
  const post = (body: object) => ada.call('POST', '/v1/alarms', { body });
  const bodies = ['tomorrow 9am', 'today at 11:00', 'every other monday at 10', 'in 20 minutes'].map((when, n) =>
    words(when, { idempotency_key: `key-${n}` }),
  );
  const first = await Promise.all(bodies.map(post));
  bench.clock.advance(20 * HOUR_MS);
  const again = await Promise.all(bodies.map(post));
  assert.deepEqual(
    again.map(({ data }) => [data.id, data.deduped]),
    first.map(({ data }) => [data.id, true]),
  );
  const other = await post({ ...bodies[1], wake_message: 'other' });
  refused(other, 409, 'conflict', /differs in wake_message/);
  refused(await post({ ...bodies[1], timezone: 'Asia/Tokyo' }), 409, 'conflict', /differs in timezone/);
});

test('a preview answers when an alarm would fire, and stores nothing', async (t) => {
  const bench = await createHttpBench(t);
  const ada = await bench.agent('ada');
  const preview = (body: object) => ada.call('POST', '/v1/alarms/preview', { body });
  const { status, data } = await preview({ when: 'every weekday at 9', timezone: BERLIN, count: 2, overlap: 'skip' });
  assert.equal(status, 200);
  assert.deepEqual(data.occurrences, [
    { at: '2026-06-16T07:00:00.000Z', local: '2026-06-16T09:00:00+02:00' },
    { at: '2026-06-17T07:00:00.000Z', local: '2026-06-17T09:00:00+02:00' },
  ]);
  assert.deepEqual(data.notes, ['an occurrence is skipped while an earlier turn runs']);
  assert.equal(data.reading?.text, 'every weekday at 09:00 in Europe/Berlin');
  refused(await preview({ when: 'tomorrow 9am' }), 400, 'invalid_request', /needs timezone/);
  refused(await preview({ kind: 'cron', cron_expr: '@daily', count: 0 }), 400, 'invalid_request', /count must be/);
  assert.deepEqual((await ada.call('GET', '/v1/alarms')).data.alarms, []);
  assert.deepEqual(bench.due, []);
});
