import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { claudeJobs } from './claude.ts';
import { crontabJobs } from './crontab.ts';
import type { ImportContext } from './job.ts';
import { openclawJobs } from './openclaw.ts';
import { openclawDatabaseText } from './openclaw-database.ts';
import { type Planned, planImport } from './plan.ts';
import { sourceText } from './source-file.ts';
import { systemdJobs } from './systemd.ts';
import { spanSeconds } from './systemd-time.ts';

const NOW = Date.parse('2026-12-01T10:20:30Z');
const context: ImportContext = {
  ...{ now: NOW, zone: 'Europe/Berlin', home: '/home/ann', folder: '/home/ann/work' },
  ...{ asMessages: false, withoutGates: false, environment: {}, read: sourceText, readBeside: sourceText },
  isUser: (name) => ['root', 'ann', 'mail'].includes(name),
  isProgram: (name) => ['/usr/bin/true', 'mail', 'report'].includes(name),
};
const utc = { ...context, zone: 'UTC' };

const crontab = (text: string, options = context) =>
  planImport('crontab', crontabJobs(text, 'crontab -l', { hasUserColumn: false, ...options }), options);
const openclaw = (jobs: readonly object[], options = context) =>
  planImport('openclaw', openclawJobs(JSON.stringify({ version: 1, jobs }), 'jobs.json', options), options);
const claude = (tasks: readonly object[], options = utc) =>
  planImport('claude', claudeJobs(JSON.stringify({ tasks }), 'scheduled_tasks.json', options), options);

const nextOf = ({ next, not_imported }: Planned) =>
  next?.map((at) => at.replace('.000Z', 'Z')) ?? [`not imported: ${not_imported}`];

// The instants below were computed by another program: minute after minute, or with "systemd-analyze calendar".
const CRON_TABLE: readonly (readonly [expression: string, next: string, zone?: string])[] = [
  ['0 9 * * 1-5', '2026-12-02 08:00:00 2026-12-03 08:00:00 2026-12-04 08:00:00'],
  ['*/15 * * * *', '2026-12-01 10:30:00 2026-12-01 10:45:00 2026-12-01 11:00:00'],
  ['30 4 1,15 * 5', '2026-12-04 03:30:00 2026-12-11 03:30:00 2026-12-15 03:30:00'],
  ['0 22 * * sun', '2026-12-06 21:00:00 2026-12-13 21:00:00 2026-12-20 21:00:00'],
  ['5 0 * dec *', '2026-12-01 23:05:00 2026-12-02 23:05:00 2026-12-03 23:05:00'],
  ['23 0-23/2 * * *', '2026-12-01 11:23:00 2026-12-01 13:23:00 2026-12-01 15:23:00'],
  ['0 0 29 2 *', '2028-02-28 23:00:00 2032-02-28 23:00:00'],
  ['@daily', '2026-12-01 23:00:00 2026-12-02 23:00:00 2026-12-03 23:00:00'],
  ['@weekly', '2026-12-05 23:00:00 2026-12-12 23:00:00 2026-12-19 23:00:00'],
  ['@monthly', '2026-12-31 23:00:00 2027-01-31 23:00:00 2027-02-28 23:00:00'],
  ['@yearly', '2026-12-31 23:00:00 2027-12-31 23:00:00 2028-12-31 23:00:00'],
  ['@hourly', '2026-12-01 11:00:00 2026-12-01 12:00:00 2026-12-01 13:00:00'],
  ['0 6 * * *', '2026-12-01 11:00:00 2026-12-02 11:00:00 2026-12-03 11:00:00', 'America/New_York'],
  ['15 14 1 * *', '2027-01-01 05:15:00 2027-02-01 05:15:00 2027-03-01 05:15:00', 'Asia/Tokyo'],
  ['59 23 31 12 *', '2026-12-31 23:59:00 2027-12-31 23:59:00 2028-12-31 23:59:00', 'UTC'],
  ['0 8-18/5 * * mon,wed,fri', '2026-12-02 07:00:00 2026-12-02 12:00:00 2026-12-02 17:00:00'],
  ['10,40 6 */10 * *', '2026-12-11 05:10:00 2026-12-11 05:40:00 2026-12-21 05:10:00'],
  ['0 12 * 1-3 7', '2027-01-03 11:00:00 2027-01-10 11:00:00 2027-01-17 11:00:00'],
  ['45 23 * * 6', '2026-12-05 22:45:00 2026-12-12 22:45:00 2026-12-19 22:45:00'],
  ['0 2 1 */3 *', '2026-12-31 15:00:00 2027-03-31 15:00:00 2027-06-30 16:00:00', 'Australia/Sydney'],
];
/** `2026-12-02 08:00:00 …` as instants. */
const instantsIn = (text: string) =>
  [...text.matchAll(/(\S{10}) (\S{8})/g)].map(([, date, time]) => `${date}T${time}Z`);

test('twenty lines of a crontab become alarms with the times of cron', () => {
  const lines = CRON_TABLE.flatMap(([expression, , zone]) => [
    `CRON_TZ=${zone ?? 'Europe/Berlin'}`,
    `${expression} /usr/local/bin/job --for="${expression.replaceAll('%', '')}"`,
  ]);
  const plans = crontab(lines.join('\n'), utc);
  assert.equal(plans.length, 20);
  for (const [at, [expression, next]] of CRON_TABLE.entries()) {
    const shown = nextOf(plans[at]!);
    assert.deepEqual(shown.slice(0, instantsIn(next).length), instantsIn(next), expression);
  }
});

test('a line of a crontab keeps shell, environment, standard input and delay', () => {
  const plans = crontab(
    [
      '# a comment',
      'MAILTO=ann@example.com',
      'PATH = "/opt/bin:/usr/bin"',
      'SHELL=/bin/bash',
      'RANDOM_DELAY=90',
      '\t30 2 * * * mail -s "50\\% done" bob%Dear Bob,%%bye',
    ].join('\n'),
  );
  const [plan] = plans;
  assert.deepEqual(plan?.alarm?.run?.argv, [
    ...['/usr/bin/env', 'PATH=/opt/bin:/usr/bin', '/bin/bash', '-c', 'printf %s "$1" | "$2" -c "$0"'],
    ...['mail -s "50% done" bob', 'Dear Bob,\n\nbye\n', '/bin/bash'],
  ]);
  assert.equal(plan?.alarm?.jitter_seconds, 3600);
  assert.equal(plan?.alarm?.catch_up, 'none');
  assert.deepEqual(plan?.differs, [
    'its RANDOM_DELAY of 90 minutes is cut to 60',
    'cron mailed its output to ann@example.com; use --deliver for a channel of yours',
  ]);
  assert.equal(plan?.becomes, 'every day at 02:30 in Europe/Berlin');
});

