import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settleFailed } from '../../../src/chronos/alarm/settlement.ts';
import { createHttpBench, refused } from './http-bench.ts';

const NOT_FOUND = 'you have no alarm with this id; alarm_list shows the ones you have';

type Bench = Awaited<ReturnType<typeof createHttpBench>>;

/** Claims due occurrences, as a dispatcher does. */
function claimDue({ store, clock }: Bench) {
  return store.claim({ now: clock.now(), limit: 10, perOwner: 10, inFlight: new Map() });
}

/** Delivers and fails for good. */
async function fail(bench: Bench): Promise<void> {
  const now = bench.clock.now();
  const claims = await claimDue(bench);
  await bench.store.complete(
    claims.map(({ alarm, occurrence: { fireId, fence, scheduledFor, attempt, missedCount } }) => ({
      key: { owner: alarm.owner, alarmId: alarm.id, fireId, fence },
      attempt: {
        fireId,
        alarmId: alarm.id,
        owner: alarm.owner,
        scheduledFor,
        attempt,
        startedAt: now,
        finishedAt: now + 5,
        outcome: 'failed',
        httpStatus: 410,
        error: 'gone',
        missedCount,
        machineReadyMs: null,
        lateBecause: null,
        cause: null,
      },
      settle: (state) => settleFailed(state, fireId, { error: 'gone', final: true, retryAt: () => now }),
    })),
  );
}

test("another owner's alarm does not exist, on any route, and stays unchanged", async (t) => {
  const bench = await createHttpBench(t);
  const ada = await bench.agent('ada');
  const eve = await bench.agent('eve');
  const id = await ada.set();
  const before = (await ada.call('GET', `/v1/alarms/${id}`)).text;
  const missing = '01977777-0000-7000-8000-00000000000f';
  for (const target of [id, missing, id.toUpperCase(), 'x', '%00', `${id}%2f`, "' OR 1=1 --"]) {
    const path = `/v1/alarms/${target.startsWith('%') || target.endsWith('f') ? target : encodeURIComponent(target)}`;
    for (const [method, action, body] of [
      ['GET', ''],
      ['DELETE', ''],
      ['PATCH', '', { label: 'x' }],
      ['POST', '/pause'],
      ['POST', '/resume'],
      ['POST', '/trigger'],
      ['POST', '/redrive'],
      ['GET', '/fires'],
    ] as const)
      refused(await eve.call(method, `${path}${action}`, { body }), 404, 'not_found', NOT_FOUND);
  }
  assert.equal((await ada.call('GET', `/v1/alarms/${id}`)).text, before);
  assert.equal((await eve.call('GET', '/v1/alarms')).data.count, 0);
});

