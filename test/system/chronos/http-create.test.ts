import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createHttpBench, refused } from './http-bench.ts';

const once = { kind: 'once', wake_message: 'hello', delay_seconds: 60 };
const cron = { kind: 'cron', wake_message: 'hello', cron_expr: '0 9 * * 1-5' };

describe('creating an alarm', () => {
  test('answers when it will fire, shows it on request, and notifies the dispatcher', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const { status, data } = await ada.call('POST', '/v1/alarms', { body: once });
    assert.equal(status, 200);
    assert.match(data.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const reading = { text: 'in 1 min', timezone: 'UTC', next: ['2026-06-15T08:11:00+00:00'] };
    const next_fire_at = '2026-06-15T08:11:00.000Z';
    assert.deepEqual(data, { id: data.id, next_fire_at, status: 'active', deduped: false, reading });
    assert.deepEqual(bench.due, [bench.clock.now() + 60_000]);
    const shown = await ada.call('GET', `/v1/alarms/${data.id}`);
    assert.equal(shown.data.next_fire_at, data.next_fire_at);
    assert.equal(shown.data.created_at, '2026-06-15T08:10:00.000Z');
  });

  test('message and payload come back byte for byte', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const payload = '{ "b": 12345678901234567890, "a":[1.0,1e400,-0, 0.1000], "10":1, "9":2 }';
    const message = ' \\u0000\\u0007 ünï 日本 👩‍🚀 \\u2028\\ud83d\\ude00 \\r\\n  ';
    const body = `{"kind":"once","delay_seconds":60,"payload":${payload},"wake_message":"${message}"}`;
    const { data } = await ada.call('POST', '/v1/alarms', { body });
    const { text, data: view } = await ada.call('GET', `/v1/alarms/${data.id}`);
    assert.ok(text.includes(`"payload":${payload},`), text);
    assert.equal(view.wake_message, JSON.parse(`"${message}"`));
    const list = await ada.call('GET', '/v1/alarms');
    assert.ok(list.text.includes(`"payload":${payload},`));
  });

  test('every kind of payload, and none, are distinguished', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    for (const payload of ['null', 'false', '0', '""', '[]', '{}', '"\\u0000"']) {
      const body = `{"kind":"once","delay_seconds":60,"wake_message":"x","payload":${payload}}`;
      const { data } = await ada.call('POST', '/v1/alarms', { body });
      const { text } = await ada.call('GET', `/v1/alarms/${data.id}`);
      assert.ok(text.includes(`"payload":${payload},`), text);
    }
    const { text } = await ada.call('GET', `/v1/alarms/${await ada.set()}`);
    assert.ok(!text.includes('"payload"'));
  });

  const refusals: [name: string, body: unknown, message: string | RegExp, headers?: Record<string, string>][] = [
    ['no body', undefined, 'the body must be a JSON object (got nothing)'],
    ['not JSON', '{"kind":', /^the body must be a JSON object \(/],
    ['an array', '[]', 'the body must be a JSON object (got an array)'],
    ['an unknown field', { ...once, wake: 1 }, /^unknown field "wake"; allowed here: kind, wake_message, label, /],
    ['an unknown kind', { ...once, kind: 'often' }, 'kind must be one of once, cron, rrule, event (got "often")'],
    [
      'no time',
      { wake_message: 'x' },
      'an alarm needs a time: when in words, delay_seconds, fire_at, cron_expr or rrule; or event, after or expect',
    ],
    ['no message', { kind: 'once', delay_seconds: 60 }, 'wake_message is required'],
    ['an empty message', { ...once, wake_message: '' }, 'wake_message must not be empty (got "")'],
    [
      'a long message',
      { ...once, wake_message: '€'.repeat(22_000) },
      /^wake_message must be at most 65536 bytes of UTF-8, it has 66000 \(got /,
    ],
    [
      'half a surrogate pair',
      '{"kind":"once","delay_seconds":60,"wake_message":"\\ud83d"}',
      /^wake_message must be well-formed Unicode/,
    ],
    [
      'half a surrogate pair in the label',
      '{"kind":"once","delay_seconds":60,"wake_message":"x","label":"\\udc00"}',
      /^label must be well-formed Unicode without NUL/,
    ],
    ['a NUL in the label', { ...once, label: 'a\0b' }, /^label must be well-formed Unicode without NUL/],
    [
      'a NUL in the key',
      { ...once, idempotency_key: '\0' },
      /^idempotency_key must be well-formed Unicode without NUL/,
    ],
    ['a long label', { ...once, label: 'x'.repeat(201) }, /^label must have at most 200 characters/],
    ['an empty key', { ...once, idempotency_key: '' }, /^idempotency_key must have at least 1 character/],
    ['text for a number', { ...once, delay_seconds: '60' }, 'delay_seconds must be a number (got "60")'],
    ['a negative delay', { ...once, delay_seconds: -5 }, 'delay_seconds must be at least 1 (got -5)'],
    ['a delay past ten years', { ...once, delay_seconds: 4e8 }, /^delay_seconds must be at most 316224000/],
    [
      'an instant without an offset',
      { kind: 'once', wake_message: 'x', fire_at: '2026-07-01T09:00:00' },
      /^fire_at must be an RFC 3339 instant with an offset/,
    ],
    [
      'an instant that does not exist',
      { kind: 'once', wake_message: 'x', fire_at: '2026-02-30T09:00:00Z' },
      /^fire_at must be an RFC 3339 instant/,
    ],
    [
      'a past instant',
      { kind: 'once', wake_message: 'x', fire_at: '2020-01-01T00:00:00Z' },
      /^fire_at must be in the future/,
    ],
    ['both instants', { ...once, fire_at: '2027-01-01T00:00:00Z' }, /^delay_seconds and fire_at exclude each other/],
    ['an impossible expression', { ...cron, cron_expr: '61 * * * *' }, /^cron_expr\b.*61/],
    ['an expression that never matches', { ...cron, cron_expr: '0 0 30 2 *' }, /^cron_expr\b/],
    ['an unknown zone', { ...cron, timezone: 'Mars/Olympus' }, /^timezone\b.*Mars\/Olympus/],
    ['a short interval', { ...cron, cron_expr: '@every 1s' }, /^cron_expr must leave at least 10 seconds/],
    [
      'a conversation id with spaces',
      { ...once, conversation_id: 'a b' },
      'conversation_id must be 1 to 128 of A-Z a-z 0-9 . _ : -, and not dots alone (got "a b")',
    ],
    ['zero failures', { ...once, max_failures: 0 }, 'max_failures must be at least 1 (got 0)'],
    ['half a failure', { ...once, max_failures: 1.5 }, /^max_failures must be /],
    ['too much jitter', { ...once, jitter_seconds: 3601 }, 'jitter_seconds must be at most 3600 (got 3601)'],
    [
      'a large payload',
      `{"kind":"once","delay_seconds":60,"wake_message":"x","payload":"${'x'.repeat(65_536)}"}`,
      /^payload must be at most 65536 bytes of JSON, it has 65538/,
    ],
    [
      'another content type',
      JSON.stringify(once),
      /^content-type must be application\/json/,
      { 'content-type': 'text/plain' },
    ],
    [
      'bytes that are no UTF-8',
      Buffer.from('7b226b223a22ff227d', 'hex'),
      'the body must be UTF-8; it contains invalid bytes',
    ],
  ];
  test('each fault is named, with its value and the allowed values', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    for (const [name, body, message, headers] of refusals) {
      const answer = await ada.call('POST', '/v1/alarms', headers ? { body, headers } : { body });
      assert.equal(answer.status, 400, `${name}: ${answer.text}`);
      refused(answer, 400, 'invalid_request', message);
      assert.equal(answer.error.retryable, false);
    }
    const large = await ada.call('POST', '/v1/alarms', { body: { ...once, wake_message: 'x'.repeat(300_000) } });
    refused(large, 413, 'invalid_request', 'the body must be at most 262144 bytes');
    refused(await ada.call('POST', '/v1/alarms?dry=1', { body: once }), 400, 'invalid_request', 'unknown field "dry"');
    assert.equal((await ada.call('GET', '/v1/alarms')).data.count, 0);
    assert.deepEqual(bench.due, []);
  });

  test('an owner has a limit, and cancelled alarms free it', async (t) => {
    const bench = await createHttpBench(t, { limits: { maxActiveAlarms: 3 } });
    const ada = await bench.agent('ada');
    const bea = await bench.agent('bea');
    const ids = [await ada.set(), await ada.set(), await ada.set({ idempotency_key: 'k' })];
    await ada.call('POST', `/v1/alarms/${ids[0]}/pause`);
    const answer = await ada.call('POST', '/v1/alarms', { body: once });
    refused(
      answer,
      429,
      'rate_limited',
      'you have 3 waiting alarms, the allowed maximum; cancel some before you set more',
    );
    assert.equal(answer.error.retryable, false);
    const repeated = await ada.call('POST', '/v1/alarms', {
      body: { ...once, delay_seconds: 3600, idempotency_key: 'k' },
    });
    assert.equal(repeated.data.deduped, true);
    await bea.set();
    await ada.call('DELETE', `/v1/alarms/${ids[1]}`);
    await ada.set();
  });

  test('ids sort by creation, within a millisecond and when the wall clock is set back', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const ids: string[] = [];
    for (let n = 0; n < 30; n++) {
      ids.push(await ada.set());
      if (n === 10) bench.clock.jump(-60_000);
      if (n === 20) bench.clock.jump(120_000);
    }
    assert.deepEqual(ids, [...ids].sort());
    const { data } = await ada.call('GET', '/v1/alarms');
    assert.deepEqual(
      data.alarms.map(({ id }) => id),
      [...ids].reverse(),
    );
  });
});

