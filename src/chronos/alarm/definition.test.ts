import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import type { Alarm, AlarmState } from './alarm.ts';
import { differingFields, draftAlarm } from './definition.ts';
import { cancelAlarm, pauseAlarm, triggerAlarm } from './lifecycle.ts';
import { settleDelivered, settleFailed } from './settlement.ts';
import {
  ALARM_ID,
  type Body,
  claim,
  complete,
  createInput,
  edit,
  LIMITS,
  NOW,
  OWNER,
  scheduled,
  setAlarm,
} from './testing/alarm-state.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const at = (ms: number) => new Date(ms).toISOString();
const cron = (more: Body = {}): Body => ({ kind: 'cron', cron_expr: '0 * * * *', ...more });
const once = (more: Body = {}): Body => ({ kind: 'once', ...more });

function refusal(act: () => unknown): { code: string; message: string } {
  try {
    act();
  } catch (thrown) {
    assert.ok(thrown instanceof ReveilleError, String(thrown));
    return { code: thrown.code, message: thrown.message };
  }
  assert.fail('it was accepted');
}

describe('errors of a create', () => {
  const refused: [name: string, body: Body, message: string][] = [
    ['neither instant', once(), 'an alarm of kind "once" needs delay_seconds or fire_at'],
    [
      'both instants',
      once({ delay_seconds: 60, fire_at: at(NOW + HOUR) }),
      'delay_seconds and fire_at exclude each other; give one of them',
    ],
    [
      'a past instant',
      once({ fire_at: at(NOW - 1000) }),
      'fire_at must be in the future (got 2026-06-15T08:09:59.000Z, it is now 2026-06-15T08:10:00.000Z)',
    ],
    [
      'the current instant',
      once({ fire_at: at(NOW) }),
      'fire_at must be in the future (got 2026-06-15T08:10:00.000Z, it is now 2026-06-15T08:10:00.000Z)',
    ],
    [
      'an instant too far in the future',
      once({ fire_at: '2037-06-15T08:10:00Z' }),
      'fire_at must be within ten years (got 2037-06-15T08:10:00.000Z)',
    ],
    ['a delay below a second', once({ delay_seconds: -5 }), 'delay_seconds must be at least 1 (got -5)'],
    [
      'a series field on a single alarm',
      once({ delay_seconds: 60, max_fires: 3 }),
      'max_fires is only for a series (kind "cron" or "rrule"); this alarm is "once", omit max_fires',
    ],
    [
      'a zone on a single alarm',
      once({ delay_seconds: 60, timezone: 'Europe/Berlin' }),
      'timezone is only for a series (kind "cron" or "rrule"); this alarm is "once", omit timezone',
    ],
    ['no expression', { kind: 'cron' }, 'an alarm of kind "cron" needs cron_expr, such as "0 9 * * 1-5" or "@hourly"'],
    [
      'a delay on a series',
      cron({ delay_seconds: 60 }),
      'delay_seconds is only for kind "once"; this alarm is "cron", omit delay_seconds',
    ],
    [
      'an interval that is too short',
      cron({ cron_expr: '@every 9s' }),
      'cron_expr must leave at least 10 seconds between two occurrences (got "@every 9s")',
    ],
    [
      'an end in the past',
      cron({ ends_at: at(NOW - 1) }),
      'ends_at must be in the future (got 2026-06-15T08:09:59.999Z, it is now 2026-06-15T08:10:00.000Z)',
    ],
    [
      'an end before the first occurrence',
      cron({ ends_at: at(NOW + 49 * MINUTE) }),
      'ends_at is before the first occurrence of cron_expr, so the alarm would never fire (ends_at 2026-06-15T08:59:00.000Z)',
    ],
    [
      'no event',
      { kind: 'event' },
      'an alarm of kind "event" needs event, such as {"source": "webhook"}, or after, or expect',
    ],
    [
      'a time beside an event',
      { kind: 'event', event: { source: 'webhook' }, fire_at: at(NOW + HOUR) },
      'fire_at is only for kind "once"; this alarm is "event", omit fire_at',
    ],
    [
      'an event on a series',
      cron({ event: { source: 'webhook' } }),
      'event is only for kind "event"; this alarm is "cron", omit event',
    ],
    [
      'an end of an alarm with events',
      { event: { source: 'webhook' }, max_fires: 3 },
      'max_fires is only for a series (kind "cron" or "rrule"); this alarm is "event", omit max_fires',
    ],
    [
      'jitter of an event',
      { event: { source: 'webhook' }, jitter_seconds: 3 },
      'jitter_seconds is only for alarms with a time; this alarm is "event", omit it',
    ],
    [
      'an overlap that would lose events',
      { event: { source: 'webhook' }, overlap: 'skip' },
      'overlap must be allow or buffer_all for kind "event", so that no event is lost (got skip)',
    ],
    [
      'two causes',
      { event: { source: 'webhook' }, after: { alarm: ALARM_ID } },
      'event and after exclude each other; give one of them',
    ],
    [
      'two deadlines',
      { event: { source: 'webhook', deadline: 'PT1H' }, expect: { every: 'PT1H' } },
      'expect and event.deadline both say when nothing has come; give one of them',
    ],
    [
      'waking the computer for looks',
      { event: { source: 'file', path: 'inbox/' }, wake_computer: true },
      'wake_computer would wake the computer for each look at the file; omit it, or use a webhook',
    ],
    [
      'a time between looks at a server that posts',
      { event: { source: 'mcp', server: 'mail', name: 'email.received', delivery: 'webhook', look_every: 'PT1M' } },
      'event.look_every is for a server that is asked; with delivery "webhook" omit it',
    ],
  ];
  for (const [name, body, message] of refused) {
    test(name, () =>
      assert.deepEqual(
        refusal(() => setAlarm(body)),
        { code: 'invalid_request', message },
      ),
    );
  }

  test('an expression that never fires and a zone that does not exist are rejected by name', () => {
    for (const [body, field] of [
      [cron({ cron_expr: '0 0 30 2 *' }), 'cron_expr'],
      [cron({ cron_expr: 'every morning' }), 'cron_expr'],
      [cron({ timezone: 'Europe/Atlantis' }), 'timezone'],
    ] as const) {
      const { code, message } = refusal(() => setAlarm(body));
      assert.equal(code, 'invalid_request');
      assert.match(message, new RegExp(`\\b${field}\\b`));
    }
  });
});