test('a wrapped command with standard input runs as in cron', () => {
  const [plan] = crontab('* * * * * tr a-z A-Z; echo done%hello%you', context);
  const [program = '', ...rest] = plan!.alarm!.run!.argv;
  const ran = spawnSync(program, rest, { encoding: 'utf8' });
  assert.equal(ran.stdout, 'HELLO\nYOU\ndone\n');
});

test('as messages, commands wake the agent', () => {
  const [plan] = crontab('@daily backup --all', { ...context, asMessages: true });
  assert.equal(plan?.alarm?.run, undefined);
  assert.equal(plan?.alarm?.wake_message, 'backup --all');
});

test('a table of the system has a column for the user, @reboot is no time, and a picked value is kept', () => {
  const text = '17 * * * * root run-parts /etc/cron.hourly\n@reboot root once\n0~59 3 * * * root daily\n';
  const list = crontabJobs(text, '/etc/cron.d/own', context);
  const [first, second, third] = planImport('crontab', list, context);
  assert.equal(first?.alarm?.wake_message, 'run-parts /etc/cron.hourly');
  assert.deepEqual(first?.differs, ['cron ran it as root; your agent runs it']);
  assert.equal(second?.not_imported, '@reboot fires when the computer starts, which is no time');
  assert.match(third?.alarm?.cron_expr ?? '', /^[1-5]?\d 3 \* \* \*$/);
  assert.match(third?.differs[0] ?? '', /^cron picks a value of 0~59 at each start; the alarm keeps \d+$/);
});

test('equal lines are two jobs, and a line keeps its key', () => {
  const keys = (text: string) => crontab(text).map(({ alarm }) => alarm?.idempotency_key);
  const [one, two] = keys('@daily x\n@daily x');
  assert.notEqual(one, two);
  assert.deepEqual(keys('# moved\n@hourly y\n@daily x').slice(1), [one]);
});

test('a wrong line is skipped with its number, field and remedy, and the others are imported', () => {
  const skipped = (line: string, name: string, reason: RegExp) => {
    const [good, wrong] = crontab(`@daily good\n${line}`);
    assert.equal(good?.alarm?.wake_message, 'good');
    assert.equal(wrong?.name, name);
    assert.match(wrong?.not_imported ?? '', reason);
  };
  skipped('61 * * * * x', 'line 2: 61 * * * * x', /^minute "61" is outside 0-59 \(got "61 \* \* \* \*"\)$/);
  skipped('0 9 * *', 'line 2: 0 9 * *', /^a job must have a time, such as "0 9 \* \* 1-5" or @daily, and a command/);
  skipped('@fortnightly x', 'line 2: @fortnightly x', /^"@fortnightly" is not a descriptor/);
  skipped('0 0 31 2 * x', 'line 2: 0 0 31 2 * x', /^no date ever matches/);
  skipped('50~10 9 * * * x', 'line 2: 50~10 9 * * * x', /^"50~10" runs backwards/);
  skipped('CRON_TZ=Berlin\n@daily x', 'line 3: @daily x', /^CRON_TZ=Berlin above it is no IANA zone/);
  skipped('0 0 * * *  ', 'line 2: 0 0 * * *', /^a job must have a time/);
  assert.throws(() => crontab('# only\nthis is a letter\n'), { message: /^crontab -l: no line has a time/ });
});

test('settings and steps are read as cron reads them', () => {
  const [hourly, both, picked] = crontab(
    [
      ...['MY-VAR=1', '"MY VAR" = "a b"', "'Q'='x'", 'EMPTY=', '-S=/bin/sh', 'RANDOM_DELAY=soon', 'HOME=/srv'],
      ...['*/90 * * * * report', '0 9 */40 * 1 report', '~ 3~3 * * * report'],
    ].join('\n'),
  );
  assert.deepEqual(nextOf(hourly!), ['2026-12-01T11:00:00Z', '2026-12-01T12:00:00Z', '2026-12-01T13:00:00Z']);
  assert.deepEqual(hourly?.alarm?.run?.argv, [
    ...['/usr/bin/env', 'MY-VAR=1', 'MY VAR=a b', 'Q=x', 'EMPTY=', 'HOME=/srv', '/bin/sh', '-c', 'report'],
  ]);
  assert.deepEqual(hourly?.differs, [
    '-S=/bin/sh is not carried over',
    'RANDOM_DELAY=soon is not whole minutes, and is not carried over',
    "cron ran it in /srv; it runs in the folder of your agent's machine",
  ]);
  // A star with a step is free in cron: the first of a month, if it is a Monday.
  assert.deepEqual(nextOf(both!)[0], '2027-02-01T08:00:00Z');
  assert.match(picked?.alarm?.cron_expr ?? '', /^\d+ 3 \* \* \*$/);
});

test('the user column of a copied system crontab is read, or asked for', () => {
  const table = (text: string, options: Partial<ImportContext> = {}, from = 'system.cron') => {
    const own = { ...context, ...options };
    const list = crontabJobs(text, from, own);
    return { commands: planImport('crontab', list, own).map(({ alarm }) => alarm?.wake_message), notes: list.notes };
  };
  const copied = '25 6 * * * root /usr/bin/true\n0 9 * * * mail report\n@daily ann true';
  const read = table(copied);
  assert.deepEqual(read.commands, ['/usr/bin/true', 'report', 'true']);
  assert.match(read.notes.at(-1) ?? '', /read as a system crontab\. .*--user-table\.$/);
  assert.deepEqual(table(copied, { hasUserColumn: true }).commands, read.commands);
  assert.equal(table(copied, { hasUserColumn: false }).commands[0], 'root /usr/bin/true');
  // A relative path of the system's table is known by its place.
  assert.deepEqual(table('* * * * * deploy /x', { folder: '/etc' }, 'crontab').commands, ['/x']);
  assert.deepEqual(table('* * * * * deploy /x', { folder: '/etc' }, './cron.d/own').commands, ['/x']);
  const asked = { message: /line \d: "(?:root|deploy)" may be the user .* --system or --user-table$/ };
  assert.throws(() => table('0 9 * * * report --all\n25 6 * * * root /usr/bin/true'), asked);
  assert.throws(() => table('0 9 * * * deploy /opt/x'), asked);
  // Users that are also programs, and words of the shell, are commands.
  const own = '0 9 * * * mail -s "Hi" ann\n0 10 * * * cd /srv && report\n0 11 * * * mail';
  assert.deepEqual(table(own).commands, ['mail -s "Hi" ann', 'cd /srv && report', 'mail']);
  assert.deepEqual(table('0 9 * * * report /x', {}, '/var/spool/cron/crontabs/ann').commands, ['report /x']);
});

