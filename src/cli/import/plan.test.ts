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
import { systemdJobs } from './systemd.ts';
import { spanSeconds } from './systemd-time.ts';

const NOW = Date.parse('2026-12-01T10:20:30Z');
const context: ImportContext = {
  ...{ now: NOW, zone: 'Europe/Berlin', home: '/home/ann', folder: '/home/ann/work' },
  ...{ asMessages: false, environment: {}, read: () => undefined },
};
const utc = { ...context, zone: 'UTC' };

const crontab = (text: string, options = context) =>
  planImport('crontab', crontabJobs(text, 'crontab -l', options), options);
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

test('a wrong line names file, line, field and remedy, and imports nothing', () => {
  const refused = (line: string, message: RegExp) => assert.throws(() => crontab(`@daily good\n${line}`), { message });
  refused(
    '61 * * * * x',
    /^crontab -l, line 2: minute "61" is outside 0-59 \(got "61 \* \* \* \*"\); correct it there/,
  );
  refused('0 9 * *', /^crontab -l, line 2: a job must have a time, such as "0 9 \* \* 1-5" or @daily, and a command/);
  refused('@fortnightly x', /line 2: "@fortnightly" is not a descriptor/);
  refused('CRON_TZ=Berlin', /line 2: CRON_TZ must be an IANA zone such as Europe\/Berlin \(got "Berlin"\)/);
  refused('RANDOM_DELAY=soon', /line 2: RANDOM_DELAY must be whole minutes \(got "soon"\)/);
  refused('0 0 30 2 * x', /line 2: no date ever matches/);
  refused('0 0 * * *  ', /line 2: the command is missing/);
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

test('a wrong timer names file, setting and problem', (t) => {
  const refused = (line: string, message: RegExp) =>
    assert.throws(() => systemd(unit(t, 'bad', [line], ['ExecStart=/bin/true'])), { message });
  refused('OnCalendar=Fri..Mon 10:00', /bad\.timer: OnCalendar=Fri\.\.Mon 10:00: "Fri\.\.Mon" runs backwards/);
  refused('OnCalendar=25:00', /hour "25" is outside 0-23/);
  refused('OnCalendar=daily Mars/Base', /"Mars\/Base" is not an IANA zone/);
  refused('OnCalendar=*-13-01', /month "13" is outside 1-12/);
  refused('OnUnitActiveSec=often', /OnUnitActiveSec=often: "often" is not a time span/);
  refused('RandomizedDelaySec=5 parsecs', /RandomizedDelaySec=5 parsecs/);
  assert.throws(() => systemd('/nowhere/x.timer'), { message: /there is no \/nowhere\/x\.timer/ });
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

test('a task whose time has passed is skipped, and a wrong one names file, task and field', () => {
  const [past] = claude([{ id: 'a1', cron: '0 9 1 12 *', prompt: 'x', createdAt: NOW - 86_400_000 }]);
  assert.match(past?.not_imported ?? '', /it was due at 2026-12-01T09:00:00(?:\.000)?Z, which has passed/);
  const task = { id: 'b2', cron: '0 9 * * *', prompt: 'x', createdAt: NOW };
  const refused = (wrong: object, message: RegExp) => assert.throws(() => claude([task, wrong]), { message });
  refused({ ...task, cron: '0 25 * * *' }, /^scheduled_tasks\.json, task b2: .*hour "25" is outside 0-23/);
  refused({ ...task, prompt: '' }, /^scheduled_tasks\.json, task b2: prompt must have at least 1 character/);
  refused({ cron: '0 9 * * *', prompt: 'x', createdAt: NOW }, /^scheduled_tasks\.json, task 2: id is required/);
  assert.throws(() => claudeJobs('{', 'f.json', utc), { message: /^f\.json must be JSON .* nothing was imported$/ });
  assert.throws(() => claudeJobs('{"jobs":[]}', 'f.json', utc), {
    message: /^f\.json, the file: it must have a list "tasks" \(Claude Code\) or "scheduledTasks"/,
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
    answer('t3', 'Scheduled recurring job 0badcafe (…).'),
    entry('assistant', { type: 'tool_use', id: 't4', name: 'CronDelete', input: { id: '0badcafe' } }),
  ];
  const list = claudeJobs(lines.join('\n'), `${session}.jsonl`, utc);
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
  const options = { ...utc, read: (path: string) => files[path] };
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
  assert.throws(() => list([{ id: 'a', prompt: 'x' }]), { message: /task a: it must have cronExpression, or fireAt/ });
});

test('a hostile file reads no other file, and gives env no option', (t) => {
  const secret = join(temporaryFolder(t), 'id_rsa');
  writeFileSync(secret, 'the private key');
  const read: string[] = [];
  const reader = (path: string) => {
    read.push(path);
    return path === secret || path === '/etc/shadow' ? 'the private key' : undefined;
  };
  const scheduledTasks = [secret, '/etc/shadow', '-', '/dev/stdin', '/x/SKILL.md/../shadow'].map((filePath, n) => ({
    ...{ id: `../../${n}`, cronExpression: '@daily', filePath },
  }));
  const options = { ...utc, read: reader };
  const list = claudeJobs(JSON.stringify({ scheduledTasks }), 'scheduled-tasks.json', options);
  for (const plan of planImport('claude', list, options))
    assert.match(plan.not_imported ?? '', /its prompt is in no file SKILL\.md/);
  assert.deepEqual(
    read.filter((path) => !path.endsWith('/SKILL.md')),
    [],
  );

  const outside = unit(t, 'y', ['OnCalendar=daily', 'Unit=../../etc/passwd'], ['ExecStart=/bin/true']);
  assert.throws(() => systemd(outside), { message: /Unit=\.\.\/\.\.\/etc\/passwd must be the name of a unit/ });
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
  for (const name of ['-S/bin/sh -c id #', '--split-string', '', 'A=B'])
    assert.throws(
      () =>
        openclaw([
          {
            ...{ id: 'j', schedule: { kind: 'cron', expr: '0 9 * * *' } },
            payload: { kind: 'command', argv: ['/bin/true'], env: { [name]: 'x' } },
          },
        ]),
      { message: /job j: .*nothing was imported/ },
    );
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

test('a job of OpenClaw that has passed or cannot be expressed is skipped, and an invalid one names file, job and field', () => {
  const [past, nearest] = openclaw([
    job('past', { kind: 'at', at: '2026-12-01T08:00:00Z' }),
    job('nearest', { kind: 'cron', expr: '0 9 15W * *', tz: 'UTC' }),
  ]);
  assert.match(past?.not_imported ?? '', /which has passed/);
  assert.match(nearest?.not_imported ?? '', /nearest weekday .* which an alarm cannot express/);
  const refused = (wrong: object, message: RegExp) => assert.throws(() => openclaw([wrong]), { message });
  const cron = (expr: string, tz = 'UTC') => ({ kind: 'cron', expr, tz });
  refused(job('a', cron('0 9 * *')), /^jobs\.json, job a: schedule\.expr: there are 4 fields; write five/);
  refused(job('a', cron('0 9 * * *', 'Berlin')), /job a: schedule\.tz must be an IANA zone .* \(got "Berlin"\)/);
  refused(job('a', { kind: 'every', everyMs: 0 }), /job a: schedule\.everyMs must be at least 1/);
  refused(job('a', { kind: 'at', at: 'soon' }), /job a: schedule\.at must be an instant .* \(got "soon"\)/);
  refused(job('a', { kind: 'sometimes' }), /job a: schedule\.kind/);
  refused(job('a', cron('0 9 * * *'), { kind: 'agentTurn' }), /job a: payload\.message is required/);
  refused({ name: 'x' }, /^jobs\.json, job 1: id is required/);
});
