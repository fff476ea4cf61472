import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { claudeJobs } from './claude.ts';
import { crontabJobs } from './crontab.ts';
import type { ImportContext } from './job.ts';
import { openclawJobs } from './openclaw.ts';
import { openclawDatabaseText } from './openclaw-database.ts';
import { LARGEST_BYTES, sourceText } from './source-file.ts';
import { systemdJobs } from './systemd.ts';

const context: ImportContext = {
  ...{ now: Date.parse('2026-12-01T10:20:30Z'), zone: 'UTC', home: '/home/ann', folder: '/' },
  ...{ asMessages: false, withoutGates: false, environment: {}, read: sourceText, readBeside: sourceText },
  ...{ isUser: () => false, isProgram: () => true },
};

const written = (t: TestContext, name: string, text: string) => {
  const path = join(temporaryFolder(t), name);
  writeFileSync(path, text);
  return path;
};

test('only regular files of a limited size are read, and none is waited for', (t) => {
  const folder = temporaryFolder(t);
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const large = written(t, 'large', '');
  truncateSync(large, LARGEST_BYTES + 1);
  const refused = (path: string, message: RegExp) => assert.throws(() => sourceText(path), { message });
  for (const path of [pipe, '/dev/zero', '/dev/null', '/dev/tty', folder]) refused(path, /cannot be read: /);
  refused(pipe, /it is no regular file; save its text in one, or use "-"$/);
  refused(large, /it has more than 16 MiB$/);
  truncateSync(large, LARGEST_BYTES);
  assert.equal(sourceText(large).length, LARGEST_BYTES);
  const latin = join(folder, 'latin');
  writeFileSync(latin, Buffer.from([0x4d, 0xfc]));
  refused(latin, /it must be UTF-8 text; it contains other bytes$/);
  const asDatabase = join(folder, 'pipe.sqlite');
  execFileSync('mkfifo', [asDatabase]);
  assert.throws(() => openclawDatabaseText(asDatabase), { message: /it is no regular file/ });
});

test('a byte order mark is no part of a crontab, of JSON, of a timer or of a prompt', (t) => {
  const bom = '\ufeff';
  const crontab = sourceText(written(t, 'crontab', `${bom}0 9 * * * report\n`));
  assert.equal(crontabJobs(crontab, 'crontab', context).jobs[0]?.name, 'report');
  const tasks = '{"tasks":[{"id":"a","cron":"0 9 * * *","prompt":"Hi","createdAt":1,"recurring":true}]}';
  assert.equal(claudeJobs(sourceText(written(t, 'a.json', bom + tasks)), 'a.json', context).jobs[0]?.name, 'Hi');
  const jobs = '{"jobs":[{"id":"a","schedule":"0 9 * * *","message":"Hi"}]}';
  assert.equal(openclawJobs(sourceText(written(t, 'j.json', bom + jobs)), 'j.json', context).jobs[0]?.id, 'a');
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'a.timer'), `${bom}[Timer]\nOnCalendar=daily\n`);
  writeFileSync(join(folder, 'a.service'), `${bom}[Service]\nExecStart=/bin/true\n`);
  mkdirSync(join(folder, 'a.service.d'));
  writeFileSync(join(folder, 'a.service.d', 'own.conf'), `${bom}[Service]\nExecStart=\nExecStart=/bin/false\n`);
  const [timer] = systemdJobs(folder, context).jobs;
  assert.deepEqual(timer && 'alarm' in timer && timer.alarm.run?.argv, ['/bin/false']);
  const skill = join(folder, 'SKILL.md');
  writeFileSync(skill, `${bom}---\nname: x\n---\nDo it`);
  const desktop = JSON.stringify({ scheduledTasks: [{ id: 'a', cronExpression: '@daily', filePath: skill }] });
  const [task] = claudeJobs(desktop, 'scheduled-tasks.json', context).jobs;
  assert.equal(task && 'alarm' in task && task.alarm.wake_message, 'Do it');
});

