import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { type Installation, startAgent, startInstallation } from '../../../test/support/installation.ts';
import { watchCommand } from '../../../test/support/pseudo-terminal.ts';
import { startStandInChronosd } from '../../../test/support/stand-ins/chronosd.ts';
import { atEnd, sharedOwner, temporaryFolder } from '../../../test/support/temporary.ts';
import { needs } from '../../../test/support/tools.ts';
import { sliceAt } from '../../wire/json.ts';
import { PROGRAM } from '../home/package-root.ts';

const shared = sharedOwner();
let house: Installation;
let agent: Awaited<ReturnType<typeof startAgent>>;

before(async () => {
  house = await startInstallation(shared);
  agent = await startAgent(shared);
  await house.run('machine', 'put', '--provider', 'http', '--url', agent.url);
});
after(() => shared.end());

/** Sets an alarm and returns its id. */
async function set(...words: string[]): Promise<string> {
  return JSON.parse(await house.run('alarm', 'set', ...words, '--json')).id;
}

const statusOf = async (id: string) => (await house.client.getAlarm(id)).status;

describe('reveille alarm set', () => {
  test('prints the alarm and its due time, from now and in local time', async () => {
    const said = await house.run('alarm', 'set', 'Look at the build', '--in', '10m');
    assert.match(
      said,
      /^Set [0-9a-f-]{36}\n {2}fires in (9 min \d+ s|10 min), (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d CES?T\n$/,
    );
    const json = JSON.parse(await house.run('alarm', 'set', 'x', '--at', '2036-06-15T10:10:00+02:00', '--json'));
    assert.deepEqual([json.next_fire_at, json.status, json.deduped], ['2036-06-15T08:10:00.000Z', 'active', false]);
  });

  test('says how a series was read, and what the words left open', async () => {
    const said = await house.run('alarm', 'set', 'x', 'every other monday', '--zone', 'Europe/Berlin');
    assert.match(said, /^ {2}a series: every 2 weeks on Monday at 09:00 from \d{4}-\d\d-\d\d$/m);
    assert.match(said, /^ {2}fires in .*: Mon .* 09:00, then Mon .* 09:00, then Mon .* 09:00$/m);
    assert.match(said, /^ {2}read in Europe\/Berlin, at 09:00, because no time was given$/m);
  });

  test('names the flag in an error of chronosd', async () => {
    for (const [flag, value, said] of [
      ['--overlap', 'queue', '--overlap must be one of allow, skip'],
      ['--holidays', 'none', '--holidays must name an installed calendar'],
      ['--catch-up', 'some', '--catch-up must be one of latest'],
    ] as const) {
      const words = ['alarm', 'set', 'x', 'every day at 9:00', flag, value];
      const { status, stderr } = await reveille(house.home.path, words);
      assert.equal(status, 1);
      assert.ok(stderr.startsWith(`error: ${said}`), stderr);
    }
  });

  test('changes the time by words after the id, and says what they left open', async () => {
    const id = await set('x', 'every monday at 10:00', '--zone', 'Europe/Berlin');
    const said = await house.run('alarm', 'edit', id, 'every friday');
    assert.match(said, /^Changed, at 09:00, because no time was given\n/);
    const { cron_expr, timezone } = await house.client.getAlarm(id);
    assert.deepEqual([cron_expr, timezone], ['0 9 * * 5', 'Europe/Berlin']);
  });

  test('takes rules of RFC 5545, which an edit replaces', async () => {
    const rule = 'RRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0';
    const id = await set('x', '--rrule', rule, '--zone', 'Europe/Berlin', '--label', 'month');
    const { kind, rrule, timezone } = await house.client.getAlarm(id);
    assert.deepEqual([kind, rrule, timezone], ['rrule', rule, 'Europe/Berlin']);
    assert.match(
      await house.run('alarm', 'show', 'month'),
      /every month on the last Friday at 17:00 in Europe\/Berlin/,
    );
    const weekly = rule.replace('MONTHLY;BYDAY=-1FR', 'WEEKLY;INTERVAL=2;BYDAY=MO');
    await house.run('alarm', 'edit', id, '--rrule', weekly);
    const edited = await house.client.getAlarm(id);
    assert.deepEqual([edited.rrule, edited.timezone], [weekly, 'Europe/Berlin']);
    const { status, stderr } = await reveille(house.home.path, ['alarm', 'edit', id, '--cron', '@daily']);
    assert.equal(status, 1);
    assert.match(stderr, /--cron is only for kind "cron"; this alarm is "rrule"/);
  });

  test('takes model, tools and channels, and refuses a channel that the user does not have', async () => {
    const words = ['--in', '1h', '--model', 'small', '--tools', 'm__price, m__note', '--deliver'];
    // Without data of a notifier on this computer, the names of its channels are not known.
    const early = await set('x', ...words, 'fax');
    assert.deepEqual((await house.client.getAlarm(early)).deliver, ['fax']);
    await house.run('notify', 'add', 'ntfy', '--topic', 'ada', '--name', 'phone');
    const alarm = await house.client.getAlarm(await set('x', ...words, 'phone'));
    assert.deepEqual([alarm.model, alarm.tools, alarm.deliver], ['small', ['m__price', 'm__note'], ['phone']]);
    for (const given of [
      ['set', 'x', ...words, 'phone,fax'],
      ['edit', alarm.id, '--deliver', 'fax'],
    ]) {
      const { status, stderr } = await reveille(house.home.path, ['alarm', ...given]);
      assert.equal(status, 2);
      assert.match(stderr, /--deliver must name channels of yours \(got "fax"; you have phone\)/);
    }
    assert.deepEqual((await house.client.getAlarm(alarm.id)).deliver, ['phone']);
  });

  test('takes events and absence in place of a time, and shows the address of webhooks', async () => {
    const flags = ['--on', 'github', '--filter', '/body/action=opened', '--quiet-for', '30s', '--repeat'];
    const said = await house.run('alarm', 'set', 'Review it', ...flags, '--label', 'review');
    assert.match(said, /^Set .*\n {2}waits for webhook \(github\), if \/body\/action is opened, once quiet for 30 s/);
    assert.match(said, /^ {2}address .*\/hooks\/\S+ \(signed as by GitHub\)\n {2}secret {2}\S+ \(shown only now\)$/m);
    const shown = await house.run('alarm', 'show', 'review');
    assert.match(shown, /^ {2}waits for {2}webhook \(github\), if \/body\/action is opened/m);
    assert.match(shown, /^ {2}address {4}.*\/hooks\//m);
    assert.doesNotMatch(shown, /9999|^ {2}fires/m);
    assert.match(await house.run('alarm', 'list', '--kind', 'event'), /on an event/);
    // An edit of one part keeps the others.
    await house.run('alarm', 'edit', 'review', '--quiet-for', '1m');
    const filter = { pointer: '/body/action', equals: 'opened' };
    const rest = { source: 'webhook', verify: 'github', repeat: 'always' };
    const { event } = await house.client.getAlarm(
      JSON.parse(await house.run('alarm', 'show', 'review', '--json')).alarm.id,
    );
    assert.deepEqual(event, { ...rest, filter, quiet_for: 'PT1M' });

    const beat = await house.run('alarm', 'set', 'The backup is missing', '--expect-every', '1d', '--grace', '1h');
    assert.match(
      beat,
      /expects a call of its address every 1 d \(grace 1 h\)\n {2}address .*\(the address is the secret\)/,
    );
    const [, id = ''] = /^Set (\S+)/.exec(beat)!;
    const edited = await house.run('alarm', 'edit', id, '--on', 'webhook');
    assert.match(edited, /^ {2}secret +whsec_\S+ \(shown only now\)$/m);
    assert.doesNotMatch(await house.run('alarm', 'show', id), /whsec_/);
    const { status, stderr } = await reveille(house.home.path, [
      'alarm',
      'set',
      'x',
      'tomorrow 9am',
      '--on',
      'webhook',
    ]);
    assert.equal(status, 2);
    assert.match(stderr, /--on takes the place of a time; omit "tomorrow 9am"/);
  });

  test('follows another alarm by its label', async () => {
    await set('Check the backup', '--cron', '@daily', '--label', 'nightly');
    const said = await house.run('alarm', 'set', 'Summarise', '--after', 'nightly', '--after-outcome', 'any');
    assert.match(said, /\n {2}after the turn of "nightly", whatever its outcome\n$/);
    assert.match(await house.run('alarm', 'list'), /after the turn of "nightly", whatever its outcome/);
    const id = await set('x', '--after', 'nightly', '--label', 'follower');
    assert.match(await house.run('alarm', 'show', id), /^ {2}after {3}the turn of "nightly"$/m);
    const { status, stderr } = await reveille(house.home.path, ['alarm', 'set', 'x', '--after', 'nowhere']);
    assert.equal(status, 1);
    assert.match(stderr, /no alarm has the id or label "nowhere"/);
  });

  test('takes a check and a command, which an edit changes in part or clears', async () => {
    const url = 'https://example.com/feed';
    const id = await set('x', '--in', '1h', '--check-url', url, '--check-changed', '--max-skips', '5');
    assert.deepEqual((await house.client.getAlarm(id)).check, { http: { url, etag: 'changed' }, max_skips: 5 });
    assert.match(await house.run('alarm', 'show', id), /^ {2}checks {4}https:.* \(changed\), wakes after 5 skips$/m);
    await house.run('alarm', 'edit', id, '--wake-at-least', '1d');
    // Another address is another check, with the limits of the first.
    await house.run('alarm', 'edit', id, '--check-url', `${url}/2`, '--check-pointer', '/n', '--check-equals', '5');
    assert.deepEqual((await house.client.getAlarm(id)).check, {
      http: { url: `${url}/2`, pointer: '/n', equals: 5 },
      ...{ max_skips: 5, wake_at_least_every: 'PT24H' },
    });
    const refused = await reveille(house.home.path, ['alarm', 'edit', id, '--check-command', './new-mail.sh']);
    assert.deepEqual([refused.status, /commands need a machine of this computer/.test(refused.stderr)], [1, true]);
    const run = ['--run', './backup.sh --all'];
    const nowhere = await reveille(house.home.path, ['alarm', 'edit', id, ...run]);
    assert.match(nowhere.stderr, /run: commands need a machine of this computer/);
  });

  test('takes a command before the user has a machine', async (t) => {
    const own = await startInstallation(t);
    const { id } = await own.client.createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: 3600 });
    await own.run('alarm', 'edit', id, '--run', './backup.sh --all');
    assert.deepEqual((await own.client.getAlarm(id)).run, { argv: ['./backup.sh', '--all'] });
    assert.match(await own.run('alarm', 'list'), /runs \.\/backup\.sh --all/);
    const { status, stderr } = await reveille(own.home.path, ['alarm', 'edit', id, '--run', 'ls | wc']);
    assert.equal(status, 2);
    assert.match(stderr, /--run is run without a shell, so \| has no meaning/);
  });

  test('is recorded as the text of the person at the keyboard', async () => {
    const id = await set('call the bank', '--in', '1h', '--as', 'Ada Lovelace');
    assert.deepEqual((await house.client.getAlarm(id)).set_by, { kind: 'person', name: 'Ada Lovelace' });
    assert.match(await house.run('alarm', 'show', id), /set by +Ada Lovelace, a person/);
    const named = (await house.client.getAlarm(await set('x', '--in', '1h'))).set_by?.name;
    assert.equal(named, userInfo().username);
    // A client with the agent's key and the transport token, without the operator's credentials.
    const own = await house.client.createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: 3600 });
    assert.equal((await house.client.getAlarm(own.id)).set_by, undefined);
  });

  test('a series without a chosen zone says in which zone its expression is read', async () => {
    const ring = String.raw`\w{3} \d+ \w{3}( \d{4})? 09:00`;
    const weekdays = await house.run('alarm', 'set', 'x', '--cron', '0 9 * * 1-5');
    assert.match(
      weekdays,
      new RegExp(
        `^Set .*\n  a series: every weekday at 09:00\n  fires in .*: ${ring}, then ${ring}, then ${ring}\n  read in Europe/Berlin\n$`,
      ),
    );
    const zoned = await house.run('alarm', 'set', 'x', '--cron', '0 9 * * 1-5', '--zone', 'Asia/Tokyo');
    assert.match(zoned, / 09:00\n {2}read in Asia\/Tokyo\n$/);
    // A duration is the same in every zone.
    assert.doesNotMatch(await house.run('alarm', 'set', 'x', '--cron', '@every 90s'), /read in|Berlin/);
    const every = await house.run('alarm', 'set', 'x', '--cron', '@every 90s', '--json');
    assert.doesNotMatch(every, /"zone"|Berlin/);
    // A series is confirmed with its next three instants.
    const hours = await house.run('alarm', 'set', 'x', 'every 2 hours');
    assert.match(hours, /^Set .*\n {2}a series: every 2 h\n {2}fires in .*: \w.*, then \w.*, then \w.*\n$/);
  });

  test('message and payload arrive at the agent unchanged', async () => {
    const message = 'Ünïcödé 日本語 \u202e \u0007 trailing  \r\n\t';
    const payload = '{"big":12345678901234567890,"one":1.0,"b":1,"a":[1e400,"\\u0041"]}';
    const file = join(house.home.path, 'payload.json');
    writeFileSync(file, `${payload}\n`);
    const words = ['alarm', 'set', '--message-file', '-', '--in', '1s', '--payload-file', file, '--json'];
    const { status, stdout, stderr } = await house.attempt(words, { input: message });
    assert.equal(status, 0, stderr);
    const { id } = JSON.parse(stdout);
    await eventually('the alarm has fired', async () => (await statusOf(id)) === 'fired');
    const turn = agent.turns.find((body) => body.includes(id))!;
    assert.equal(JSON.parse(turn).message, message);
    assert.equal(sliceAt(turn, ['payload']), payload);

    const shown = await house.run('alarm', 'show', id, '--json');
    assert.equal(sliceAt(shown, ['alarm', 'payload']), payload);
    assert.match(await house.run('alarm', 'show', id), /\n {2}Ünïcödé 日本語 \\u202e \\u0007 trailing {2}\\u000d\n/);
  });

  test('a repeated key sets no second alarm and says so; another definition under it is refused', async () => {
    const words = ['alarm', 'set', 'once only', '--in', '1h', '--key', 'k1'];
    const first = JSON.parse(await house.run(...words, '--json'));
    const again = await house.run(...words);
    assert.match(again, new RegExp(`^Already set with this key and definition: ${first.id}\n`));
    const other = await house.attempt(['alarm', 'set', 'another', '--in', '1h', '--key', 'k1']);
    assert.equal(other.status, 1);
    assert.match(other.stderr, /^error: --key "k1" belongs to .* differs in the message;/);
  });

  test('an impossible command line ends with 2, prints the reason, and sets nothing', async () => {
    const before = (await house.run('alarm', 'list', '--all', '--json')).split('\n').length;
    const cases: [string[], RegExp][] = [
      [['m'], /give --in, --at, --cron or --rrule/],
      [['m', '--in', '5'], /^error: --in must be a duration such as 90s/],
      [['m', '--in', '1m', '--at', '2036-01-01T00:00:00Z'], /--in and --at exclude each other/],
      [['m', '--in', '1m', '--payload', '{oops}'], /--payload must be JSON/],
      [['m', '--in', '1m', '--no-such-flag'], /unknown option '--no-such-flag'/],
      [['m', 'n', '--in', '1m'], /"n" and --in both give a time/],
      [['--in', '1m'], /the message is missing/],
    ];
    const outcomes = await Promise.all(cases.map(([words]) => house.attempt(['alarm', 'set', ...words])));
    for (const [at, [words, said]] of cases.entries()) {
      const { status, stdout, stderr } = outcomes[at]!;
      assert.deepEqual([status, stdout], [2, ''], words.join(' '));
      assert.match(stderr, said);
    }
    const json = await house.attempt(['alarm', 'set', 'm', '--json']);
    assert.equal(json.status, 2);
    assert.equal(JSON.parse(json.stderr).error.code, 'invalid_request');
    assert.equal((await house.run('alarm', 'list', '--all', '--json')).split('\n').length, before);
  });

  test('a refusal of chronosd ends with 1 and its sentence', async () => {
    const cases: [string[], RegExp][] = [
      [['m', '--at', '2020-01-01T00:00:00Z'], /^error: --at must be in the future/],
      [['m', '--cron', '61 * * * *'], /^error: --cron: minute "61"/],
      [['m', '--cron', '@daily', '--zone', 'Mars/Base'], /Mars\/Base/],
      [['', '--in', '1m'], /the message must not be empty/],
    ];
    const outcomes = await Promise.all(cases.map(([words]) => house.attempt(['alarm', 'set', ...words])));
    for (const [at, [words, said]] of cases.entries()) {
      assert.equal(outcomes[at]!.status, 1, words.join(' '));
      assert.match(outcomes[at]!.stderr, said);
    }
  });
});

