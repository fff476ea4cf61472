/**
 * Each field of schedules and policies on each surface: it is set, changed and removed there, and read over HTTP. Then
 * preview and backfill on each surface.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { calendarTime } from '../../../src/kit/clock/local-time.ts';
import { CLEARABLE_FIELDS, type FieldName, isOption, OWNER_FIELDS } from '../../../src/wire/alarm-fields.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';
import { type Row, type Stack, SURFACES, skipOf, startStack, ZONE } from './surfaces.ts';

const MONDAYS = { kind: 'cron', cron_expr: '0 9 * * 1', timezone: ZONE };
const RULE = 'RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=10;BYMINUTE=0;BYSECOND=0';
const WEEKDAYS = { kind: 'cron', cron_expr: '0 9 * * 1-5', timezone: ZONE };

const FEED = 'https://example.com/feed';
/** Stands for the id of the alarm that others follow. */
const FOLLOWED = '<id of the alarm>';
const EVENT = { kind: 'event' };

const ROWS: readonly Row[] = [
  {
    ...{ field: 'rrule', value: RULE, typed: RULE, base: { kind: 'rrule', timezone: ZONE } },
    shown: { kind: 'rrule', rrule: RULE, timezone: ZONE },
  },
  {
    ...{ field: 'when', value: 'every weekday at 9', typed: 'every weekday at 9', base: { timezone: ZONE } },
    shown: WEEKDAYS,
  },
  { field: 'holidays', value: 'de-berlin', typed: 'de-berlin', base: MONDAYS },
  { field: 'catch_up', value: 'all', typed: 'all', base: MONDAYS },
  { field: 'catch_up_window_seconds', value: 7200, typed: '2h', base: MONDAYS },
  { field: 'overlap', value: 'buffer_one', typed: 'buffer_one', base: MONDAYS },
  { field: 'pause_on_failure', value: true, base: MONDAYS },
  { field: 'model', value: 'a-small-model', typed: 'a-small-model', base: MONDAYS },
  {
    ...{ field: 'tools', value: ['chronos__alarm_set', 'fetch__fetch'], typed: 'chronos__alarm_set, fetch__fetch' },
    base: MONDAYS,
  },
  { field: 'deliver', value: ['phone', 'desktop'], typed: 'phone, desktop', base: MONDAYS },
  {
    ...{ field: 'check', value: { http: { url: FEED, etag: 'changed' }, max_skips: 3 }, base: MONDAYS },
    flags: ['--check-url', FEED, '--check-changed', '--max-skips', '3'],
    controls: { checks: 'address', 'check-url': FEED, 'check-changed': 'on', 'max-skips': '3' },
  },
  {
    field: 'event',
    value: {
      ...{ source: 'webhook', verify: 'github', filter: { pointer: '/body/action', equals: 'opened' } },
      ...{ quiet_for: 'PT30S', repeat: 'always' },
    },
    flags: ['--on', 'github', '--filter', '/body/action=opened', '--quiet-for', '30s', '--repeat'],
    controls: { fires: 'event', on: 'github', filter: '/body/action=opened', 'quiet-for': '30s', repeat: 'on' },
    ...{ base: EVENT, earlier: { ...EVENT, event: { source: 'webhook' } } },
  },
  {
    field: 'after',
    value: { alarm: FOLLOWED, on: 'any', delay_seconds: 600 },
    flags: ['--after', 'followed', '--after-outcome', 'any', '--delay', '10m'],
    controls: { fires: 'after', after: 'followed', 'after-outcome': 'any', delay: '10m' },
    ...{ base: EVENT, earlier: { ...EVENT, after: { alarm: FOLLOWED } } },
  },
  {
    field: 'expect',
    value: { every: 'PT2H', grace: 'PT10M' },
    flags: ['--expect-every', '2h', '--grace', '10m'],
    controls: { fires: 'missing', 'expect-every': '2h', grace: '10m' },
    ...{ base: EVENT, earlier: { ...EVENT, expect: { every: 'PT8H' } } },
  },
  {
    ...{ field: 'run', value: { argv: ['./backup.sh', '--day', 'a b'], timeout_seconds: 60 }, base: MONDAYS },
    flags: ['--run', "./backup.sh --day 'a b'", '--run-timeout', '1m'],
    controls: { run: "./backup.sh --day 'a b'", 'run-timeout': '1m' },
  },
];