test('links that leave the named folder are not followed', (t) => {
  const outside = temporaryFolder(t);
  const secret = join(outside, 'secret');
  writeFileSync(secret, '[Timer]\nOnCalendar=daily\n[Unit]\nDescription=the private key\n[Service]\nExecStart=/key');
  const folder = temporaryFolder(t);
  symlinkSync(secret, join(folder, 'link.timer'));
  symlinkSync('/dev/zero', join(folder, 'endless.timer'));
  writeFileSync(join(folder, 'unit.timer'), '[Timer]\nOnCalendar=daily\n');
  symlinkSync(secret, join(folder, 'unit.service'));
  writeFileSync(join(folder, 'drop.timer'), '[Timer]\nOnCalendar=daily\nUnit=own.service\n');
  mkdirSync(join(outside, 'd'));
  writeFileSync(join(outside, 'd', 'a.conf'), '[Unit]\nDescription=the private key\n');
  symlinkSync(join(outside, 'd'), join(folder, 'drop.timer.d'));
  writeFileSync(join(folder, 'own.service'), '[Service]\nExecStart=/bin/true\n');
  writeFileSync(join(folder, 'real.timer'), '[Timer]\nOnCalendar=daily\nUnit=own.service\n');
  symlinkSync('real.timer', join(folder, 'alias.timer'));
  const { jobs } = systemdJobs(folder, context);
  assert.deepEqual(
    jobs.map((job) => [
      job.id,
      'omitted' in job ? /it is a link out of .*; name the file itself$/.test(job.omitted) : 'read',
    ]),
    [
      ['alias.timer', 'read'],
      ['drop.timer', true],
      ['endless.timer', true],
      ['link.timer', true],
      ['real.timer', 'read'],
      ['unit.timer', true],
    ],
  );
  assert.doesNotMatch(JSON.stringify(jobs), /private key/);
  // A file that the user names may be a link.
  assert.equal(
    systemdJobs(join(folder, 'link.timer'), { ...context, asMessages: true }).jobs[0]?.name,
    'the private key',
  );

  symlinkSync(secret, join(folder, 'SKILL.md'));
  const scheduledTasks = [{ id: 'a', cronExpression: '@daily', filePath: join(folder, 'SKILL.md') }];
  const [task] = claudeJobs(JSON.stringify({ scheduledTasks }), 'scheduled-tasks.json', context).jobs;
  assert.match(task && 'omitted' in task ? task.omitted : '', /its prompt is in no file SKILL\.md/);
});

test('a database that computes its jobs is refused before it computes one', (t) => {
  const columns = '(job_id TEXT, job_json TEXT, enabled INTEGER, sort_order INTEGER';
  const endless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS job_id, '{}' AS job_json, 1 AS enabled, i AS sort_order FROM n";
  for (const statement of [
    `CREATE VIEW cron_jobs AS ${endless}`,
    'CREATE VIRTUAL TABLE cron_jobs USING fts5(job_id, job_json, enabled, sort_order)',
    `CREATE TABLE cron_jobs ${columns}, large TEXT AS (hex(zeroblob(500000000))))`,
  ]) {
    const path = join(temporaryFolder(t), 'openclaw.sqlite');
    const db = new DatabaseSync(path);
    db.exec(statement);
    db.close();
    assert.throws(() => openclawDatabaseText(path), { message: /cron_jobs is no table of stored rows/ });
  }
  const path = join(temporaryFolder(t), 'openclaw.sqlite');
  const db = new DatabaseSync(path);
  db.exec(`CREATE TABLE cron_jobs ${columns})`);
  const insert = db.prepare('INSERT INTO cron_jobs VALUES (?, ?, 1, ?)');
  insert.run('bad', '{"id":', 1);
  insert.run('good', '{"id":"good","schedule":"0 9 * * *","message":"Hi"}', 2);
  const read = () => openclawJobs(openclawDatabaseText(path), path, context).jobs.map((job) => 'alarm' in job);
  assert.deepEqual(read(), [false, true]);
  for (let at = 0; at < 3; at++) insert.run(`large${at}`, JSON.stringify({ text: 'x'.repeat(6 * 1024 * 1024) }), at);
  db.close();
  assert.throws(() => openclawDatabaseText(path), { message: /its jobs have more than 16 MiB/ });
});

test('reading a long line takes a time in proportion to its length', () => {
  const started = performance.now();
  for (const part of [' ', '\t', 'a ', 'A=', '"', '%', '\\%', '~', ',', '@', '1~', '*/', 'A= b ']) {
    const long = part.repeat(300_000 / part.length);
    const lines = [long, `0 9 * * * ${long}`, `0 9 * * * x${long}x`, `A=x${long}x`, `"A${long}`, `0${long} 9 * * * x`];
    for (const line of lines) crontabJobs(`@daily x\n${line}`, 'crontab -l', { ...context, hasUserColumn: true });
    const job = { id: 'a', schedule: `0 9 * * *${long}`, message: `x${long}x` };
    openclawJobs(JSON.stringify({ jobs: [job] }), 'jobs.json', context);
    const task = { id: 'a', cron: `CRON_TZ=UTC 0 9${long} * * *`, prompt: `x${long}x`, createdAt: 1, recurring: true };
    claudeJobs(JSON.stringify({ tasks: [task] }), 'tasks.json', context);
  }
  // A second on an idle machine; one quadratic expression takes minutes.
  assert.ok(performance.now() - started < 60_000);
});
