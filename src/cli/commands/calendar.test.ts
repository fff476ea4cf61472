import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { type Installation, startInstallation } from '../../../test/support/installation.ts';
import { sharedOwner, temporaryFolder } from '../../../test/support/temporary.ts';

const shared = sharedOwner();
let house: Installation;
let folder: string;

before(async () => {
  house = await startInstallation(shared);
  folder = temporaryFolder(shared);
});
after(() => shared.end());

function file(...lines: string[]): string {
  const path = join(folder, 'holidays.ics');
  writeFileSync(path, ['BEGIN:VCALENDAR', ...lines, 'END:VCALENDAR', ''].join('\r\n'));
  return path;
}
const event = (...lines: string[]) => ['BEGIN:VEVENT', ...lines, 'END:VEVENT'];

test('a calendar is added, listed, used by an alarm, and removed', async () => {
  assert.match(
    await house.run('calendar', 'list'),
    /^No calendars; add one with: reveille calendar add <name> <file>\n$/,
  );
  const path = file(...event('DTSTART;VALUE=DATE:20361224', 'DTEND;VALUE=DATE:20361227'));
  assert.equal(
    await house.run('calendar', 'add', 'office', path),
    'Added calendar office: 3 days, 2036-12-24 to 2036-12-26\n  use it with: reveille alarm set … --holidays office\n',
  );
  assert.match(await house.run('calendar', 'list'), /office +3 +2036-12-24 +2036-12-26/);
  const json = JSON.parse(
    await house.run('alarm', 'set', 'x', '--cron', '0 9 * * *', '--holidays', 'office', '--json'),
  );
  assert.match(await house.run('alarm', 'show', json.id), /except on +days of office/);
  // The file goes: the alarm says so, and fires on all days.
  rmSync(join(house.home.path, 'chronos', 'calendars', 'office.ics'));
  const isMissing = async () =>
    /calendar +office is missing: it fires on all days/.test(await house.run('alarm', 'show', json.id));
  await eventually('the alarm says that its calendar is missing', isMissing);
  await house.run('calendar', 'add', 'office', path);
  const removed = await house.run('calendar', 'remove', 'office');
  assert.equal(removed, 'Removed calendar office\n  alarms of yours that now fire on its days too: 1\n');
});

test('two installations in one process do not see the calendars of each other', async () => {
  const other = await startInstallation(shared);
  const addTo = ({ run }: Installation, name: string, date: string) =>
    run('calendar', 'add', name, file(...event(`DTSTART;VALUE=DATE:${date}`)));
  await addTo(house, 'club', '20361224');
  await addTo(house, 'own', '20361224');
  await addTo(other, 'club', '20371224');
  const series = { kind: 'cron', cron_expr: '0 9 24 12 *', wake_message: 'x' } as const;
  const refusal = /\(got "own"\); installed are club$/;
  await assert.rejects(other.client.createAlarm({ ...series, holidays: 'own' }), { message: refusal });
  const yearsOf = async ({ client }: Installation) => {
    const asked = { ...series, holidays: 'club', from: '2036-01-01T00:00:00Z', count: 2 };
    const { occurrences } = await client.previewAlarm(asked);
    return occurrences.map(({ at }) => at.slice(0, 4));
  };
  assert.deepEqual(await yearsOf(house), ['2037', '2038']);
  assert.deepEqual(await yearsOf(other), ['2036', '2038']);
  for (const name of ['club', 'own']) await house.run('calendar', 'remove', name);
});

test('a file that does not parse is refused with line and column, and an unknown name with the installed ones', async () => {
  const broken = file(...event('DTSTART;VALUE=DATE:20360230'));
  const refused = await house.attempt(['calendar', 'add', 'broken', broken]);
  assert.equal(refused.status, 1, refused.stderr);
  assert.match(refused.stderr, /holidays\.ics, line 3, column 20: DTSTART must be a date and time such as/);
  const unknown = await house.attempt(['alarm', 'set', 'x', '--cron', '@daily', '--holidays', 'broken']);
  assert.match(unknown.stderr, /holidays must name an installed calendar \(got "broken"\); none is installed/);
  const gone = await house.attempt(['calendar', 'remove', 'broken']);
  assert.match(gone.stderr, /no calendar has the name broken; list them with "reveille calendar list"/);
});