const SYSTEMD_TABLE: readonly (readonly [event: string, next: string])[] = [
  ['daily', '2026-12-02 00:00:00 2026-12-03 00:00:00 2026-12-04 00:00:00'],
  ['weekly', '2026-12-07 00:00:00 2026-12-14 00:00:00 2026-12-21 00:00:00'],
  ['monthly', '2027-01-01 00:00:00 2027-02-01 00:00:00 2027-03-01 00:00:00'],
  ['quarterly', '2027-01-01 00:00:00 2027-04-01 00:00:00 2027-07-01 00:00:00'],
  ['Mon..Fri *-*-* 09:00:00', '2026-12-02 09:00:00 2026-12-03 09:00:00 2026-12-04 09:00:00'],
  ['Sat,Sun 08:05', '2026-12-05 08:05:00 2026-12-06 08:05:00 2026-12-12 08:05:00'],
  ['*:0/15', '2026-12-01 10:30:00 2026-12-01 10:45:00 2026-12-01 11:00:00'],
  ['00/6:30', '2026-12-01 12:30:00 2026-12-01 18:30:00 2026-12-02 00:30:00'],
  ['*-*-1/7 03:00', '2026-12-08 03:00:00 2026-12-15 03:00:00 2026-12-22 03:00:00'],
  ['*-*~03', '2026-12-29 00:00:00 2027-01-29 00:00:00 2027-02-26 00:00:00'],
  ['*-*~07/1 12:00', '2026-12-25 12:00:00 2026-12-26 12:00:00 2026-12-27 12:00:00'],
  ['Mon *-05~07/1', '2027-05-31 00:00:00 2028-05-29 00:00:00 2029-05-28 00:00:00'],
  ['*-*~1..3 05:00', '2026-12-29 05:00:00 2026-12-30 05:00:00 2026-12-31 05:00:00'],
  ['Mon,Fri *-01/2-01,03 *:30:45', '2027-01-01 00:30:45 2027-01-01 01:30:45 2027-01-01 02:30:45'],
  ['*:*:0/20', '2026-12-01 10:20:40 2026-12-01 10:21:00 2026-12-01 10:21:20'],
  ['12:5..7:00', '2026-12-01 12:05:00 2026-12-01 12:06:00 2026-12-01 12:07:00'],
  ['*-*-* 02:00:00 Europe/Berlin', '2026-12-02 01:00:00 2026-12-03 01:00:00 2026-12-04 01:00:00'],
  ['05-10 06:00', '2027-05-10 06:00:00 2028-05-10 06:00:00 2029-05-10 06:00:00'],
  ['2027-03-05 14:00', '2027-03-05 14:00:00'],
  ['Wed, 17:48', '2026-12-02 17:48:00 2026-12-09 17:48:00 2026-12-16 17:48:00'],
  ['@1796122800', '2026-12-01 11:00:00'],
  ['2027..2028-*-1 07:30', '2027-01-01 07:30:00 2027-02-01 07:30:00 2027-03-01 07:30:00'],
  ['Wed *-*-8..14 10:00', '2026-12-09 10:00:00 2027-01-13 10:00:00 2027-02-10 10:00:00'],
  ['*-1,7-1 05:40', '2027-01-01 05:40:00 2027-07-01 05:40:00 2028-01-01 05:40:00'],
];

/** A folder with a timer and its service. */
function unit(t: TestContext, name: string, timer: readonly string[], service?: readonly string[]): string {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, `${name}.timer`), ['[Timer]', ...timer, ''].join('\n'));
  if (service) writeFileSync(join(folder, `${name}.service`), ['[Service]', ...service, ''].join('\n'));
  return folder;
}
const systemd = (path: string, options = utc) => planImport('systemd', systemdJobs(path, options), options);

