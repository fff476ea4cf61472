import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type AlarmField, type FieldType, fieldOf, OWNER_FIELDS } from '../../wire/alarm-fields.ts';
import { differingFields } from './definition.ts';
import { installHolidays } from './holidays.ts';
import { type Body, edit, NOW, setAlarm } from './testing/alarm-state.ts';
import { viewAlarm } from './view.ts';

/** Rules for these depend on the kind or the time; `definition.test.ts` has them. */
const SCHEDULE = [
  'kind',
  'when',
  'delay_seconds',
  'fire_at',
  'cron_expr',
  'rrule',
  'timezone',
  'event',
  'after',
  'expect',
  'payload',
  'idempotency_key',
];
const FREE = OWNER_FIELDS.filter((name) => !SCHEDULE.includes(name));

const VALUES: Partial<Record<FieldType, unknown>> = {
  text: 'orchids',
  message: 'mist the orchids',
  identifier: 'conv:2',
  instant: new Date(NOW + 86_400_000).toISOString(),
  seconds: 2.5,
  count: 3,
  switch: true,
  list: ['search', 'mail'],
};

const OBJECTS: Readonly<Record<string, unknown>> = {
  check: { path: { path: 'inbox/' }, max_skips: 3 },
  run: { argv: ['./backup.sh', '--all'], timeout_seconds: 60 },
};

after(installHolidays({ daysOf: () => [], names: () => [] }));

const series: Body = { kind: 'cron', cron_expr: '@hourly' };
const isClearable = ({ edit: allowed }: AlarmField) => allowed === undefined;

for (const name of FREE) {
  const field = fieldOf(name);
  const value = OBJECTS[name] ?? field.of?.at(-1) ?? VALUES[field.type];
  const given: Body = { ...series, [name]: value };

  test(`${name} is set by a create or an edit, shown, and compared for idempotency`, () => {
    const created = setAlarm(given);
    const edited = edit(setAlarm(series), { [name]: value });
    for (const { alarm, occurrences } of [created, edited])
      assert.deepEqual(Reflect.get(viewAlarm({ alarm, occurrences }), name), value);
    assert.deepEqual(differingFields(created.alarm, setAlarm(series).alarm), [name]);
  });

  if (isClearable(field))
    test(`${name} is cleared by an edit`, () => {
      const { alarm } = edit(setAlarm(given), { [name]: null });
      assert.deepEqual(differingFields(alarm, setAlarm(series).alarm), []);
    });
}