describe('listing', () => {
  test('newest first, page by page, none twice and none omitted while others are set', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const ids: string[] = [];
    for (let n = 0; n < 250; n++) ids.push(await ada.set({ label: String(n) }));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { data } = await ada.call('GET', `/v1/alarms?limit=40${cursor ? `&cursor=${cursor}` : ''}`);
      assert.equal(data.count, data.alarms.length);
      seen.push(...data.alarms.map(({ id }) => id));
      cursor = data.next_cursor;
      await ada.set({ label: 'later' });
    } while (cursor);
    assert.deepEqual(seen, ids.reverse());
    assert.equal((await ada.call('GET', '/v1/alarms')).data.count, 100);
    assert.equal((await ada.call('GET', '/v1/alarms?limit=500')).data.count, 257);
    const whole = await ada.call('GET', '/v1/alarms?limit=257');
    assert.equal(whole.data.next_cursor, undefined, 'no cursor to an empty page');
  });

  test('by status and kind', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const cron = { kind: 'cron', cron_expr: '@daily', delay_seconds: undefined };
    const [single, series, paused, cancelled] = [
      await ada.set(),
      await ada.set(cron),
      await ada.set(cron),
      await ada.set(),
    ];
    await ada.call('POST', `/v1/alarms/${paused}/pause`);
    await ada.call('DELETE', `/v1/alarms/${cancelled}`);
    for (const [query, expected] of [
      ['status=active', [series, single]],
      ['status=paused', [paused]],
      ['status=cancelled', [cancelled]],
      ['status=fired', []],
      ['kind=cron', [paused, series]],
      ['kind=once', [cancelled, single]],
      ['kind=cron&status=active', [series]],
      ['kind=once&status=paused', []],
    ] as const) {
      const { data } = await ada.call('GET', `/v1/alarms?${query}`);
      assert.deepEqual(
        data.alarms.map(({ id }) => id),
        expected,
        query,
      );
    }
    const first = await ada.call('GET', '/v1/alarms?kind=cron&limit=1');
    const second = await ada.call('GET', `/v1/alarms?kind=cron&limit=1&cursor=${first.data.next_cursor}`);
    assert.deepEqual([first.data.alarms[0]?.id, second.data.alarms[0]?.id], [paused, series]);
  });

  test('by a text that they contain, page by page, however few there are', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const wanted: string[] = [];
    for (let n = 0; n < 900; n += 200) {
      wanted.unshift(await ada.set({ label: `Backup ${n}` }));
      await Promise.all(Array.from({ length: 199 }, () => ada.set({ label: 'hay' })));
    }
    const first = await ada.call('GET', '/v1/alarms?text=backup&limit=3');
    const second = await ada.call('GET', `/v1/alarms?text=backup&limit=3&cursor=${first.data.next_cursor}`);
    const ids = [first, second].flatMap(({ data }) => data.alarms.map(({ id }: { id: string }) => id));
    assert.deepEqual(ids, wanted);
    assert.equal(second.data.next_cursor, undefined);
    assert.equal((await ada.call('GET', '/v1/alarms?text=backup&status=failed')).data.count, 0);
  });

  test('by their next fire time', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const eve = await bench.agent('eve');
    await eve.set({ delay_seconds: 5 });
    const ids: string[] = [];
    for (const delay_seconds of [600, 60, 300, 60]) ids.push(await ada.set({ delay_seconds }));
    await ada.call('POST', `/v1/alarms/${await ada.set({ delay_seconds: 1 })}/pause`);
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const { data } = await ada.call('GET', `/v1/alarms?sort=next&limit=1${cursor}`);
      seen.push(...data.alarms.map(({ id }: { id: string }) => id));
      if (data.next_cursor === undefined) break;
      cursor = `&cursor=${data.next_cursor}`;
    }
    assert.deepEqual(seen, [ids[1], ids[3], ids[2], ids[0]]);
    const until = new Date(bench.clock.now() + 299_000).toISOString();
    assert.equal((await ada.call('GET', `/v1/alarms?sort=next&until=${until}`)).data.count, 2);
  });

  test('an invalid query parameter is refused by name', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const id = await ada.set();
    for (const [path, message] of [
      ['?limit=0', 'limit must be a whole number from 1 to 500 (got "0")'],
      ['?limit=501', 'limit must be a whole number from 1 to 500 (got "501")'],
      ['?limit=ten', 'limit must be a whole number from 1 to 500 (got "ten")'],
      ['?status=asleep', 'status must be one of active, paused, fired, cancelled, failed (got "asleep")'],
      ['?owner=eve', 'unknown field "owner"; allowed here: limit, status, kind, cursor, text, sort, until'],
      ['?until=2027-01-01T00:00:00Z', 'until needs sort=next; add that, or omit until'],
      ['?sort=next&text=x', 'text cannot be combined with sort=next, which lists all active alarms; omit one of them'],
      [
        '?sort=next&until=soon',
        'until must be an RFC 3339 instant with an offset, such as 2026-06-15T08:10:00Z (got "soon")',
      ],
      ['?sort=next&cursor=IngI', 'cursor must be the next_cursor of an earlier answer, unchanged'],
      ['?text=', 'text must have at least 1 character (got "")'],
      ['?cursor=x', 'cursor must be the next_cursor of an earlier answer, unchanged'],
      [
        `?cursor=${Buffer.from('{"owner":"eve"}').toString('base64url')}`,
        'cursor must be the next_cursor of an earlier answer, unchanged',
      ],
      [`/${id}?full=1`, 'unknown field "full"'],
      [`/${id}/fires?status=failed`, 'unknown field "status"; allowed here: limit, cursor'],
      [`/${id}/fires?cursor=x`, 'cursor must be the next_cursor of an earlier answer, unchanged'],
    ] as const)
      refused(await ada.call('GET', `/v1/alarms${path}`), 400, 'invalid_request', message);
  });
});

