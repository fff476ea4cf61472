/** Files with an entry that is odd for its source: it is read or skipped with a reason, and never refuses its file. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { claudeJobs } from './claude.ts';
import { crontabJobs } from './crontab.ts';
import type { ImportContext, JobList } from './job.ts';
import { openclawJobs } from './openclaw.ts';
import { planImport } from './plan.ts';
import { sourceText } from './source-file.ts';
import { systemdJobs } from './systemd.ts';

const NOW = Date.parse('2026-12-01T10:20:30Z');
const context: ImportContext = {
  ...{ now: NOW, zone: 'UTC', home: '/home/ann', folder: '/', hasUserColumn: false },
  ...{ asMessages: false, withoutGates: false, environment: {}, read: sourceText, readBeside: sourceText },
  ...{ isUser: () => false, isProgram: () => true },
};

/** The entry, and its next time (`12-02 09:00`, of December 2026 unless a year is given), or `!` and the reason. */
type Odd = readonly [entry: string | object, outcome: string];

const CRONTABS: readonly Odd[] = [
  ['*/90 * * * * x', '12-01 11:00'],
  ['*/61 */25 * * * x', '12-02 00:00'],
  ['5-10/99 9 * * * x', '12-02 09:05'],
  ['00 009 01 012 * x', '2027-12-01 09:00'],
  ['0\t9\t*\t*\t*\tx', '12-02 09:00'],
  ['   0   9   *   *   *   x   ', '12-02 09:00'],
  ['0 9 * DEC Mon-fri x', '12-02 09:00'],
  ['0 9 * * 7 x', '12-06 09:00'],
  ['0 9 * * 0-7 x', '12-02 09:00'],
  ['0,30 9,21 1,15 * * x', '12-01 21:00'],
  ['0 9 *,5 * 1 x', '12-07 09:00'],
  ['0 9 13 * 5 x', '12-04 09:00'],
  ['5~5 9 * * * x', '12-02 09:05'],
  ['0 9 31~ 1 * x', '2027-01-31 09:00'],
  ['@Midnight x', '12-02 00:00'],
  ['@ANNUALLY x', '2027-01-01 00:00'],
  ['-0 9 * * * x', '12-02 09:00'],
  ['0 9 * * * x % y \\% z', '12-02 09:00'],
  ['0 9 * * * %', '!the command is missing'],
  ['@reboot x', '!@reboot fires when the computer starts'],
  ['@every_minute x', '!"@every_minute" is not a descriptor'],
  ['0 0 31 2 * x', '!no date ever matches'],
  ['0 0 30 feb * x', '!no date ever matches'],
  ['0 9 * * mon-sun x', '!day-of-week "mon-sun" runs backwards'],
  ['0 22-2 * * * x', '!hour "22-2" runs backwards'],
  ['0 9 L * * x', '!day-of-month "L"'],
  ['0 9 * * 1#2 x', '!day-of-week "1#2"'],
  ['0 0 9 * * * x', '12-09 00:00'],
  ['60 9 * * * x', '!minute "60" is outside 0-59'],
  ['*/0 * * * * x', '!minute step "0"'],
  ['0 9 * * monday x', '!day-of-week "monday"'],
  ['0 9 * *', '!a job must have a time'],
  ['what is this', '!a job must have a time'],
  ['"unclosed = 1', '!a job must have a time'],
  ['0 9 * * * \u00a0x', '12-02 09:00'],
];

/** Lines that set something between the entries. */
const SETTINGS = [
  ...['MY-VAR=1', '"MY VAR"=1', "'a'='b'", 'EMPTY=', 'PATH = /a:/b # no comment', 'RANDOM_DELAY=1.5', 'MAILTO=""'],
  ...[
    '-S=x',
    'A==',
    '0=9',
    '*=*',
    '@x = y',
    '# 61 * * * * x',
    '\t# x',
    'CRON_TZ=',
    'SHELL=',
    'X="a',
    'LC_ALL=de_DE.UTF-8',
  ],
];