/** Its first instant is a holiday. */
const NEW_YEAR = { kind: 'cron', cron_expr: '0 9 1,2 1 *', timezone: ZONE };
const localText = (at: string) => calendarTime(Date.parse(at), { now: Date.now(), zone: ZONE });
/** The row with the id of the alarm that others follow. */
const filled = (row: Row, id: string): Row => JSON.parse(JSON.stringify(row).replaceAll(FOLLOWED, id));

/** The alarm that gets the field by an edit, which keeps the kind. */
const earlierOf = ({ base, earlier }: Row) =>
  earlier ?? (base.kind === 'rrule' ? { ...base, rrule: 'RRULE:FREQ=DAILY;BYHOUR=7;BYMINUTE=0;BYSECOND=0' } : MONDAYS);

const CALENDAR = [
  ...['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//test//surfaces//EN', 'BEGIN:VEVENT', 'UID:1', 'SUMMARY:New Year'],
  ...[
    'DTSTAMP:20260101T000000Z',
    'DTSTART;VALUE=DATE:20270101',
    'RRULE:FREQ=YEARLY',
    'END:VEVENT',
    'END:VCALENDAR',
    '',
  ],
].join('\r\n');

describe('fields of schedules and policies', () => {
  const owner = sharedOwner();
  let stack: Stack;
  let followed: string;

  before(async () => {
    stack = await startStack(owner);
    const work = temporaryFolder(owner);
    writeFileSync(join(work, 'backup.sh'), '#!/bin/sh\n', { mode: 0o755 });
    // Most surfaces are the agent's, which may set commands only on such a machine.
    const machine = ['--provider', 'claude', '--bin', '/bin/true', '--dir', work, '--agent-checks', 'commands'];
    await stack.reveille('machine', 'put', ...machine);
    followed = await stack.set({ ...MONDAYS, label: 'followed' });
    const file = join(temporaryFolder(owner), 'holidays.ics');
    writeFileSync(file, CALENDAR);
    await stack.reveille('calendar', 'add', 'de-berlin', file);
    for (const name of ['phone', 'desktop'])
      await stack.reveille('notify', 'add', 'command', '--name', name, '--', 'true');
  });
  after(() => owner.end());

  /** What HTTP shows of the fields. */
  const read = async (id: string, names: readonly string[]) => {
    const view: Partial<Record<string, unknown>> = await stack.read(id);
    return Object.fromEntries(names.map((name) => [name, view[name]]));
  };

  test('each field that shares the column of options has a row', () => {
    assert.deepEqual(ROWS.map(({ field }) => field).sort(), OWNER_FIELDS.filter(isOption).sort());
  });

  for (const template of ROWS)
    for (const name of SURFACES)
      test(`${template.field}: ${name}`, { skip: skipOf(name) }, async () => {
        const row = filled(template, followed);
        const { field, shown = { [field]: row.value } } = row;
        const surface = stack.surfaces[name];
        const created = await surface.create(row);
        assert.deepEqual(await read(created, Object.keys(shown)), shown);

        const changed = await stack.set(earlierOf(row));
        await surface.change(changed, row);
        assert.deepEqual(await read(changed, Object.keys(shown)), shown);

        if (!(CLEARABLE_FIELDS as readonly FieldName[]).includes(field)) return;
        await surface.clear(changed, field);
        assert.deepEqual(await read(changed, [field]), { [field]: undefined });
      });

  for (const name of SURFACES) {
    test(`preview: ${name}`, { skip: skipOf(name) }, async () => {
      const { count } = await stack.list();
      const { fires } = await stack.surfaces[name].preview({ ...NEW_YEAR, holidays: 'de-berlin' });
      const { next_fire_at: next } = await read(await stack.set({ ...NEW_YEAR, holidays: 'de-berlin' }), [
        'next_fire_at',
      ]);
      assert.equal(fires[0], name === 'console form' ? localText(next as string) : next);
      assert.equal((await stack.list()).count, count + 1, 'the preview sets nothing');
    });

    test(`backfill: ${name}`, { skip: skipOf(name) }, async () => {
      const { backfill } = stack.surfaces[name];
      if (name === 'MCP tool') return assert.equal(backfill, undefined, 'a backfill is for people and programs');
      const id = await stack.set({ kind: 'cron', cron_expr: '0 * * * *', timezone: ZONE });
      const part = { from: '2026-01-01T00:00:00Z', to: '2026-01-01T03:00:00Z' };
      assert.deepEqual(await backfill!(id, part, true), { added: 3, known: 0 });
      assert.deepEqual(await backfill!(id, part, false), { added: 3, known: 0 });
      assert.deepEqual(await backfill!(id, part, true), { added: 0, known: 3 });
    });
  }
});