describe('editing', () => {
  test('changes the named fields, keeps the rest, and notifies the dispatcher', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const id = await ada.set({ label: 'old', payload: { n: 1 } });
    const patch = (body: unknown) => ada.call('PATCH', `/v1/alarms/${id}`, { body });
    const { data } = await patch({ label: 'new', delay_seconds: 5 });
    assert.deepEqual([data.label, data.wake_message, data.next_fire_at], ['new', 'hello', '2026-06-15T08:10:05.000Z']);
    assert.equal(bench.due.at(-1), bench.clock.now() + 5000);
    assert.equal((await patch({ label: null })).data.label, '');
    const digits = '{"n":1.00, "m":12345678901234567890}';
    assert.ok((await patch(`{"payload":${digits}}`)).text.includes(`"payload":${digits},`));
    assert.ok((await patch('{"payload":null}')).text.includes('"payload":null,'), 'a JSON null is a payload');
  });

  test('fields that may not be edited are refused by name', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const id = await ada.set();
    const patch = (body: unknown) => ada.call('PATCH', `/v1/alarms/${id}`, { body });
    refused(await patch({}), 400, 'invalid_request', 'nothing to edit; name at least one field to change');
    for (const fixed of ['kind', 'idempotency_key']) {
      const sentence = `${fixed} cannot be changed; omit it, or set a new alarm`;
      refused(await patch({ [fixed]: 'cron' }), 400, 'invalid_request', sentence);
    }
    refused(
      await patch({ status: 'fired' }),
      400,
      'invalid_request',
      /^unknown field "status"; allowed here: wake_message, /,
    );
    refused(await patch({ cron_expr: '@daily' }), 400, 'invalid_request', /^cron_expr is only for kind "cron"/);
    refused(await patch({ wake_message: null }), 400, 'invalid_request', 'wake_message must be a string (got null)');
    await ada.call('DELETE', `/v1/alarms/${id}`);
    refused(
      await patch({ label: 'x' }),
      409,
      'conflict',
      'this alarm is cancelled and can no longer be edited; set a new one',
    );
  });
});

describe('owner actions on an alarm', () => {
  test('cancelling: once, twice, and a delivery in flight is reported', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const idle = await ada.set();
    const first = await ada.call('DELETE', `/v1/alarms/${idle}`);
    assert.deepEqual([first.status, first.data.status, first.data.in_flight], [200, 'cancelled', false]);
    assert.equal((await ada.call('DELETE', `/v1/alarms/${idle}`)).text, first.text);

    const busy = await ada.set({ delay_seconds: 1 });
    await bench.clock.advance(1000);
    assert.equal((await claimDue(bench)).length, 1);
    assert.equal((await ada.call('GET', `/v1/alarms/${busy}`)).data.in_flight, true);
    const { data } = await ada.call('DELETE', `/v1/alarms/${busy}`);
    assert.deepEqual([data.status, data.in_flight, data.next_fire_at], ['cancelled', true, undefined]);
    await bench.store.endOrphanedClaims(bench.clock.now());
    assert.equal((await ada.call('GET', `/v1/alarms/${busy}`)).data.in_flight, false);
  });

  test('pausing and resuming', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const id = await ada.set();
    const act = (action: string) => ada.call('POST', `/v1/alarms/${id}/${action}`);
    const paused = await act('pause');
    assert.deepEqual([paused.data.status, paused.data.next_fire_at], ['paused', undefined]);
    assert.equal((await act('pause')).status, 200);
    const resumed = await act('resume');
    assert.deepEqual([resumed.data.status, resumed.data.next_fire_at], ['active', '2026-06-15T09:10:00.000Z']);
    assert.equal((await act('resume')).status, 200);
    await ada.call('DELETE', `/v1/alarms/${id}`);
    refused(await act('pause'), 409, 'conflict', 'only an active alarm can be paused; this one is cancelled');
    refused(await act('resume'), 409, 'conflict', 'only a paused alarm can be resumed; this one is cancelled');
  });

  test('triggering names the fire that it creates, and leaves the schedule unchanged', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const id = await ada.set();
    const trigger = () => ada.call('POST', `/v1/alarms/${id}/trigger`);
    const now = bench.clock.now();
    const { data } = await trigger();
    assert.deepEqual(
      [data.fire_id, data.status, data.next_fire_at],
      [`${id}@${now}`, 'active', '2026-06-15T09:10:00.000Z'],
    );
    assert.ok(bench.due.includes(now));
    const more = await Promise.all(Array.from({ length: 110 }, trigger));
    const made = new Set(more.filter(({ status }) => status === 200).map(({ data: { fire_id } }) => fire_id));
    assert.equal(made.size, 99);
    refused(
      more.find(({ status }) => status !== 200)!,
      429,
      'rate_limited',
      '100 triggers of this alarm are waiting to be delivered',
    );
    await ada.call('DELETE', `/v1/alarms/${id}`);
    refused(await trigger(), 409, 'conflict', 'this alarm is cancelled and cannot be triggered; set a new one');
  });

  test('redriving a failed occurrence, under the same fire id', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const id = await ada.set({ delay_seconds: 1 });
    const redrive = () => ada.call('POST', `/v1/alarms/${id}/redrive`);
    refused(
      await redrive(),
      409,
      'conflict',
      'only a failed alarm, or one whose last turn failed, can be redriven; this one is active',
    );
    await bench.clock.advance(1000);
    await fail(bench);
    const failed = await ada.call('GET', `/v1/alarms/${id}`);
    assert.deepEqual([failed.data.status, failed.data.last_error], ['failed', 'gone']);
    refused(
      await ada.call('POST', `/v1/alarms/${id}/trigger`),
      409,
      'conflict',
      'this alarm is failed and cannot be triggered; redrive it instead',
    );
    const cancelled = await ada.call('DELETE', `/v1/alarms/${id}`);
    assert.equal(cancelled.data.status, 'failed', 'a terminal alarm comes back unchanged');
    await bench.clock.advance(1000);
    assert.equal((await redrive()).data.status, 'active');
    const [claim] = await claimDue(bench);
    assert.deepEqual(
      [claim?.occurrence.fireId, claim?.occurrence.attempt],
      [`${id}@${Date.UTC(2026, 5, 15, 8, 10, 1)}`, 2],
    );
  });

  test('an unexpected body or query is refused, an empty object is not', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const id = await ada.set();
    for (const [method, path] of [
      ['DELETE', ''],
      ['POST', '/pause'],
      ['POST', '/resume'],
      ['POST', '/trigger'],
    ] as const) {
      refused(
        await ada.call(method, `/v1/alarms/${id}${path}`, { body: { at: 1 } }),
        400,
        'invalid_request',
        'unknown field "at"',
      );
      refused(
        await ada.call(method, `/v1/alarms/${id}${path}?force=1`),
        400,
        'invalid_request',
        'unknown field "force"',
      );
    }
    assert.equal((await ada.call('GET', `/v1/alarms/${id}`)).data.status, 'active');
    assert.equal((await ada.call('POST', `/v1/alarms/${id}/pause`, { body: {} })).status, 200);
  });
});

