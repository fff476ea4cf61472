import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary.ts';
import { ManualClock } from '../kit/clock/testing/manual-clock.ts';
import { addCalendar, listCalendars, openCalendars, removeCalendar } from './calendars.ts';

const calendar = (...dates: string[]) =>
  [
    'BEGIN:VCALENDAR',
    ...dates.flatMap((date) => ['BEGIN:VEVENT', `DTSTART;VALUE=DATE:${date}`, 'END:VEVENT']),
    'END:VCALENDAR',
  ].join('\r\n');

function folderOf(t: TestContext): string {
  return join(temporaryFolder(t), 'calendars');
}

/** A lookup, and the warnings that it has logged. */
function lookupIn(folder: string) {
  const warnings: string[] = [];
  const clock = new ManualClock();
  const log = { warn: (_: unknown, message?: string) => void warnings.push(message ?? '') };
  const lookup = openCalendars(folder, { clock, log: log as never });
  const dates = (name: string) =>
    lookup.daysOf(name, 'UTC')?.map((day) => new Date(day * 86_400_000).toISOString().slice(0, 10));
  return { lookup, clock, warnings, dates };
}

test('a calendar is added, listed with its range, replaced and removed', (t) => {
  const folder = folderOf(t);
  assert.deepEqual(listCalendars(folder), []);
  const office = { name: 'office', days: 2, from: '2026-12-24', to: '2026-12-25' };
  assert.deepEqual(addCalendar(folder, 'office', calendar('20261225', '20261224')), office);
  addCalendar(folder, 'a.b-c_1', calendar('20270101'));
  assert.deepEqual(
    listCalendars(folder).map(({ name, days }) => [name, days]),
    [
      ['a.b-c_1', 1],
      ['office', 2],
    ],
  );
  addCalendar(folder, 'office', calendar('20270101'));
  assert.equal(listCalendars(folder)[1]!.days, 1);
  assert.deepEqual([removeCalendar(folder, 'office'), removeCalendar(folder, 'office')], [true, false]);
  assert.deepEqual(readdirSync(folder), ['a.b-c_1.ics']);
});

test('a file that does not parse is refused with line and column, and nothing is stored', (t) => {
  const folder = folderOf(t);
  assert.throws(
    () => addCalendar(folder, 'office', calendar('20261232')),
    /^ReveilleError: line 3, column 20: DTSTART must be/,
  );
  assert.throws(() => addCalendar(folder, 'office', calendar()), /the file has no events/);
  for (const name of ['../office', '', '.hidden', 'a/b', 'x'.repeat(65)])
    assert.throws(() => addCalendar(folder, name, calendar('20261225')), /the name of a calendar has letters/);
  assert.equal(existsSync(folder), false);
});

test('the lookup looks at a changed file once a second', async (t) => {
  const folder = folderOf(t);
  const { lookup, clock, dates, warnings } = lookupIn(folder);
  addCalendar(folder, 'office', calendar('20261225'));
  const days = lookup.daysOf('office', 'UTC');
  assert.deepEqual(dates('office'), ['2026-12-25']);
  addCalendar(folder, 'office', calendar('20261226'));
  utimesSync(join(folder, 'office.ics'), 1, 1);
  assert.equal(lookup.daysOf('office', 'UTC'), days, 'the same list within the second');
  await clock.advance(1_000);
  assert.deepEqual(dates('office'), ['2026-12-26']);
  assert.deepEqual(warnings, []);
});

test('a missing or broken calendar is unknown, logged once, and used when it is back', async (t) => {
  const folder = folderOf(t);
  mkdirSync(folder, { recursive: true });
  const { lookup, clock, dates, warnings } = lookupIn(folder);
  writeFileSync(join(folder, 'office.ics'), 'BEGIN:VCALENDAR\nnonsense\n');
  for (let second = 0; second < 3; second++) {
    assert.equal(dates('office'), undefined);
    assert.equal(dates('gone'), undefined);
    assert.equal(dates('../office'), undefined);
    await clock.advance(1_000);
  }
  assert.equal(warnings.length, 3, warnings.join('\n'));
  assert.match(warnings[0]!, /cannot be read; alarms with it fire on its days too/);
  assert.match(warnings[1]!, /is missing/);
  writeFileSync(join(folder, 'gone.ics'), calendar('20261225'));
  await clock.advance(1_000);
  assert.deepEqual(dates('gone'), ['2026-12-25']);
  assert.deepEqual(lookup.names(), ['gone', 'office']);
  assert.match(listCalendars(folder)[1]!.error!, /^line 2, column 9: END:VCALENDAR is missing/);
});

test('what is no file of a usual size is not read', (t) => {
  const folder = folderOf(t);
  mkdirSync(join(folder, 'folder.ics'), { recursive: true });
  symlinkSync('/dev/zero', join(folder, 'zeros.ics'));
  symlinkSync('missing', join(folder, 'gone.ics'));
  writeFileSync(join(folder, 'huge.ics'), '');
  truncateSync(join(folder, 'huge.ics'), 2 ** 33);
  const errors = listCalendars(folder).map(({ name, error }) => `${name}: ${error}`);
  assert.match(errors.join('\n'), /^folder: it is no file\ngone: ENOENT.*\nhuge: .*at most.*\nzeros: it is no file$/);
  const { dates, warnings } = lookupIn(folder);
  for (const name of ['folder', 'zeros', 'gone', 'huge']) assert.equal(dates(name), undefined);
  assert.equal(warnings.length, 4);
});

test('a large file with many changed occurrences is read in time', (t) => {
  const folder = folderOf(t);
  const event = (...lines: string[]) => ['BEGIN:VEVENT', ...lines, 'END:VEVENT'].join('\n');
  const changed = Array.from({ length: 20_000 }, (_, n) =>
    event(`UID:${n}`, 'DTSTART:20260101', 'RECURRENCE-ID:20260102', 'STATUS:CANCELLED'),
  );
  const text = ['BEGIN:VCALENDAR', event('DTSTART:20260101', 'UID:x'), ...changed, 'END:VCALENDAR'].join('\n');
  const begun = performance.now();
  assert.equal(addCalendar(folder, 'office', text).days, 1);
  assert.ok(performance.now() - begun < 10_000);
});