test('an alarm whose calendar has ended says so, and so does the doctor', async () => {
  await house.run('calendar', 'add', 'past', file(...event('DTSTART;VALUE=DATE:20201224')));
  const { id } = JSON.parse(
    await house.run('alarm', 'set', 'x', '--cron', '0 9 * * *', '--holidays', 'past', '--json'),
  );
  const line = /calendar +past has ended, its last day was 2020-12-24: it fires on all days/;
  assert.match(await house.run('alarm', 'show', id), line);
  const preview = await house.run('alarm', 'preview', '--cron', '0 9 * * *', '--holidays', 'past');
  assert.match(preview, /the calendar past ends on 2020-12-24: it excludes nothing after that day/);
  const { stdout } = await house.attempt(['doctor', '--json']);
  const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; detail: string }[] };
  const [check] = checks.filter(({ name }) => name === 'calendars');
  assert.equal(check!.status, 'warning');
  assert.match(check!.detail, /^past has ended, its last day was 2020-12-24; alarms fire on all days$/);
  await house.run('calendar', 'remove', 'past');
});

test('an event that cannot be used is left out, and named', async () => {
  const path = file(
    ...event('DTSTART;VALUE=DATE:20361224', 'RRULE:RSCALE=HEBREW;FREQ=YEARLY', 'SUMMARY:A feast'),
    ...event('DTSTART;VALUE=DATE:20361225', 'RRULE;X-ANY=THING:FREQ=DAILY;COUNT=2'),
    ...event('DTSTART:20361201T100000Z', 'RRULE:FREQ=SECONDLY'),
  );
  const added = await house.run('calendar', 'add', 'mixed', path);
  assert.match(added, /^Added calendar mixed: 2 days, 2036-12-25 to 2036-12-26\n {2}left out 2 events; alarms fire on/);
  assert.match(added, /\n {4}line 4, column 7: "RSCALE=HEBREW" is no part of a rule; .* \("A feast"\)\n/);
  assert.match(added, /\n {4}line 11, column 7: it recurs more than 200000 times until 2100; end its rule/);
  const { left_out, problems } = JSON.parse(await house.run('calendar', 'add', 'mixed', path, '--json'));
  assert.deepEqual([left_out, problems.length], [2, 2]);
  assert.match(await house.run('calendar', 'list'), /mixed +2 +2036-12-25 +2036-12-26 \(2 events left out\)/);
  await house.run('calendar', 'remove', 'mixed');
  const nothing = file(...event('DTSTART;VALUE=DATE:20361224', 'RRULE:FREQ=DAILY;COUNT=0'));
  const refused = await house.attempt(['calendar', 'add', 'mixed', nothing]);
  assert.match(refused.stderr, /holidays\.ics, line 4, column 7: COUNT must be a whole number from 1/);
});

test('chronosd gives the days of a calendar, from yesterday on, to programs elsewhere', async () => {
  const path = file(
    ...event('DTSTART;VALUE=DATE:20200101'),
    ...event('DTSTART;VALUE=DATE:20361224', 'DTEND;VALUE=DATE:20361226'),
    ...event('DTSTART:20361231T230000Z', 'DTEND:20361231T233000Z'),
  );
  await house.run('calendar', 'add', 'days', path);
  const days = async (timezone?: string) =>
    (await house.client.getCalendar('days', timezone === undefined ? {} : { timezone })).days;
  assert.deepEqual(await days(), ['2036-12-24', '2036-12-25', '2036-12-31']);
  assert.deepEqual(await days('Europe/Berlin'), ['2036-12-24', '2036-12-25', '2037-01-01']);
  await assert.rejects(house.client.getCalendar('none'), /no usable calendar is installed as "none"/);
  await assert.rejects(house.client.getCalendar('..%2Fdays'), /no usable calendar/);
  await assert.rejects(days('Mars/Base'), /timezone/);
});

test('a calendar feed is added, its address is printed once, and it is revoked', async () => {
  assert.match(await house.run('calendar', 'feed', 'list'), /^No calendar feeds; add one with/);
  const added = await house.run('calendar', 'feed', 'add', 'phone');
  assert.match(added, /^Subscribe to this address in a calendar app; it is not shown again \(phone, labels\):\n/);
  const [address = ''] = /http:\S+\.ics/.exec(added) ?? [];
  assert.ok(address.startsWith(`${house.router.public.url}/calendar/`), added);
  const { id } = JSON.parse(await house.run('calendar', 'feed', 'add', '--messages', '--json'));
  const listed = await house.run('calendar', 'feed', 'list');
  assert.match(listed, /^ID +SINCE +SHOWS +NAME\n/);
  assert.match(listed, new RegExp(`${id} .* labels, messages +calendar\n`));
  assert.doesNotMatch(listed, /\.ics/);
  assert.match(await house.run('calendar', 'feed', 'revoke', id.slice(0, 6)), /^Revoked calendar of .*ends now\n$/);
  const again = await house.attempt(['calendar', 'feed', 'revoke', id]);
  assert.match(again.stderr, /no calendar feed has this id/);
});