describe('alarms of a create', () => {
  test('a delay counts from the request, fractions of a second included', () => {
    const state = setAlarm(once({ delay_seconds: 1.5 }));
    assert.equal(state.alarm.fireAt, NOW + 1500);
    assert.equal(scheduled(state).dueAt, NOW + 1500);
    assert.equal(scheduled(state).fireId, `${ALARM_ID}@${NOW + 1500}`);
  });

  test('an occurrence exactly at ends_at still belongs to the series', () => {
    const state = setAlarm(cron({ ends_at: at(NOW + 50 * MINUTE) }));
    assert.equal(scheduled(state).scheduledFor, NOW + 50 * MINUTE);
  });

  test('message and payload are stored unchanged', () => {
    const { alarm } = setAlarm(
      once({
        delay_seconds: 60,
        wake_message: ' \u0000\ttrailing  ',
        payload: '{ "n": 12345678901234567890, "x": 1.0 }',
      }),
    );
    assert.equal(alarm.wakeMessage, ' \u0000\ttrailing  ');
    assert.equal(alarm.payload, '{ "n": 12345678901234567890, "x": 1.0 }');
  });
});

describe('equality of two definitions', () => {
  const draft = (body: Body, now = NOW): Alarm =>
    draftAlarm(createInput(body), { id: ALARM_ID, owner: OWNER, now, limits: LIMITS });

  test('a delay is the same a minute later; an absolute instant is the same after it has passed', () => {
    assert.deepEqual(
      differingFields(draft(once({ delay_seconds: 60 })), draft(once({ delay_seconds: 60 }), NOW + MINUTE)),
      [],
    );
    const fireAt = once({ fire_at: at(NOW + 1000) });
    assert.deepEqual(differingFields(draft(fireAt), draft(fireAt, NOW + HOUR)), []);
  });

  test('an explicit default equals an omitted field', () => {
    const named = cron({ timezone: 'UTC', label: '', jitter_seconds: 0, max_failures: 100, urgent: false });
    assert.deepEqual(differingFields(draft(cron()), draft(named)), []);
  });

  test('a kind that follows from the other fields equals an omitted one', () => {
    const event = { event: { source: 'webhook' } };
    assert.deepEqual(differingFields(draft(event), draft({ kind: 'event', ...event }, NOW + HOUR)), []);
  });

  test('an instant is the same in another offset', () => {
    const here = draft(once({ fire_at: '2026-06-15T10:00:00Z' }));
    assert.deepEqual(differingFields(here, draft(once({ fire_at: '2026-06-15T12:00:00+02:00' }))), []);
  });

  const differing: [one: Body, other: Body, names: string[]][] = [
    [once({ delay_seconds: 60 }), once({ delay_seconds: 61 }), ['delay_seconds']],
    [once({ delay_seconds: 60 }), once({ delay_seconds: 60, urgent: true }), ['urgent']],
    [once({ delay_seconds: 60 }), once({ fire_at: at(NOW + MINUTE) }), ['delay_seconds']],
    [once({ fire_at: at(NOW + MINUTE) }), once({ fire_at: at(NOW + HOUR) }), ['fire_at']],
    [cron(), cron({ timezone: 'Asia/Kathmandu' }), ['timezone']],
    [cron(), cron({ wake_message: 'x', payload: '1', max_fires: 3 }), ['wake_message', 'payload', 'max_fires']],
    [cron({ payload: '1' }), cron({ payload: '1.0' }), ['payload']],
    [once({ delay_seconds: 60 }), cron(), ['kind', 'delay_seconds', 'cron_expr']],
    [{ event: { source: 'webhook' } }, { event: { source: 'webhook', verify: 'github' } }, ['event']],
    [{ after: { alarm: ALARM_ID } }, { after: { alarm: ALARM_ID, on: 'any' } }, ['after']],
    [{ after: { alarm: ALARM_ID } }, { after: { alarm: ALARM_ID }, expect: { every: 'PT1H' } }, ['expect']],
    [
      cron(),
      cron({
        label: 'l',
        conversation_id: 'c',
        jitter_seconds: 1,
        ends_at: at(NOW + HOUR),
        max_failures: 1,
        max_lateness_seconds: 1,
      }),
      ['label', 'conversation_id', 'jitter_seconds', 'ends_at', 'max_failures', 'max_lateness_seconds'],
    ],
  ];
  for (const [one, other, names] of differing) {
    test(`${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} named`, () => {
      assert.deepEqual(differingFields(draft(one), draft(other)), names);
      assert.deepEqual(differingFields(draft(other), draft(one)), names);
    });
  }
});