/** The next instants by systemd itself; `undefined` where it is not installed or cannot show them. */
function bySystemd(event: string): string[] | undefined {
  const words = ['calendar', '--iterations=3', '--base-time=2026-12-01 10:20:30 UTC', event];
  const { stdout, status } = spawnSync('systemd-analyze', words, {
    encoding: 'utf8',
    env: { TZ: 'UTC', PATH: process.env.PATH },
  });
  if (status !== 0) return undefined;
  const found = [...stdout.matchAll(/^ *(?:Next elapse|Iter\. #\d+|\(in UTC\)): \w{3} (\S+ \S+) UTC/gm)];
  return found.map(([, at = '']) => `${at.replace(' ', 'T')}Z`);
}

for (const [event, next] of SYSTEMD_TABLE)
  test(`OnCalendar=${event} has the times of systemd`, (t) => {
    const [plan] = systemd(unit(t, 'job', [`OnCalendar=${event}`], ['ExecStart=/bin/true']));
    assert.deepEqual(nextOf(plan!), instantsIn(next));
    const theirs = bySystemd(event);
    if (theirs) assert.deepEqual(theirs, instantsIn(next));
  });

test('a timer keeps command, folder, variables, delay, catch-up and wake-up', (t) => {
  const folder = unit(
    t,
    'backup',
    ['OnCalendar=*-*-* 03:30', 'Persistent=true', 'RandomizedDelaySec=10min', 'WakeSystem=yes', 'AccuracySec=1us'],
    ['Environment="A=b c" D=e', 'WorkingDirectory=%h/data', 'ExecStart=-/opt/backup --all "two words"'],
  );
  const [plan] = systemd(folder, context);
  const { alarm } = plan!;
  assert.deepEqual(alarm?.run?.argv, [
    ...['/bin/sh', '-c', 'cd "$0" && exec "$@"', '/home/ann/data', '/usr/bin/env', 'A=b c', 'D=e'],
    ...['/opt/backup', '--all', 'two words'],
  ]);
  assert.equal(alarm?.cron_expr, '30 3 * * *');
  assert.deepEqual(
    [alarm?.catch_up, alarm?.overlap, alarm?.jitter_seconds, alarm?.wake_computer],
    ['latest', 'skip', 600, true],
  );
  assert.deepEqual(plan?.differs, []);
});

test('timers that count from a start, several events, drop-ins and omitted settings are named', (t) => {
  const often = unit(t, 'often', ['OnBootSec=5min', 'OnUnitActiveSec=1h 30min'], ['ExecStart=/bin/true']);
  const [plan] = systemd(often);
  assert.equal(plan?.alarm?.cron_expr, '@every 5400s');
  assert.deepEqual(plan?.differs, [
    'OnUnitActiveSec counts from its last start; the alarm counts from when it is set',
    'OnBootSec is not carried over: alarms do not fire at a start',
  ]);
  const two = unit(t, 'two', ['OnCalendar=daily', 'OnCalendar=Mon 12:00'], ['ExecStart=/bin/true']);
  mkdirSync(join(two, 'two.timer.d'));
  writeFileSync(
    join(two, 'two.timer.d', 'later.conf'),
    '[Timer]\nOnCalendar=\nOnCalendar=06:00\nOnCalendar=Sun 7:00\n',
  );
  assert.deepEqual(
    systemd(two).map(({ id, alarm }) => [id, alarm?.cron_expr]),
    [
      ['two.timer', '0 6 * * *'],
      ['two.timer#2', '0 7 * * 0'],
    ],
  );
  const reasons = (timer: string[], service?: string[]) => systemd(unit(t, 'x', timer, service))[0]?.not_imported;
  assert.match(reasons(['OnBootSec=1min'], ['ExecStart=/bin/true']) ?? '', /fires only after a start/);
  assert.match(reasons(['OnCalendar=daily']) ?? '', /x\.service is not beside it/);
  assert.match(reasons(['OnCalendar=daily'], ['ExecStart=/bin/a', 'ExecStart=/bin/b']) ?? '', /has 2 ExecStart lines/);
  assert.match(reasons(['OnCalendar=daily'], ['ExecStart=/bin/echo $HOME']) ?? '', /has variables/);
  assert.match(reasons(['OnCalendar=daily'], ['ExecStart=/bin/echo %t']) ?? '', /a specifier that only systemd knows/);
  assert.match(reasons(['OnCalendar=*:*:*'], ['ExecStart=/bin/true']) ?? '', /at least 10/);
  assert.match(reasons(['OnCalendar=*:*:00.5'], ['ExecStart=/bin/true']) ?? '', /parts of a second/);
  assert.match(reasons(['OnCalendar=2026,2028-*-1'], ['ExecStart=/bin/true']) ?? '', /years with gaps/);
});

test('a wrong timer is skipped with its setting and problem, and leaves other events and timers', (t) => {
  const skipped = (line: string, reason: RegExp) => {
    const folder = unit(t, 'bad', [line], ['ExecStart=/bin/true']);
    writeFileSync(join(folder, 'good.timer'), '[Timer]\nOnCalendar=daily\nUnit=bad.service\n');
    const [bad, good] = systemd(folder);
    assert.match(bad?.not_imported ?? '', reason);
    assert.equal(good?.alarm?.cron_expr, '0 0 * * *');
  };
  skipped('OnCalendar=Fri..Mon 10:00', /^OnCalendar=Fri\.\.Mon 10:00: "Fri\.\.Mon" runs backwards/);
  skipped('OnCalendar=25:00', /hour "25" is outside 0-23/);
  skipped('OnCalendar=daily Mars/Base', /"Mars\/Base" is not an IANA zone/);
  skipped('OnCalendar=*-13-01', /month "13" is outside 1-12/);
  skipped('OnUnitActiveSec=often', /OnUnitActiveSec=often: "often" is not a time span/);
  skipped('OnCalendar=daily\nRandomizedDelaySec=5 parsecs', /RandomizedDelaySec=5 parsecs/);
  skipped('[Unit]', /must have a section \[Timer\]/);
  const two = systemd(unit(t, 'two', ['OnCalendar=25:00', 'OnCalendar=06:00'], ['ExecStart=/bin/true']));
  assert.deepEqual(
    two.map(({ id, alarm, not_imported }) => [id, alarm?.cron_expr, not_imported === undefined]),
    [
      ['two.timer', undefined, false],
      ['two.timer#2', '0 6 * * *', true],
    ],
  );
  assert.throws(() => systemd('/nowhere/x.timer'), { message: /there is no \/nowhere\/x\.timer/ });
});

test('what a service has besides its command is named, and a gate skips the job unless it is waived', (t) => {
  const service = [
    ...['Type=oneshot', 'Nice=19', 'LoadCredential=key:/etc/key', 'ExecStartPost=/bin/notify', 'ExecStart=/bin/backup'],
    ...['[Unit]', 'After=network-online.target', 'Wants=network-online.target'],
  ];
  const differs = [
    'Nice=19 of b.service is not carried over',
    'LoadCredential=key:/etc/key of b.service is not carried over',
    'ExecStartPost=/bin/notify of b.service is not carried over',
    'After=network-online.target of b.service is not carried over',
    'Wants=network-online.target of b.service is not carried over',
  ];
  const [open] = systemd(unit(t, 'b', ['OnCalendar=daily'], service));
  assert.deepEqual(open?.differs, differs);
  const gates = [
    ...[
      '[Service]\nExecCondition=/bin/on-ac',
      '[Service]\nExecStartPre=/bin/mount /x',
      '[Unit]\nConditionACPower=true',
    ],
    ...['[Unit]\nAssertPathExists=/x', '[Unit]\nRequires=mnt-backup.mount', '[Unit]\nRequiresMountsFor=/x'],
  ];
  for (const gate of gates) {
    const folder = unit(t, 'b', ['OnCalendar=daily'], [...service, gate]);
    const setting = gate.split('\n')[1];
    for (const options of [utc, { ...utc, asMessages: true }])
      assert.equal(
        systemd(folder, options)[0]?.not_imported,
        `${setting} of b.service decides whether it runs, and is not carried over; --without-gates imports it`,
      );
    const [ungated] = systemd(folder, { ...utc, withoutGates: true });
    const sentence = `${setting} of b.service decided whether it runs, and is not carried over`;
    assert.deepEqual(ungated?.differs, [sentence, ...differs]);
  }
  // A command that may fail, and a timer that names its service, gate nothing.
  const free = [...service, '[Service]', 'ExecStartPre=-/bin/true', '[Unit]', 'Requires=basic.target'];
  const [kept] = systemd(unit(t, 'b', ['OnCalendar=daily', '[Unit]', 'Requires=b.service'], free));
  assert.equal(kept?.differs.length, differs.length + 3);
});

test('time spans of systemd are read in seconds', () => {
  const spans = {
    '90': 90,
    '5min': 300,
    '1h 30min': 5400,
    '2 days': 172_800,
    '1w': 604_800,
    '1.5h': 5400,
    '500ms': 0.5,
  };
  for (const [text, seconds] of Object.entries(spans)) assert.equal(spanSeconds(text), seconds, text);
});

const CLAUDE_TABLE: readonly (readonly [cron: string, recurring: boolean | undefined, next: string])[] = [
  ['37 4 * * *', true, '2026-12-02 04:37:00 2026-12-03 04:37:00 2026-12-04 04:37:00'],
  ['*/5 * * * *', true, '2026-12-01 10:25:00 2026-12-01 10:30:00 2026-12-01 10:35:00'],
  ['5 5 * * 0', true, '2026-12-06 05:05:00 2026-12-13 05:05:00 2026-12-20 05:05:00'],
  ['57 8 * * 1-5', true, '2026-12-02 08:57:00 2026-12-03 08:57:00 2026-12-04 08:57:00'],
  ['8,23,38,53 * * * *', true, '2026-12-01 10:23:00 2026-12-01 10:38:00 2026-12-01 10:53:00'],
  ['0 9 1 * *', true, '2027-01-01 09:00:00 2027-02-01 09:00:00 2027-03-01 09:00:00'],
  ['0 22 * * 7', true, '2026-12-06 22:00:00 2026-12-13 22:00:00 2026-12-20 22:00:00'],
  ['7 9 12 12 *', undefined, '2026-12-12 09:07:00'],
  ['3 7 31 12 *', false, '2026-12-31 07:03:00'],
  ['30 14 28 2 *', false, '2027-02-28 14:30:00'],
];

test('ten tasks of Claude Code become alarms at their times', () => {
  const tasks = CLAUDE_TABLE.map(([cron, recurring], at) => ({
    ...{ id: `00000a0${at}`, cron, prompt: `Do ${at}\nthoroughly`, createdAt: NOW - 60_000, recurring },
    ...(at === 0 && { permanent: true }),
  }));
  const plans = claude(tasks);
  assert.deepEqual(
    plans.map((plan) => nextOf(plan)),
    CLAUDE_TABLE.map(([, , next]) => instantsIn(next)),
  );
  assert.deepEqual(plans[0]?.differs, []);
  assert.deepEqual(plans[1]?.differs, ['Claude Code deletes it on 2026-12-08, after 7 days; the alarm has no end']);
  assert.equal(plans[7]?.alarm?.kind, 'once');
  assert.equal(plans[1]?.alarm?.wake_message, 'Do 1\nthoroughly');
  assert.equal(plans[1]?.alarm?.label, 'Do 1');
  assert.equal(plans[1]?.alarm?.idempotency_key, 'import:claude:00000a01');
});

test('a task whose time has passed is skipped, and so is a wrong one with its field', () => {
  const [past] = claude([{ id: 'a1', cron: '0 9 1 12 *', prompt: 'x', createdAt: NOW - 86_400_000 }]);
  assert.match(past?.not_imported ?? '', /it was due at 2026-12-01T09:00:00(?:\.000)?Z, which has passed/);
  const task = { id: 'b2', cron: '0 9 * * *', prompt: 'x', createdAt: NOW };
  const skipped = (wrong: object, id: string, reason: RegExp) => {
    const [good, bad] = claude([{ ...task, id: 'a' }, wrong]);
    assert.equal(good?.alarm?.wake_message, 'x');
    assert.equal(bad?.id, id);
    assert.match(bad?.not_imported ?? '', reason);
  };
  skipped({ ...task, cron: '0 25 * * *' }, 'b2', /^cron: hour "25" is outside 0-23/);
  skipped({ ...task, cron: '0 0 31 2 *' }, 'b2', /^cron: no date ever matches/);
  skipped({ ...task, cron: 'CRON_TZ=Mars/Base 0 9 * * *' }, 'b2', /^CRON_TZ=Mars\/Base must name an IANA zone/);
  skipped({ ...task, prompt: '' }, 'b2', /^prompt must have at least 1 character/);
  skipped({ cron: '0 9 * * *', prompt: 'x', createdAt: NOW }, 'task 2', /^id is required/);
  const [zoned] = claude([{ ...task, cron: 'CRON_TZ=America/Los_Angeles 30 21 * * *', recurring: true }]);
  assert.deepEqual(nextOf(zoned!)[0], '2026-12-02T05:30:00Z');
  assert.throws(() => claudeJobs('{', 'f.json', utc), { message: /^f\.json must be JSON .* nothing was imported$/ });
  assert.throws(() => claudeJobs('{"jobs":[]}', 'f.json', utc), {
    message: /^f\.json: it must have a list "tasks" \(Claude Code\) or "scheduledTasks"/,
  });
});

test('the tasks of a session are read from its transcript', () => {
  const session = '6d1760b6-5a8d-4693-b6ee-f4e27e427e88';
  const entry = (type: string, content: object) =>
    JSON.stringify({
      type,
      sessionId: session,
      timestamp: '2026-12-01T10:00:00.000Z',
      message: { content: [content] },
    });
  const create = (id: string, input: object) => entry('assistant', { type: 'tool_use', id, name: 'CronCreate', input });
  const answer = (tool_use_id: string, text: string) =>
    entry('user', { type: 'tool_result', tool_use_id, content: [{ type: 'text', text }] });
  const lines = [
    '{"type":"summary","summary":"work"}',
    create('t1', { cron: '37 4 * * *', prompt: 'Weekly maintenance' }),
    answer('t1', 'Scheduled recurring job 008deb61 (Every day at 4:37 AM). Session-only.'),
    create('t2', { cron: '0 12 2 12 *', prompt: 'Once', recurring: false }),
    answer('t2', 'Scheduled one-shot task 875bb1c1 (0 12 2 12 *).'),
    create('t3', { cron: '0 13 * * *', prompt: 'Gone' }),
    create('t5', { cron: 7 }),
    answer('t3', 'Scheduled recurring job 0badcafe (…).'),
    entry('assistant', { type: 'tool_use', id: 't4', name: 'CronDelete', input: { id: '0badcafe' } }),
  ];
  // The last line of a session that runs is unfinished.
  const list = claudeJobs([...lines, '{"type":"assist'].join('\n'), `${session}.jsonl`, utc);
  assert.equal(list.notes.at(-1), '1 of its lines are no JSON.');
  const plans = planImport('claude', list, utc);
  assert.deepEqual(
    plans.map(({ id, alarm }) => [id, alarm?.kind, alarm?.conversation_id]),
    [
      ['008deb61', 'cron', session],
      ['875bb1c1', 'once', session],
    ],
  );
  assert.deepEqual(nextOf(plans[1]!), ['2026-12-02T12:00:00Z']);
});

test('tasks of the desktop app are read with the prompts in their files', () => {
  const skill = '---\nname: morning\ndescription: x\n---\n\nSummarise the inbox.\n';
  const files: Readonly<Record<string, string>> = {
    '/data/morning/SKILL.md': skill,
    '/home/ann/.claude/scheduled-tasks/later/SKILL.md': 'Do it later',
  };
  const tasks = [
    {
      ...{ id: 'morning', cronExpression: '30 7 * * *', enabled: false, filePath: '/data/morning/SKILL.md' },
      ...{ createdAt: NOW, model: 'claude-sonnet-4-6', cwd: '/work', permissionMode: 'acceptEdits' },
    },
    { id: 'later', fireAt: '2026-12-05T08:00:00Z', enabled: true },
    { id: 'gone', cronExpression: '0 9 * * *' },
    { id: 'past', fireAt: NOW - 1, prompt: 'x' },
  ];
  const options = { ...utc, readBeside: (path: string) => files[path] ?? sourceText(path) };
  const list = (given: readonly object[]) =>
    planImport(
      'claude',
      claudeJobs(JSON.stringify({ scheduledTasks: given }), 'scheduled-tasks.json', options),
      options,
    );
  const [morning, later, gone, past] = list(tasks);
  assert.equal(morning?.alarm?.wake_message, 'Summarise the inbox.');
  assert.equal(morning?.paused, true);
  assert.deepEqual(nextOf(morning!)[0], '2026-12-02T07:30:00Z');
  assert.deepEqual(morning?.differs, [
    'it ran in /work; the alarm wakes your agent in its own folder',
    'your agent must know the model claude-sonnet-4-6',
    'permissionMode is not carried over ("acceptEdits")',
  ]);
  assert.deepEqual([later?.alarm?.wake_message, nextOf(later!)], ['Do it later', ['2026-12-05T08:00:00Z']]);
  assert.match(gone?.not_imported ?? '', /its prompt is in no file SKILL\.md/);
  assert.match(past?.not_imported ?? '', /which has passed/);
  const [untimed, zoned] = list([
    { id: 'a', prompt: 'x' },
    { id: 'b', prompt: 'y', cronExpression: 'TZ=Asia/Tokyo 0 9 * * *', userSelectedFolders: ['/one', '/two'] },
  ]);
  assert.match(untimed?.not_imported ?? '', /^it must have cronExpression, or fireAt/);
  assert.deepEqual(nextOf(zoned!)[0], '2026-12-02T00:00:00Z');
  assert.equal(zoned?.differs[1], 'its folder /two is not carried over');
});

test('a hostile file reads no other file, and gives env no option', (t) => {
  const secret = join(temporaryFolder(t), 'id_rsa');
  writeFileSync(secret, 'the private key');
  const read: string[] = [];
  const reader = (path: string) => {
    read.push(path);
    return path === secret || path === '/etc/shadow' ? 'the private key' : sourceText(path);
  };
  const scheduledTasks = [secret, '/etc/shadow', '-', '/dev/stdin', '/x/SKILL.md/../shadow'].map((filePath, n) => ({
    ...{ id: `../../${n}`, cronExpression: '@daily', filePath },
  }));
  const options = { ...utc, readBeside: reader };
  const list = claudeJobs(JSON.stringify({ scheduledTasks }), 'scheduled-tasks.json', options);
  for (const plan of planImport('claude', list, options))
    assert.match(plan.not_imported ?? '', /its prompt is in no file SKILL\.md/);
  assert.deepEqual(
    read.filter((path) => !path.endsWith('/SKILL.md')),
    [],
  );

  const outside = unit(t, 'y', ['OnCalendar=daily', 'Unit=../../etc/passwd'], ['ExecStart=/bin/true']);
  assert.match(systemd(outside)[0]?.not_imported ?? '', /^Unit=\.\.\/\.\.\/etc\/passwd must be the name of a unit/);
  const sly = unit(...[t, 'sly', ['OnCalendar=daily']], [
    'Environment=A=1 "-S/bin/sh -c id" -i B=$(id)',
    'ExecStart=/bin/true "; id" `id`',
  ]);
  const [plan] = systemd(sly);
  assert.deepEqual(plan?.alarm?.run?.argv, ['/usr/bin/env', 'A=1', 'B=$(id)', '/bin/true', '; id', '`id`']);
  assert.deepEqual(plan?.differs, [
    'Environment=-S/bin/sh -c id sets no variable, and is not carried over',
    'Environment=-i sets no variable, and is not carried over',
  ]);
  for (const name of ['-S/bin/sh -c id #', '--split-string', '', 'A=B']) {
    const payload = { kind: 'command', argv: ['/bin/true'], env: { [name]: 'x' } };
    const [hostile] = openclaw([{ id: 'j', schedule: { kind: 'cron', expr: '0 9 * * *' }, payload }]);
    assert.match(hostile?.not_imported ?? '', /^payload\.env/);
  }
  const bomb = `[${'['.repeat(200_000)}`;
  for (const reading of [
    () => openclawJobs(bomb, 'jobs.json', utc),
    () => claudeJobs(bomb, 'scheduled_tasks.json', utc),
    () => claudeJobs(bomb, 'session.jsonl', utc),
  ])
    assert.throws(reading, { code: 'invalid_request' });
});

test("the jobs of OpenClaw's state database are read like its file", (t) => {
  const path = join(temporaryFolder(t), 'openclaw.sqlite');
  const db = new DatabaseSync(path);
  db.exec('CREATE TABLE cron_jobs (job_id TEXT, job_json TEXT, enabled INTEGER, sort_order INTEGER)');
  const insert = db.prepare('INSERT INTO cron_jobs VALUES (?, ?, ?, ?)');
  const schedule = { kind: 'cron', expr: '0 7 * * *', tz: 'UTC' };
  insert.run('b', JSON.stringify(job('b', schedule)), 0, 2);
  insert.run('a', JSON.stringify(job('a', schedule)), 1, 1);
  db.close();
  const plans = planImport('openclaw', openclawJobs(openclawDatabaseText(path), path, context), context);
  assert.deepEqual(
    plans.map(({ id, paused }) => [id, paused]),
    [
      ['a', undefined],
      ['b', true],
    ],
  );
  writeFileSync(`${path}.db`, 'no database');
  assert.throws(() => openclawDatabaseText(`${path}.db`), { message: /has no jobs of OpenClaw/ });
  assert.throws(() => openclawDatabaseText('/nowhere.sqlite'), { message: /there is no \/nowhere\.sqlite/ });
});

const turn = { kind: 'agentTurn', message: 'Summarise the night.' };
const event = { kind: 'systemEvent', text: 'Stand up' };
const job = (id: string, schedule: object, payload: object = turn, more: object = {}) => ({
  ...{ id, name: `Job ${id}`, enabled: true, createdAtMs: NOW - 3_600_000, updatedAtMs: NOW, schedule, payload },
  ...{ sessionTarget: payload === event ? 'main' : 'isolated', wakeMode: 'now', state: { nextRunAtMs: 1 }, ...more },
});
const OPENCLAW_TABLE: readonly (readonly [schedule: object, next: string])[] = [
  [{ kind: 'at', at: '2026-12-05T08:00:00+01:00' }, '2026-12-05 07:00:00'],
  [{ kind: 'at', at: '2026-12-05T08:00:00' }, '2026-12-05 08:00:00'],
  [{ kind: 'at', atMs: Date.parse('2026-12-24T17:00:00Z') }, '2026-12-24 17:00:00'],
  [{ kind: 'every', everyMs: 1_800_000 }, '2026-12-01 10:50:30 2026-12-01 11:20:30 2026-12-01 11:50:30'],
  [
    { kind: 'every', everyMs: 86_400_000, anchorMs: Date.parse('2026-11-01T06:15:00Z') },
    '2026-12-02 06:15:00 2026-12-03 06:15:00 2026-12-04 06:15:00',
  ],
  [{ kind: 'cron', expr: '0 6 * * *', tz: 'America/New_York' }, '2026-12-01 11:00:00 2026-12-02 11:00:00'],
  [{ kind: 'cron', expr: '0 9 * * 1-5' }, '2026-12-02 08:00:00 2026-12-03 08:00:00 2026-12-04 08:00:00'],
  [{ kind: 'cron', expr: '30 0 9 * * *', tz: 'UTC' }, '2026-12-02 09:00:30 2026-12-03 09:00:30 2026-12-04 09:00:30'],
  [{ kind: 'cron', expr: '0 12 L * *', tz: 'UTC' }, '2026-12-31 12:00:00 2027-01-31 12:00:00 2027-02-28 12:00:00'],
  [{ kind: 'cron', expr: '0 8 * * MON#2', tz: 'UTC' }, '2026-12-14 08:00:00 2027-01-11 08:00:00 2027-02-08 08:00:00'],
  [{ kind: 'cron', expr: '0 17 ? * FRI#L', tz: 'UTC' }, '2026-12-25 17:00:00 2027-01-29 17:00:00 2027-02-26 17:00:00'],
];

test('ten and one jobs of OpenClaw become alarms at their times', () => {
  const plans = openclaw(OPENCLAW_TABLE.map(([schedule], at) => job(`j${at}`, schedule)));
  for (const [at, [schedule, next]] of OPENCLAW_TABLE.entries()) {
    const expected = instantsIn(next);
    assert.deepEqual(nextOf(plans[at]!).slice(0, expected.length), expected, JSON.stringify(schedule));
  }
});

test('a job of OpenClaw keeps message, model, spread, command and state, and names the rest', () => {
  const schedule = { kind: 'cron', expr: '0 7 * * *', tz: 'UTC' };
  const [brief, main, command, hourly, off] = openclaw([
    job(
      'brief',
      { ...schedule, staggerMs: 30_000 },
      { ...turn, model: 'opus', thinking: 'high' },
      {
        delivery: { mode: 'announce', channel: 'slack', to: 'channel:C1' },
        agentId: 'ops',
      },
    ),
    job('main', schedule, event),
    job('command', schedule, {
      kind: 'command',
      argv: ['sh', '-lc', 'df'],
      cwd: '/srv',
      env: { A: '1' },
      timeoutSeconds: 90,
    }),
    job('hourly', { kind: 'cron', expr: '0 */2 * * *', tz: 'UTC' }),
    job('off', schedule, turn, { enabled: false }),
  ]);
  assert.equal(brief?.alarm?.model, 'opus');
  assert.equal(brief?.alarm?.jitter_seconds, 30);
  assert.deepEqual(brief?.differs, [
    'your agent must know the model opus',
    'its result went to slack channel:C1; name a channel of yours: reveille alarm edit … --deliver',
    'agentId is not carried over ("ops")',
    'payload.thinking is not carried over ("high")',
  ]);
  assert.equal(main?.alarm?.wake_message, 'Stand up');
  assert.match(main?.differs[0] ?? '', /^it ran in the main session/);
  assert.deepEqual(command?.alarm?.run, {
    argv: ['/bin/sh', '-c', 'cd "$0" && exec "$@"', '/srv', '/usr/bin/env', 'A=1', 'sh', '-lc', 'df'],
    timeout_seconds: 90,
  });
  assert.deepEqual(hourly?.differs, ['OpenClaw spreads it by up to 5 minutes; the alarm fires exactly']);
  assert.equal(off?.paused, true);
});

test('a job of OpenClaw that has passed, cannot be expressed or is wrong is skipped with its field', () => {
  const cron = (expr: string, tz = 'UTC') => ({ kind: 'cron', expr, tz });
  const skipped = (wrong: object, reason: RegExp, id = 'a') => {
    const [good, bad] = openclaw([job('good', cron('0 9 * * *')), wrong]);
    assert.equal(good?.alarm?.label, 'Job good');
    assert.equal(bad?.id, id);
    assert.match(bad?.not_imported ?? '', reason);
  };
  skipped(job('a', { kind: 'at', at: '2026-12-01T08:00:00Z' }), /which has passed/);
  skipped(job('a', cron('0 9 15W * *')), /^schedule\.expr: it has the nearest weekday .* an alarm cannot express$/);
  skipped(job('a', cron('0 9 * *')), /^schedule\.expr: there are 4 fields; write five/);
  skipped(job('a', cron('0 9 * * *', 'Berlin')), /^schedule\.tz must be an IANA zone .* \(got "Berlin"\)/);
  skipped(job('a', { kind: 'every', everyMs: 0 }), /^schedule\.everyMs must be at least 1/);
  skipped(job('a', { kind: 'at', at: 'soon' }), /^schedule\.at must be an instant .* \(got "soon"\)/);
  skipped(job('a', { kind: 'sometimes' }), /^schedule\.kind/);
  skipped(job('a', cron('0 9 * * *'), { kind: 'agentTurn' }), /^payload\.message is required/);
  skipped({ name: 'x' }, /^id is required/, 'job 2');
  assert.throws(() => openclawJobs('{"tasks":[]}', 'jobs.json', context), {
    message: /^jobs\.json: it must have a list/,
  });
});

test('jobs of OpenClaw keep the meaning that croner gives them, also in forms of earlier versions', () => {
  const legacy = { name: 'Old', createdAtMs: NOW };
  const table: readonly (readonly [job: object, next: string])[] = [
    // Both days are restricted, also by a step: either of them is enough.
    [
      job('a', { kind: 'cron', expr: '0 9 */2 * 1', tz: 'UTC' }),
      '2026-12-03 09:00:00 2026-12-05 09:00:00 2026-12-07 09:00:00',
    ],
    [
      job('a', { kind: 'cron', expr: '0 9 13 * */3', tz: 'UTC' }),
      '2026-12-02 09:00:00 2026-12-05 09:00:00 2026-12-06 09:00:00',
    ],
    [
      job('a', { kind: 'cron', expr: '0 9 1-7 * +MON', tz: 'UTC' }),
      '2026-12-07 09:00:00 2027-01-04 09:00:00 2027-02-01 09:00:00',
    ],
    [
      job('a', { kind: 'cron', expr: '0 0 9 1 * * 2027', tz: 'UTC' }),
      '2027-01-01 09:00:00 2027-02-01 09:00:00 2027-03-01 09:00:00',
    ],
    [job('a', { kind: 'cron', expr: '0 0 9 1 2 ? 2027-2028', tz: 'UTC' }), '2027-02-01 09:00:00 2028-02-01 09:00:00'],
    [job('a', { kind: 'cron', expr: '0 30 9 24 12 * 2026', tz: 'UTC' }), '2026-12-24 09:30:00'],
    [
      job('a', { kind: 'cron', expr: '0 9 * * *', tz: '' }),
      '2026-12-02 08:00:00 2026-12-03 08:00:00 2026-12-04 08:00:00',
    ],
    [
      job('a', { kind: 'cron', expr: '0 9 * * *', tz: null }),
      '2026-12-02 08:00:00 2026-12-03 08:00:00 2026-12-04 08:00:00',
    ],
    [job('a', { kind: 'cron', cron: '0 9 2 12 *', tz: 'UTC' }), '2026-12-02 09:00:00'],
    [job('a', { cron: '0 9 2 12 *', tz: 'UTC' }), '2026-12-02 09:00:00'],
    [job('a', { everyMs: '3600000', anchorMs: NOW }), '2026-12-01 11:20:30 2026-12-01 12:20:30'],
    [{ ...legacy, jobId: 'a', schedule: '0 9 * * *', command: 'Do it' }, '2026-12-02 08:00:00'],
    [
      { ...legacy, id: 'a', schedule: { atMs: NOW + 1000 }, payload: { kind: 'AgentTurn', message: 'Do it' } },
      '2026-12-01 10:20:31',
    ],
    [
      { ...legacy, id: 'a', schedule: '0 9 * * *', enabled: null, description: null, message: 'Do it' },
      '2026-12-02 08:00:00',
    ],
  ];
  for (const [given, next] of table) {
    const [plan] = openclaw([given]);
    const expected = instantsIn(next);
    assert.equal(plan?.id, 'a', JSON.stringify(given));
    assert.deepEqual(nextOf(plan!).slice(0, expected.length), expected, JSON.stringify(given));
  }
  const [old] = openclaw([
    { ...legacy, id: 'a', schedule: '0 9 * * *', message: 'Do it', model: 'opus', thinking: 'high' },
  ]);
  assert.deepEqual([old?.alarm?.wake_message, old?.alarm?.model], ['Do it', 'opus']);
  assert.ok(old?.differs.includes('payload.thinking is not carried over ("high")'));
});

test("OpenClaw's own jobs are skipped, two jobs with one id are two alarms, and what is dropped is named", () => {
  const schedule = { kind: 'cron', expr: '0 7 * * *', tz: 'UTC' };
  const [dream, promoted, one, two, turned] = openclaw([
    job('d', schedule, { kind: 'systemEvent', text: '__openclaw_memory_core_short_term_promotion_dream__' }),
    job('p', schedule, turn, { description: '[managed-by=memory-core.short-term-promotion] Promote' }),
    job('same', schedule),
    job('same', schedule, { kind: 'agentTurn', message: 'Another' }),
    job(
      't',
      { ...schedule, jitter: 5 },
      { ...turn, timeoutSeconds: 90 },
      {
        wakeMode: 'next-heartbeat',
        delivery: { mode: 'none', bestEffort: true },
      },
    ),
  ]);
  assert.equal(dream?.not_imported, 'it belongs to OpenClaw, which manages it itself');
  assert.equal(promoted?.not_imported, dream?.not_imported);
  assert.notEqual(one?.alarm?.idempotency_key, two?.alarm?.idempotency_key);
  assert.deepEqual(two?.differs, ['another job of the file has its id same; each becomes an alarm']);
  assert.deepEqual(turned?.differs, [
    'wakeMode is not carried over ("next-heartbeat")',
    'schedule.jitter is not carried over (5)',
    'payload.timeoutSeconds is not carried over (90)',
    'delivery.bestEffort is not carried over (true)',
  ]);
  const command = { kind: 'command', argv: ['/bin/true'], cwd: '/srv', timeoutSeconds: 90 };
  const [message] = openclaw([job('c', schedule, command)], { ...context, asMessages: true });
  assert.deepEqual(message?.differs.slice(1), [
    'payload.cwd is not carried over ("/srv")',
    'payload.timeoutSeconds is not carried over (90)',
  ]);
});