test('the ledger shows each attempt, latest first, page by page', async (t) => {
  const bench = await createHttpBench(t);
  const ada = await bench.agent('ada');
  const id = await ada.set({ delay_seconds: 1 });
  assert.deepEqual((await ada.call('GET', `/v1/alarms/${id}/fires`)).data, { fires: [] });
  for (let n = 0; n < 5; n++) {
    await bench.clock.advance(1000);
    await fail(bench);
    await ada.call('POST', `/v1/alarms/${id}/redrive`);
  }
  const { data } = await ada.call('GET', `/v1/alarms/${id}/fires`);
  assert.deepEqual(data.fires[4], {
    fire_id: `${id}@${Date.UTC(2026, 5, 15, 8, 10, 1)}`,
    scheduled_for: '2026-06-15T08:10:01.000Z',
    attempt: 1,
    started_at: '2026-06-15T08:10:01.000Z',
    finished_at: '2026-06-15T08:10:01.005Z',
    lateness_ms: 0,
    outcome: 'failed',
    http_status: 410,
    error: 'gone',
  });
  const paged = [];
  let cursor: string | undefined;
  do {
    const page = await ada.call('GET', `/v1/alarms/${id}/fires?limit=2${cursor ? `&cursor=${cursor}` : ''}`);
    paged.push(...page.data.fires);
    cursor = page.data.next_cursor;
  } while (cursor);
  assert.deepEqual(paged, data.fires);
  assert.deepEqual(
    paged.map(({ attempt }) => attempt),
    [5, 4, 3, 2, 1],
  );
});

test('an unknown route is reported', async (t) => {
  const bench = await createHttpBench(t);
  const ada = await bench.agent('ada');
  const id = await ada.set();
  for (const [method, path] of [
    ['POST', `/v1/alarms/${id}`],
    ['PUT', '/v1/alarms'],
    ['DELETE', '/v1/alarms'],
    ['POST', `/v1/alarms/${id}/snooze`],
    ['GET', '/v2/alarms'],
  ] as const)
    refused(await ada.call(method, path), 404, 'not_found', `${method} ${path} is not a route of chronosd`);
});