const TIMERS: readonly Odd[] = [
  ['OnCalendar=Wed, 17:48', '12-02 17:48'],
  ['OnCalendar=Mon,Wed, *-*-* 17:48', '12-02 17:48'],
  ['OnCalendar=@1796122800', '12-01 11:00'],
  ['OnCalendar=@1796122800 UTC', '12-01 11:00'],
  ['OnCalendar=@1', '!it was due at 1970-01-01T00:00:01'],
  ['OnCalendar=*-2-29', '2028-02-29 00:00'],
  ['OnCalendar=*-*-31,1 9:0', '12-31 09:00'],
  ['OnCalendar=*:0/90', '12-01 11:00'],
  ['OnCalendar=Sat,Sun,Mon..Wed 9:00', '12-02 09:00'],
  ['OnCalendar=27-1-1', '2027-01-01 00:00'],
  ['OnCalendar=*-2-31', '!cron_expr: no date ever matches'],
  ['OnCalendar=hourly daily', '!OnCalendar=hourly daily: "daily" is not an IANA zone'],
  ['OnCalendar=9', '!OnCalendar=9: "9" is not a date'],
  ['OnCalendar=*:*:0/7.5', '!OnCalendar=*:*:0/7.5: the step of second'],
  ['OnClockChange=true', '!it fires only after a start'],
  ['OnUnitInactiveSec=1h 5', '12-01 11:20'],
];

const cron = (expr: string, more: object = {}) => ({ schedule: { kind: 'cron', expr, tz: 'UTC', ...more } });
const OPENCLAW: readonly Odd[] = [
  [cron('0 9 1-7 * +MON'), '12-07 09:00'],
  [cron('0 9 */2 * 1'), '12-03 09:00'],
  [cron('0 0 9 * * * 2027'), '2027-01-01 09:00'],
  [cron('0 9 L * MON#1'), '12-07 09:00'],
  [cron('0 9 * * *', { tz: '' }), '12-02 09:00'],
  [cron('0 9 * * *', { tz: null }), '12-02 09:00'],
  [{ schedule: '0 9 * * *', payload: undefined, command: 'x' }, '12-02 09:00'],
  [{ schedule: { cron: '0 9 * * *' } }, '12-02 09:00'],
  [{ id: undefined, jobId: 'old', schedule: '0 9 * * *' }, '12-02 09:00'],
  [{ schedule: { kind: 'Every', everyMs: '60000', anchorMs: NOW } }, '12-01 10:21'],
  [cron('0 9 * * *', { tz: 'Mars/Base' }), '!schedule.tz must be an IANA zone'],
  [cron('0 9 * * * * * *'), '!schedule.expr: there are 8 fields'],
  [cron('0 0 9 * * * 2026,2028'), '!schedule.expr: years with gaps'],
  [{ schedule: { kind: 'cron' } }, '!schedule.expr'],
  [{ schedule: null }, '!schedule'],
  [{ schedule: { kind: 'at', at: '20m' } }, '!schedule.at must be an instant'],
  [{ schedule: '0 9 * * *', payload: { kind: 'dance' } }, '!payload.kind'],
];

const task = (text: string) => ({ cron: text, recurring: true });
const CLAUDE: readonly Odd[] = [
  [task('CRON_TZ=America/Los_Angeles 30 21 * * *'), '12-02 05:30'],
  [task('TZ=Asia/Tokyo 0 9 * * *'), '12-02 00:00'],
  [task(' 0  9 * * * '), '12-02 09:00'],
  [task('0 0 31 2 *'), '!cron: no date ever matches'],
  [{ cron: '0 0 31 2 *' }, '!cron: no date ever matches'],
  [task('CRON_TZ=Nowhere 0 9 * * *'), '!CRON_TZ=Nowhere must name an IANA zone'],
  [task('0 9 * * * *'), '!cron: there are 6 fields'],
  [{ ...task('0 9 * * *'), prompt: 7 }, '!prompt'],
  [{ ...task('0 9 * * *'), createdAt: 'now' }, '!createdAt'],
  [{ ...task('0 9 * * *'), id: '' }, '!id'],
];