describe('repeating a create', () => {
  test('the same definition under the same key is the same alarm', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    for (const body of [
      { ...once, idempotency_key: 'a', payload: { n: 1 } },
      { ...cron, idempotency_key: 'b' },
      { kind: 'once', wake_message: 'x', fire_at: '2026-06-15T09:00:00Z', idempotency_key: 'c' },
    ]) {
      const first = await ada.call('POST', '/v1/alarms', { body });
      await bench.clock.advance(1000);
      const again = await ada.call('POST', '/v1/alarms', { body });
      assert.equal(again.status, 200);
      // What was a delay is an instant by now.
      const { text } = again.data.reading;
      assert.deepEqual(again.data, { ...first.data, deduped: true, reading: { ...first.data.reading, text } });
    }
    assert.equal((await ada.call('GET', '/v1/alarms')).data.count, 3);
  });

  test('it is still the same when its due time has passed or it has fired', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const body = { kind: 'once', wake_message: 'x', fire_at: '2026-06-15T08:10:01Z', idempotency_key: 'k' };
    const first = await ada.call('POST', '/v1/alarms', { body });
    await bench.clock.advance(5000);
    const again = (await ada.call('POST', '/v1/alarms', { body })).data;
    const passed = { text: 'Mon 15 Jun 08:10:01 in UTC', timezone: 'UTC', next: [] };
    assert.deepEqual(again, { ...first.data, deduped: true, reading: passed });
    await bench.store.update('ada', first.data.id, ({ alarm }) => ({
      alarm: { ...alarm, status: 'fired' },
      occurrences: [],
    }));
    const fired = await ada.call('POST', '/v1/alarms', { body });
    assert.deepEqual(fired.data, { id: first.data.id, status: 'fired', deduped: true, reading: passed });
    refused(
      await ada.call('POST', '/v1/alarms', { body: { ...body, label: 'l' } }),
      409,
      'conflict',
      /differs in label;/,
    );
    refused(
      await ada.call('POST', '/v1/alarms', { body: { ...body, idempotency_key: 'k2' } }),
      400,
      'invalid_request',
      /^fire_at must be in the future/,
    );
  });

  test('another definition under the same key is a conflict that names the differences', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const id = await ada.set({ idempotency_key: 'k' });
    const answer = await ada.call('POST', '/v1/alarms', {
      body: { ...once, wake_message: 'bye', idempotency_key: 'k' },
    });
    refused(
      answer,
      409,
      'conflict',
      `idempotency_key "k" belongs to alarm ${id}, which differs in wake_message, delay_seconds; use another key, or edit that alarm`,
    );
  });

  test('a cancelled alarm releases its key, and keys of two owners are two keys', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const bea = await bench.agent('bea');
    const first = await ada.set({ idempotency_key: 'k' });
    assert.notEqual(await bea.set({ idempotency_key: 'k' }), first);
    await ada.call('DELETE', `/v1/alarms/${first}`);
    const second = await ada.set({ idempotency_key: 'k' });
    assert.notEqual(second, first);
    assert.equal(await ada.set({ idempotency_key: 'k' }), second);
  });

  test('fifty at once are one alarm', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const body = { ...once, idempotency_key: 'k' };
    const answers = await Promise.all(Array.from({ length: 50 }, () => ada.call('POST', '/v1/alarms', { body })));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.equal(new Set(answers.map(({ data }) => data.id)).size, 1);
    assert.equal(answers.filter(({ data }) => !data.deduped).length, 1);
  });
});