test('a lost answer to alarm set says that its outcome is unknown, and how to go on', async (t) => {
  const chronosd = await startStandInChronosd();
  atEnd(t, () => chronosd.close());
  const env = { MATRIX_CHRONOS_URL: chronosd.url, MATRIX_CHRONOS_TOKEN: chronosd.token };
  for (const status of [200, 502, 503, 504]) {
    chronosd.misbehave = (request, response) => {
      if (request.method !== 'POST' || request.url !== '/v1/alarms') return false;
      response.writeHead(status).end('<h1>Bad Gateway</h1>');
      return true;
    };
    const set = await house.attempt(['alarm', 'set', 'm', '--in', '1h', '--key', 'k'], { env });
    assert.equal(set.status, 1);
    assert.match(set.stderr, /it is unknown whether the request was carried out: .* with the same --key; .* list/);
  }
});

describe('reveille alarm list', () => {
  test('shows status, next fire and message on aligned lines, and whole alarms as JSON lines', async () => {
    const id = await set(
      'A message for the list, with more text than fits in 80 columns',
      '--in',
      '2h',
      '--label',
      'listed',
    );
    const text = await house.run('alarm', 'list');
    const [heading, ...rest] = text.split('\n');
    assert.match(heading!, /^ID +STATUS +SCHEDULE +FIRES +AT +MESSAGE$/);
    const line = rest.find((one) => one.startsWith(id.slice(0, 13)));
    assert.match(
      line!,
      /active +once +in 2 h +.*listed: A message for the list, with more text than fits in 80 columns$/,
    );
    const foot = /\n\d+ alarms(, \d+ more with --limit \d+)?; --all includes finished ones\. Times in Europe\/Berlin/;
    assert.match(text, foot);
    const jsons = (await house.run('alarm', 'list', '--json')).trim().split('\n');
    assert.ok(jsons.some((one) => JSON.parse(one).id === id && JSON.parse(one).label === 'listed'));
  });

  test('shows upcoming alarms first, by time, and finished ones only on request', async () => {
    const [late, soon, over] = [
      await set('late', '--in', '9d'),
      await set('soon', '--in', '20m'),
      await set('over', '--in', '1h'),
    ];
    await house.run('alarm', 'cancel', over!);
    const ids = async (...words: string[]) =>
      (await house.run('alarm', 'list', ...words, '--json'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    const ahead = await ids();
    assert.ok(ahead.every(({ status }) => status !== 'cancelled' && status !== 'fired'));
    const rings = ahead.filter(({ status }) => status === 'active').map(({ next_fire_at: at }) => at);
    assert.deepEqual(rings, rings.toSorted());
    const places = ahead.map(({ id }) => id);
    assert.ok(places.indexOf(soon) < places.indexOf(late), 'the nearer one is first');
    const all = await ids('--all');
    assert.ok(all.some(({ id }) => id === over));
    assert.equal(
      all.findIndex(({ status }) => status === 'cancelled') > all.findLastIndex(({ status }) => status === 'active'),
      true,
    );
    assert.equal((await ids('--limit', '1')).length, 1);
  });

  test('lists all pages with --all, and filters', async () => {
    const set2 = [await set('p1', '--cron', '@yearly'), await set('p2', '--cron', '@yearly')];
    await house.run('alarm', 'pause', set2[0]!);
    const ids = async (...words: string[]) =>
      (await house.run('alarm', 'list', ...words, '--json'))
        .split('\n')
        .filter((line) => line !== '')
        .map((line): string => JSON.parse(line).id);
    const all = await ids('--all');
    assert.equal(new Set(all).size, all.length);
    assert.ok(set2.every((id) => all.includes(id)));
    assert.deepEqual(await ids('--status', 'paused'), [set2[0]]);
    assert.ok((await ids('--kind', 'cron', '--all')).includes(set2[1]!));
    assert.ok(!(await ids('--kind', 'once', '--all')).includes(set2[1]!));
    const wrong = await house.attempt(['alarm', 'list', '--status', 'sleeping']);
    assert.equal(wrong.status, 2);
    assert.match(wrong.stderr, /--status must be one of active, paused, fired, cancelled, failed \(got "sleeping"\)/);
  });

  test('ends quietly when its reader has closed', async () => {
    const child = spawn(process.execPath, [PROGRAM, 'alarm', 'list', '--all', '--limit', '1', '--json'], {
      env: { PATH: process.env.PATH ?? '', REVEILLE_HOME: house.home.path },
    });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.stdout.once('data', () => child.stdout.destroy());
    const status = await new Promise((resolve) => child.once('close', resolve));
    assert.deepEqual([status, stderr], [0, '']);
  });
});

describe('an alarm id', () => {
  test('may be shortened, in any case, as long as one alarm matches', async () => {
    const id = await set('x', '--in', '1h');
    const show = async (given: string) => JSON.parse(await house.run('alarm', 'show', given, '--json')).alarm.id;
    assert.equal(await show(id.slice(0, 18)), id);
    assert.equal(await show(id.slice(0, 23).toUpperCase()), id);
    assert.equal(await show(id.toUpperCase()), id);
  });

  test('with several matches, no match or a wrong form is refused with the remedy', async () => {
    const id = await set('twin', '--in', '1h');
    await set('other twin', '--in', '1h');
    const several = await house.attempt(['alarm', 'cancel', id.slice(0, 6)]);
    assert.equal(several.status, 1);
    assert.match(several.stderr, /matches [0-9a-f-]+ \(other twin\), [0-9a-f-]+ \(twin\).*; give more of the id/);
    assert.equal(await statusOf(id), 'active');
    const none = await house.attempt(['alarm', 'show', '000000']);
    assert.equal(none.status, 1);
    assert.match(none.stderr, /no alarm has the id or label "000000"/);
    const foreign = await house.attempt(['alarm', 'show', '019ed2b4-7c11-7000-8000-000000000001']);
    assert.equal(foreign.status, 1);
    const wrong = [id.slice(0, 5), 'not-an-id', '../../../x'];
    for (const { status, stderr } of await Promise.all(wrong.map((given) => house.attempt(['alarm', 'show', given])))) {
      assert.equal(status, 1);
      assert.match(stderr, /no alarm has the id or label ".*shortened to 6 characters/);
    }
    assert.equal((await house.attempt(['alarm', 'show', ''])).status, 2);
  });

  test('may be the label of one alarm; of several, active ones are preferred', async () => {
    const id = await set('x', '--in', '1h', '--label', 'the build');
    const show = async (given: string) => JSON.parse(await house.run('alarm', 'show', given, '--json')).alarm.id;
    assert.equal(await show('the build'), id);
    assert.match(await house.run('alarm', 'cancel', 'the build'), new RegExp(`^Cancelled ${id}`));
    assert.equal(await show('the build'), id, 'a finished one is found as well');
    const again = await set('x', '--in', '1h', '--label', 'the build');
    assert.equal(await show('the build'), again);
    await set('y', '--in', '1h', '--label', 'the build');
    const several = await house.attempt(['alarm', 'cancel', 'the build']);
    assert.equal(several.status, 1);
    assert.match(several.stderr, /"the build" matches .*give more of the id/);
    assert.equal(await statusOf(again), 'active');
  });
});

describe('reveille alarm preview', () => {
  const preview = (...words: string[]) => reveille(house.home.path, ['alarm', 'preview', ...words]);

  test('prints the next fires and what a clock change does, and sets nothing', async () => {
    const before = (await house.client.listAlarms({ limit: 500 })).count;
    const words = ['every day at 2:30', '--zone', 'Europe/Berlin', '--from', '2036-03-29', '--count', '2'];
    const { stdout } = await preview(...words);
    assert.match(stdout, /^every day at 02:30 in Europe\/Berlin\n {2}Sat 29 Mar 2036 02:30 {2}in /);
    assert.match(
      stdout,
      /\n {2}Sun 30 Mar 2036 03:00 .*\n {4}the clock skips 02:30 on this day: the first instant after\n$/,
    );
    const json = JSON.parse((await preview(...words, '--json')).stdout);
    assert.equal(json.occurrences[1].local, '2036-03-30T03:00:00+02:00');
    assert.equal((await house.client.listAlarms({ limit: 500 })).count, before);
  });

  test('refuses what could not be set, with the flag', async () => {
    for (const [words, said] of [
      [['tomorrow at 7'], /write "tomorrow at 7:00" or "tomorrow at 19:00"/],
      [['--cron', '@every 1s'], /--cron must leave at least 10 seconds/],
      [['every day at 9', '--count', '101'], /--count must be a whole number from 1 to 100/],
      [['every day at 9', '--from', 'later'], /--from must be a date or an instant/],
    ] as const) {
      const { status, stderr } = await preview(...words);
      assert.notEqual(status, 0);
      assert.match(stderr, said);
    }
  });
});

describe('reveille alarm edit', () => {
  test('changes the named members, removes the cleared ones, and keeps the rest', async () => {
    const id = await set('before', '--in', '1h', '--label', 'old', '--jitter', '5s', '--payload', '{"n":1.0}');
    const said = await house.run('alarm', 'edit', id, '--label', 'new', '--in', '2h', '--clear', 'jitter');
    assert.match(said, new RegExp(`^Changed\nAlarm ${id}\n`));
    assert.match(said, /fires +in 2 h,/);
    const { alarm } = JSON.parse(await house.run('alarm', 'show', id, '--json'));
    assert.deepEqual([alarm.label, alarm.wake_message, alarm.jitter_seconds], ['new', 'before', undefined]);
    await house.run('alarm', 'edit', 'new', '--message', 'after', '--payload', '{"n":2.0}');
    const shown = await house.run('alarm', 'show', id, '--json');
    assert.equal(JSON.parse(shown).alarm.wake_message, 'after');
    assert.equal(sliceAt(shown, ['alarm', 'payload']), '{"n":2.0}');
    assert.deepEqual(
      JSON.parse(shown).alarm.set_by.kind,
      'person',
      "a person's message stays marked as one after an edit",
    );
    await house.run('alarm', 'edit', id, '--message', 'again', '--as', 'Ada Lovelace');
    assert.match(await house.run('alarm', 'show', id), /set by +Ada Lovelace, a person/);
  });

  test('reports an impossible edit, and changes nothing', async () => {
    const id = await set('x', '--in', '1h', '--label', 'stays');
    const cases: [string[], number, RegExp][] = [
      [[], 2, /no change is given/],
      [['--clear', 'colour'], 2, /--clear must name some of label, .*\(got "colour"\)/],
      [['--label', 'a', '--clear', 'label'], 2, /label is set and cleared/],
      [['--in', '1h', '--at', '2036-01-01T00:00:00Z'], 2, /--in and --at exclude each other/],
      [['--cron', '@daily'], 1, /^error: --cron is only for kind "cron"/],
      [['--at', '2020-01-01T00:00:00Z'], 1, /^error: --at must be in the future/],
      [['--in', '100000d'], 1, /^error: --in, in seconds, must be/],
    ];
    const series = await set('y', '--cron', '@daily');
    const foreign = await house.attempt(['alarm', 'edit', series, '--in', '20m']);
    assert.equal(
      foreign.stderr,
      'error: --in is only for kind "once"; this alarm is "cron", omit --in, or set a new alarm\n',
    );
    for (const [words, status, said] of cases) {
      const outcome = await house.attempt(['alarm', 'edit', id, ...words]);
      assert.equal(outcome.status, status, `${words.join(' ')}: ${outcome.stderr}`);
      assert.match(outcome.stderr, said);
    }
    assert.equal(JSON.parse(await house.run('alarm', 'show', id, '--json')).alarm.label, 'stays');
  });
});

describe('changing an alarm', () => {
  test('pause, resume and cancel print the new status', async () => {
    const id = await set('x', '--in', '1h');
    assert.match(await house.run('alarm', 'pause', id), new RegExp(`^Paused ${id}\n.*: reveille alarm resume ${id}\n`));
    assert.match(
      await house.run('alarm', 'resume', id),
      new RegExp(`^Resumed ${id}\n {2}fires in (59 min \\d+ s|1 h), `),
    );
    assert.equal(await house.run('alarm', 'cancel', id), `Cancelled ${id}\n`);
    const resume = await house.attempt(['alarm', 'resume', id]);
    assert.equal(resume.status, 1);
    assert.match(resume.stderr, /only a paused alarm can be resumed; this one is cancelled/);
    const fired = await set('x', '--in', '1s');
    await eventually('the alarm has fired', async () => (await statusOf(fired)) === 'fired');
    assert.equal(await house.run('alarm', 'cancel', fired), `${fired} is already fired; nothing was cancelled\n`);
  });

  test('trigger fires at once, beside the schedule, and the ledger shows it', async () => {
    const id = await set('x', '--in', '1h');
    assert.match(
      await house.run('alarm', 'trigger', id),
      new RegExp(`^Triggered ${id}\n {2}fires now, as ${id}@\\d+;`),
    );
    await eventually('it rang once', async () => (await house.client.getAlarm(id)).fire_count === 1);
    const shown = await house.run('alarm', 'show', id);
    assert.match(shown, /\n {2}status +active\n/);
    assert.match(shown, /\n {2}has fired +1 time, the last /);
    assert.match(
      shown,
      /\nFires, latest first\n {2}DUE +ATTEMPT +OUTCOME +STARTED +TOOK\n.* 1 +accepted \(20\d\) +.*(late|on time) +[\d.]+ m?s\n/,
    );
  });

  test('a failed alarm shows its error, and redrive tries the same occurrence again', async () => {
    agent.status = 410;
    const id = await set('x', '--in', '1s');
    await eventually('the alarm has failed', async () => (await statusOf(id)) === 'failed');
    agent.status = 202;
    const list = await house.run('alarm', 'list', '--status', 'failed');
    assert.match(list, /\n +1 failed attempt of 100, the last one: .*410/);
    assert.match(await house.run('alarm', 'redrive', id), new RegExp(`^Redriven ${id}\n {2}fires `));
    await eventually('the alarm has fired', async () => (await statusOf(id)) === 'fired');
    const { fires } = JSON.parse(await house.run('alarm', 'show', id, '--json'));
    assert.deepEqual(
      fires.map((fire: { outcome: string }) => fire.outcome),
      ['delivered', 'failed'],
    );
    assert.equal(new Set(fires.map((fire: { fire_id: string }) => fire.fire_id)).size, 1);
  });
});

describe('without chronosd', () => {
  const words = ['alarm', 'list'];
  test('an empty home prints how to begin', async (t) => {
    const { status, stderr } = await reveille(join(temporaryFolder(t), 'home'), words);
    assert.equal(status, 1);
    assert.match(stderr, /^error: no token for chronosd at http:\/\/127\.0\.0\.1:9096: run "reveille up" once/);
  });

  test('an address without a listener is named, with the remedy', async () => {
    const env = { MATRIX_CHRONOS_URL: 'http://127.0.0.1:1', MATRIX_CHRONOS_TOKEN: 'x' };
    const { status, stderr } = await house.attempt(words, { env });
    assert.equal(status, 1);
    assert.match(stderr, /cannot reach chronosd at http:\/\/127\.0\.0\.1:1 .*start it with "reveille up"/);
  });

  test("this machine's token is sent to no other chronosd", async () => {
    const { status, stderr } = await house.attempt(words, { env: { MATRIX_CHRONOS_URL: 'http://127.0.0.1:1' } });
    assert.equal(status, 1);
    assert.match(stderr, /no token for chronosd at http:\/\/127\.0\.0\.1:1: set MATRIX_CHRONOS_TOKEN/);
  });

  test('a damaged record of secrets, identity or run is named and left unchanged', async (t) => {
    for (const file of ['secrets.json', 'identity.json', 'run.json']) {
      const home = temporaryFolder(t);
      writeFileSync(join(home, file), '{"half":', { mode: 0o600 });
      const { status, stderr } = await reveille(home, words, { env: { CHRONOS_TOKEN: 'x'.repeat(16) } });
      assert.equal(status, 1);
      assert.match(stderr, new RegExp(`${file.replace('.', '\\.')} is damaged and was not changed`));
    }
  });
});

describe('reveille alarm backfill', () => {
  test('says how many fires it adds, and none twice', async () => {
    const id = await set('count the stock', '--cron', '0 * * * *', '--zone', 'UTC');
    const words = ['alarm', 'backfill', id, '--from', '2026-01-01', '--to', '2026-01-01 06:00', '--zone', 'UTC'];
    const said = await house.run(...words);
    assert.match(said, /^Backfills 6 fires of [0-9a-f-]{36}, the oldest first\n {2}from .* to .*\n$/);
    const again = JSON.parse(await house.run(...words, '--json'));
    assert.deepEqual(again.backfill, { added: 0, known: 6 });
    assert.match(
      await house.run(...words),
      /^Nothing to backfill for .*\n {2}6 of that time have fired or wait already\n$/,
    );
  });

  test('a dry run only counts', async () => {
    const id = await set('count the stock', '--cron', '0 * * * *', '--zone', 'UTC');
    const words = ['alarm', 'backfill', id, '--from', '2025-01-01', '--to', '2025-03-01', '--zone', 'UTC', '--dry-run'];
    assert.match(await house.run(...words), /^Would backfill 1416 fires of [0-9a-f-]{36}, the oldest first\n/);
    const { backfill } = JSON.parse(await house.run(...words, '--json'));
    assert.deepEqual([backfill.added, backfill.known, backfill.dry_run], [1416, 0, true]);
    const wrong = await house.attempt(['alarm', 'backfill', id, '--from', '2025-01-01', '--zone', 'Mars/Base']);
    assert.match(wrong.stderr, /--zone must be a time zone such as Europe\/Berlin \(got "Mars\/Base"\)/);
  });

  test('on a terminal, asks with the count before it acts', { skip: needs('script') }, async (t) => {
    const id = await set('count the stock', '--cron', '0 * * * *', '--zone', 'UTC');
    const words = ['alarm', 'backfill', id, '--from', '2026-01-01', '--to', '2026-01-01 06:00', '--zone', 'UTC'];
    const answer = async (text: string) => {
      const terminal = watchCommand({ columns: 100, rows: 30 }, [process.execPath, PROGRAM, ...words], {
        ...{ PATH: process.env.PATH ?? '', HOME: house.home.path, REVEILLE_HOME: house.home.path, NO_COLOR: '1' },
      });
      t.after(() => terminal.end());
      await terminal.until(/Fire them now\? \(y\/N\)$/);
      const status = await terminal.ended(`${text}\r`);
      return `${status} ${terminal.all().join('\n')}`;
    };
    const counted = async () => JSON.parse(await house.run(...words, '--dry-run', '--json')).backfill.added;
    assert.match(await answer(''), /^0 Backfills 6 fires of .*\n {2}from .*\n.*\nNothing was changed/);
    assert.equal(await counted(), 6);
    assert.match(await answer('y'), /^0 Backfills 6 fires of /);
    assert.equal(await counted(), 0);
  });

  test('refuses more than 1,000 fires without --yes, and a time that is none', async () => {
    const id = await set('count the stock', '--cron', '0 * * * *');
    const long = ['alarm', 'backfill', id, '--from', '2025-01-01', '--to', '2025-03-01', '--zone', 'UTC'];
    const refused = await house.attempt(long);
    assert.equal(refused.status, 1);
    assert.match(refused.stdout, /^Backfills 1416 fires of /);
    assert.match(refused.stderr, /the backfill has 1416 fires, more than 1000; confirm it with .*--yes/);
    const wrong = await house.attempt(['alarm', 'backfill', id, '--from', 'last week']);
    assert.equal(wrong.status, 2);
    assert.match(
      wrong.stderr,
      /--from must be a date or an instant, such as --from "2026-11-20 09:00" \(got "last week"\)/,
    );
    assert.match((await house.attempt(['alarm', 'backfill', id])).stderr, /--from is missing/);
  });
});

test('status says what active alarms wait for when none has a time', async (t) => {
  const own = await startInstallation(t);
  const nextFire = async () => /next fire +(.*)/.exec(await own.run('status'))?.[1];
  assert.equal(await nextFire(), 'no alarm is active');
  await own.client.createAlarm({ kind: 'event', wake_message: 'x', event: { source: 'webhook' } });
  assert.equal(await nextFire(), 'none has a time; 1 waits for events');
  await own.client.createAlarm({ kind: 'once', wake_message: 'look', delay_seconds: 3600 });
  assert.match((await nextFire())!, /in (1 h|60 min|59 min).* look$/);
});

test('status finds the next fire behind more alarms that are due for looks than a page has', async (t) => {
  const own = await startInstallation(t);
  await own.run('machine', 'put', '--provider', 'process', '--dir', temporaryFolder(t), '--', '/bin/true');
  const looked = { kind: 'event', wake_message: 'x', event: { source: 'file', path: 'inbox' } } as const;
  await Promise.all(Array.from({ length: 101 }, () => own.client.createAlarm(looked)));
  await own.client.createAlarm({ kind: 'once', wake_message: 'look', delay_seconds: 7200 });
  assert.match(await own.run('status'), /next fire +\d.* look\n/);
});