describe('editing', () => {
  test('texts, payload and limits change without changing the pending occurrence', () => {
    const before = claim(setAlarm(cron()));
    const after = edit(before, {
      wake_message: 'new',
      payload: 'null',
      label: 'l',
      max_failures: 3,
      conversation_id: 'c',
    });
    assert.deepEqual(after.occurrences, before.occurrences);
    const { wakeMessage, payload, label, maxFailures, conversationId } = after.alarm;
    assert.deepEqual([wakeMessage, payload, label, maxFailures, conversationId], ['new', 'null', 'l', 3, 'c']);
  });

  test('null removes an optional field', () => {
    const before = setAlarm(
      cron({
        label: 'l',
        timezone: 'Europe/Berlin',
        conversation_id: 'c',
        max_failures: 3,
        max_lateness_seconds: 5,
        jitter_seconds: 5,
        ends_at: at(NOW + 9 * HOUR),
        max_fires: 4,
      }),
    );
    const { alarm } = edit(before, {
      label: null,
      timezone: null,
      conversation_id: null,
      max_failures: null,
      max_lateness_seconds: null,
      jitter_seconds: null,
      ends_at: null,
      max_fires: null,
    });
    assert.deepEqual(alarm, { ...setAlarm(cron()).alarm });
  });

  test('an empty edit, a field of the other kind and an ended alarm are rejected', () => {
    const state = setAlarm(cron());
    assert.equal(refusal(() => edit(state, {})).message, 'nothing to edit; name at least one field to change');
    assert.match(refusal(() => edit(state, { fire_at: at(NOW + HOUR) })).message, /^fire_at is only for kind "once"/);
    assert.match(
      refusal(() => edit(setAlarm(once({ delay_seconds: 60 })), { cron_expr: '@daily' })).message,
      /^cron_expr is only for kind "cron"/,
    );
    assert.deepEqual(
      refusal(() => edit(cancelAlarm(state, NOW), { label: 'x' })),
      {
        code: 'conflict',
        message: 'this alarm is cancelled and can no longer be edited; set a new one',
      },
    );
  });

  test('an edit follows the same rules as a create', () => {
    const state = setAlarm(cron());
    assert.match(refusal(() => edit(state, { cron_expr: '@every 1s' })).message, /^cron_expr must leave at least 10/);
    assert.match(refusal(() => edit(state, { ends_at: at(NOW) })).message, /^ends_at must be in the future/);
    const single = setAlarm(once({ delay_seconds: 60 }));
    assert.match(refusal(() => edit(single, { fire_at: at(NOW - 1) })).message, /^fire_at must be in the future/);
    assert.match(refusal(() => edit(single, { fire_at: at(NOW + 1), delay_seconds: 5 })).message, /exclude each other/);
  });

  test('a new instant replaces the old one', () => {
    const after = edit(setAlarm(once({ delay_seconds: 60 })), { fire_at: at(NOW + HOUR) });
    assert.equal(after.alarm.delaySeconds, null);
    assert.deepEqual(
      after.occurrences.map(({ dueAt, source }) => [dueAt, source]),
      [[NOW + HOUR, 'schedule']],
    );
    const back = edit(after, { delay_seconds: 5 }, NOW + 1000);
    assert.equal(back.alarm.fireAt, NOW + 6000);
    assert.equal(back.occurrences.length, 1);
  });

  test('a new expression counts an @every series from the edit', () => {
    const after = edit(setAlarm(cron()), { cron_expr: '@every 90s' }, NOW + 1234);
    assert.equal(scheduled(after).scheduledFor, NOW + 1234 + 90_000);
  });

  test('a paused alarm is edited and stays paused', () => {
    const after = edit(pauseAlarm(setAlarm(cron()), NOW), { cron_expr: '@daily' });
    assert.equal(after.alarm.status, 'paused');
    assert.equal(scheduled(after).dueAt, null);
    assert.equal(scheduled(after).scheduledFor, Date.UTC(2026, 5, 16));
  });

  test('a new schedule resets the failures of the old one', () => {
    const claimed = claim(setAlarm(once({ delay_seconds: 60 })));
    const { fireId } = scheduled(claimed);
    const failing = complete(claimed, fireId, (state) =>
      settleFailed(state, fireId, { error: 'no', final: false, retryAt: () => NOW + MINUTE }),
    );
    assert.equal(failing.alarm.failureCount, 1);
    const after = edit(failing, { delay_seconds: 60 }, NOW + 1);
    assert.equal(after.alarm.failureCount, 0);
    assert.equal(scheduled(after).attempt, 0);
  });
});

