import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Scheduled, scheduleText } from './schedule-text.ts';

const WEEKDAYS: Scheduled = { kind: 'cron', cron_expr: '0 9 * * 1-5', timezone: 'Europe/Berlin' };
const ID = '019ed2b4-7c11-7000-8000-000000000001';

test('the schedule of each kind of alarm has words', () => {
  const rows: readonly [alarm: Scheduled, text: string][] = [
    [WEEKDAYS, 'every weekday at 09:00 in Europe/Berlin'],
    [{ kind: 'cron', cron_expr: '@daily' }, 'every day at 00:00 in UTC'],
    [{ kind: 'cron', cron_expr: '@every 90m' }, 'every 1 h 30 min'],
    [{ kind: 'cron', cron_expr: '0 9 1,15 * 1' }, '0 9 1,15 * 1 in UTC'],
    [{ kind: 'once' }, 'once'],
    [{ kind: 'event', event: { source: 'webhook' } }, 'waits for webhook'],
    [{ kind: 'event', after: { alarm: ID } }, `after the turn of ${ID}`],
  ];
  for (const [alarm, text] of rows) assert.equal(scheduleText(alarm), text);
});

test('it may be short, without the zone of the reader, and name the alarm that another one follows', () => {
  assert.equal(scheduleText(WEEKDAYS, { zone: 'Europe/Berlin', isShort: true }), 'weekdays 09:00');
  const chain: Scheduled = { kind: 'event', after: { alarm: ID } };
  assert.equal(scheduleText(chain, { nameOf: () => '"nightly"' }), 'after the turn of "nightly"');
});
