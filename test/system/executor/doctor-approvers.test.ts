/** The checks of `reveille doctor` about approvers, against a real executor. */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import type { Check } from '../../../src/cli/doctor/check.ts';
import { testApprover } from '../../../src/kit/identity/testing/approver.ts';
import { ADMIN_TOKEN, enrolled, executorKeyOf } from '../../support/cluster/approval.ts';
import { reveille } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { startedExecutor, TOKEN } from './executor-bench.ts';

const KEY = "approver's key";

/** An executor that can be restarted, and the computer of ada. */
async function open(t: TestContext) {
  const folder = temporaryFolder(t);
  let executor = await startedExecutor(t, folder);
  const run = (args: string[], more: Record<string, string> = {}, input?: string) =>
    reveille(join(folder, 'home'), args, {
      env: {
        // No request goes to the default ports, where others may listen.
        MATRIX_CHRONOS_URL: 'http://127.0.0.1:1',
        NEO_EXECUTOR_URL: executor.url,
        NEO_EXECUTOR_TOKEN: TOKEN,
        EXECUTOR_ADMIN_TOKEN: ADMIN_TOKEN,
        EXECUTOR_DATA_DIR: join(folder, 'executor'),
        MATRIX_USER_ID: 'ada',
        REVEILLE_APPROVER_DIR: join(folder, 'approver'),
        REVEILLE_APPROVER_STORE: 'file',
        ...more,
      },
      ...(input !== undefined && { input }),
    });
  return {
    run,
    url: () => executor.url,
    keyFile: join(folder, 'approver', 'approver.json'),
    async enroll() {
      const { status, stderr } = await run(['approver', 'enroll']);
      assert.equal(status, 0, stderr);
    },
    /** The checks by their names. */
    async runChecks(more: Record<string, string> = {}): Promise<Record<string, Check | undefined>> {
      const { stdout } = await run(['doctor', '--json'], more);
      const { checks } = JSON.parse(stdout) as { checks: Check[] };
      return Object.fromEntries(checks.map((check) => [check.name, check]));
    },
    /** Stops the executor while a function changes its folder. */
    async stopped(work: (dataDir: string) => unknown) {
      await executor.close();
      await work(join(folder, 'executor'));
      executor = await startedExecutor(t, folder);
    },
  };
}

test('doctor reports that no approver is enrolled, that this computer’s key may not answer, and that it is unsealed', async (t) => {
  const { run, url, runChecks, keyFile } = await open(t);
  const before = await runChecks();
  assert.equal(before[KEY], undefined, 'there is no key to check');
  assert.equal(before.approvers?.status, 'warning');
  assert.match(before.approvers!.detail, /ada has no approver/);
  assert.match(before.approvers!.remedy!, /reveille approver enroll/);

  const other = testApprover();
  await enrolled(url(), 'ada', other);
  const without = await runChecks();
  assert.equal(without.approvers?.status, 'note');
  assert.match(without.approvers!.detail, /1 active key for ada; this computer has none/);

  assert.equal((await run(['approver', 'enroll'])).status, 1, 'another key must vouch for it');
  const unenrolled = await runChecks();
  assert.equal(unenrolled.approvers?.status, 'warning');
  assert.match(unenrolled.approvers!.detail, /is not among the approvers of ada: its answers are rejected/);

  const operator = await runChecks({ EXECUTOR_ADMIN_TOKEN: '' });
  assert.equal(operator.approvers?.status, 'note');
  assert.match(operator.approvers!.detail, /not asked: EXECUTOR_ADMIN_TOKEN is not set/);

  await run(['approver', 'enroll'], { MATRIX_USER_ID: 'eve' });
  const hers = await runChecks({ MATRIX_USER_ID: 'eve' });
  assert.equal(hers.approvers?.status, 'ok', hers.approvers?.detail);
  assert.equal(hers[KEY]?.status, 'note');
  assert.match(hers[KEY]!.detail, /not sealed, stored in .*every program .* can approve with it/);
  assert.match(hers[KEY]!.remedy!, /reveille approver seal/);
  assert.equal((await run(['approver', 'seal'], {}, 'a horse that nobody has stapled\n')).status, 0);
  const sealed = await runChecks({ MATRIX_USER_ID: 'eve' });
  assert.equal(sealed[KEY]?.status, 'ok');

  writeFileSync(keyFile, '{}');
  const damaged = await runChecks({ MATRIX_USER_ID: 'eve' });
  assert.equal(damaged[KEY]?.status, 'broken');
  assert.match(damaged[KEY]!.detail, /is damaged/);
});

test('doctor reports that this computer’s key was revoked, and that it does not return', async (t) => {
  const { run, runChecks, enroll, keyFile } = await open(t);
  await enroll();
  const { public_key: own } = JSON.parse(readFileSync(keyFile, 'utf8')) as { public_key: string };
  const laptop = { REVEILLE_APPROVER_DIR: `${keyFile}.laptop` };
  const asked = await run(['approver', 'enroll', '--json'], laptop);
  writeFileSync(`${keyFile}.request`, asked.stdout);
  assert.equal((await run(['approver', 'enroll', '--request-file', `${keyFile}.request`])).status, 0);
  const revoked = await run(['approver', 'revoke', own], laptop);
  assert.equal(revoked.status, 0, revoked.stderr);
  const { approvers } = await runChecks();
  assert.equal(approvers?.status, 'warning');
  assert.match(approvers!.detail, /was revoked at .*: its answers are rejected/);
  assert.match(approvers!.remedy!, /move .*approver\.json away, then enroll a new key/);
});

test('doctor reports a reset roster until its first new key is on this computer, and forged lines', async (t) => {
  const { run, url, runChecks, enroll, stopped, keyFile } = await open(t);
  await enrolled(url(), 'ada');
  await stopped(async () => {
    const { status, stderr } = await run(['approver', 'reset', '--user', 'ada']);
    assert.equal(status, 0, stderr);
  });
  const after = await runChecks();
  assert.equal(after['approvers reset']?.status, 'warning');
  assert.match(
    after['approvers reset']!.detail,
    /of ada were reset by the operator at .*keys enrolled since may approve/,
  );
  await enroll();
  const known = await runChecks();
  assert.equal(known.approvers?.status, 'ok');
  assert.equal(known['approvers reset']?.status, 'note');
  assert.equal(known['forged approvers'], undefined);

  const thief = testApprover();
  const { approver, name, expires_at, signature } = thief.enrollment(await executorKeyOf(url()), 'ada');
  const { public_key: own } = JSON.parse(readFileSync(keyFile, 'utf8')) as { public_key: string };
  await stopped((dataDir) => {
    const db = new DatabaseSync(join(dataDir, 'journal.db'));
    db.prepare(
      `INSERT INTO approvers (user_id, public_key, name, enrolled_at, expires_at, signature, voucher, voucher_signature)
       VALUES ('ada', ?, ?, ?, ?, ?, ?, ?)`,
    ).run(approver, name, Date.now(), expires_at, signature, own, 'a'.repeat(128));
    db.close();
  });
  const forged = await runChecks();
  assert.equal(forged.approvers?.status, 'ok', 'the line creates no approver');
  assert.equal(forged['forged approvers']?.status, 'broken');
  assert.ok(forged['forged approvers']!.detail.includes(`${approver.slice(0, 16)}…`));
  const { status } = await run(['doctor']);
  assert.equal(status, 1);
});