describe('editing the schedule during an attempt', () => {
  const inFlight = claim(setAlarm(once({ delay_seconds: 60 })), undefined, NOW + MINUTE);
  const old = scheduled(inFlight).fireId;
  const edited = edit(inFlight, { delay_seconds: 600 }, NOW + MINUTE + 1);

  test('the attempt continues beside the new schedule and no longer belongs to it', () => {
    assert.deepEqual(
      edited.occurrences.map(({ fireId, source, dueAt, claimedAt }) => ({ fireId, source, dueAt, claimedAt })),
      [
        { fireId: old, source: 'trigger', dueAt: null, claimedAt: NOW + MINUTE },
        {
          fireId: `${ALARM_ID}@${NOW + 11 * MINUTE + 1}`,
          source: 'schedule',
          dueAt: NOW + 11 * MINUTE + 1,
          claimedAt: null,
        },
      ],
    );
  });

  test('delivered, it counts as a fire, and the new schedule still fires', () => {
    const after = complete(edited, old, (state) => settleDelivered(state, old, NOW + MINUTE));
    assert.equal(after.alarm.status, 'active');
    assert.equal(after.alarm.fireCount, 1);
    assert.deepEqual(
      after.occurrences.map(({ fireId }) => fireId),
      [scheduled(edited).fireId],
    );
  });

  test('failed, it is not retried', () => {
    const after = complete(edited, old, (state) =>
      settleFailed(state, old, { error: 'no', final: false, retryAt: () => NOW + HOUR }),
    );
    assert.deepEqual(
      after.occurrences.map(({ fireId }) => fireId),
      [scheduled(edited).fireId],
    );
    assert.equal(after.alarm.lastError, 'no');
    assert.equal(after.alarm.failureCount, 0);
  });

  test('an edit to the same instant keeps the claim of the occurrence', () => {
    // This is possible only after the wall clock was set back.
    const after = edit(inFlight, { fire_at: at(NOW + MINUTE) }, NOW + 1);
    assert.deepEqual(after.occurrences, inFlight.occurrences);
  });
});