/** The entry in the middle of its file, after the plan of the whole file. */
function outcomes(source: 'crontab' | 'systemd' | 'openclaw' | 'claude', list: JobList): string[] {
  return planImport(source, list, context).map(({ next, not_imported }) => {
    const at = next?.[0]?.slice(0, 16).replace('T', ' ').replace('2026-', '');
    return at ?? `!${not_imported}`;
  });
}

function timers(t: TestContext, lines: readonly string[]): string {
  const folder = join(temporaryFolder(t), 'timers');
  mkdirSync(folder);
  writeFileSync(join(folder, 'x.service'), '[Service]\nExecStart=/bin/true\n');
  for (const [at, line] of lines.entries())
    writeFileSync(join(folder, `${at}.timer`), `[Timer]\n${line}\nUnit=x.service\n`);
  return folder;
}

const json = (entries: readonly Odd[0][], ids: boolean) =>
  entries.map((entry, at) => ({
    ...(ids && { payload: { kind: 'agentTurn', message: 'x' } }),
    ...{ id: `job${at}`, name: 'x', prompt: 'x', createdAt: NOW, ...(entry as object) },
  }));

const FAMILIES = {
  crontab: {
    ...{ odd: CRONTABS, good: '0 8 * * * good' },
    read: (entries: readonly Odd[0][]) => crontabJobs(entries.join('\n'), 'crontab', context),
  },
  systemd: {
    ...{ odd: TIMERS, good: 'OnCalendar=8:00' },
    read: (entries: readonly Odd[0][], t: TestContext) => systemdJobs(timers(t, entries as string[]), context),
  },
  openclaw: {
    ...{ odd: OPENCLAW, good: { schedule: '0 8 * * *' } },
    read: (entries: readonly Odd[0][]) =>
      openclawJobs(JSON.stringify({ version: 1, jobs: json(entries, true) }), 'jobs.json', context),
  },
  claude: {
    ...{ odd: CLAUDE, good: task('0 8 * * *') },
    read: (entries: readonly Odd[0][]) =>
      claudeJobs(JSON.stringify({ tasks: json(entries, false) }), 'tasks.json', context),
  },
} as const;

for (const source of ['crontab', 'systemd', 'openclaw', 'claude'] as const)
  test(`an odd entry of ${source} is read or skipped with a reason, and never refuses its file`, (t) => {
    const { odd, good, read } = FAMILIES[source];
    for (const [entry, expected] of odd) {
      const shown = outcomes(source, read([good, entry, good], t));
      assert.deepEqual([shown.length, shown[0], shown[2]], [3, '12-02 08:00', '12-02 08:00'], JSON.stringify(entry));
      const isMet = expected.startsWith('!') ? shown[1]?.startsWith(expected) : shown[1] === expected;
      assert.ok(isMet, `${JSON.stringify(entry)}: ${shown[1]}, not ${expected}`);
    }
    const all = outcomes(source, read([good, ...odd.map(([entry]) => entry)], t));
    assert.equal(all.length, odd.length + 1);
  });

test('no line with a setting refuses a crontab', () => {
  for (const line of [...SETTINGS, SETTINGS.join('\n')]) {
    const shown = outcomes('crontab', crontabJobs(`0 8 * * * a\n${line}\n0 8 * * * b`, 'crontab', context));
    assert.deepEqual(shown, ['12-02 08:00', '12-02 08:00'], line);
  }
  assert.ok(Object.values(FAMILIES).reduce((sum, { odd }) => sum + odd.length, SETTINGS.length) >= 60);
});