describe('editing the limits of a schedule', () => {
  const due = (state: AlarmState) => scheduled(state).scheduledFor;

  test('jitter moves the next occurrence, and no other instant replaces it', () => {
    const jittered = edit(setAlarm(cron()), { jitter_seconds: 3600 });
    assert.ok(due(jittered) > NOW + 50 * MINUTE && due(jittered) < NOW + 110 * MINUTE);
    assert.equal(scheduled(jittered).nominal, NOW + 50 * MINUTE);
    // Between the nominal instant and the jittered one, the occurrence is still pending.
    const later = edit(jittered, { max_fires: 9 }, NOW + 50 * MINUTE + 1);
    assert.deepEqual(scheduled(later), scheduled(jittered));
  });

  test('an occurrence that is due stays pending, claimed or not', () => {
    const state = setAlarm(cron());
    for (const current of [state, claim(state, undefined, NOW + HOUR)]) {
      const after = edit(current, { max_fires: 9, jitter_seconds: 60 }, NOW + HOUR);
      assert.deepEqual(after.occurrences, current.occurrences);
      assert.equal(after.alarm.maxFires, 9);
    }
  });

  test('new jitter for a single alarm during its delivery does not make it fire twice', () => {
    const inFlight = claim(setAlarm(once({ delay_seconds: 60 })), undefined, NOW + MINUTE);
    assert.deepEqual(edit(inFlight, { jitter_seconds: 60 }, NOW + MINUTE).occurrences, inFlight.occurrences);
  });

  test('an edit that repeats the current values keeps the attempts and the fence of a retry', () => {
    const claimed = claim(setAlarm(cron()), undefined, NOW + HOUR);
    const { fireId } = scheduled(claimed);
    const retrying = complete(claimed, fireId, (state) =>
      settleFailed(state, fireId, { error: 'no', final: false, retryAt: () => NOW + HOUR + 30_000 }),
    );
    const after = edit(retrying, { jitter_seconds: 0 }, NOW + HOUR + 1);
    assert.deepEqual(after.occurrences, retrying.occurrences);
    assert.equal(after.alarm.failureCount, 1);
  });

  test('max_fires must allow another fire, and triggered fires do not count', () => {
    let state = setAlarm(cron());
    const { fireId } = scheduled(state);
    state = complete(claim(state, fireId), fireId, (given) => settleDelivered(given, fireId, NOW + HOUR));
    const triggered = triggerAlarm(state, NOW + HOUR);
    state = complete(claim(triggered.state, triggered.fireId), triggered.fireId, (given) =>
      settleDelivered(given, triggered.fireId, NOW + HOUR),
    );
    assert.equal(state.alarm.fireCount, 2);
    assert.equal(
      refusal(() => edit(state, { max_fires: 1 }, NOW + HOUR)).message,
      'max_fires must be at least 2, because 1 have been delivered (got 1)',
    );
    assert.equal(edit(state, { max_fires: 2 }, NOW + HOUR).alarm.maxFires, 2);
  });
});
