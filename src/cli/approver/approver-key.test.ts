import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { approverLocation, loadOrMakeApprover, openApproverWith, sealApprover } from './approver-key.ts';
import { guardGuess, WAITING_MAX, WRONG_MAX } from './passphrase-guard.ts';

test("the approver's key is beside the home, in the system's folder for settings", () => {
  const environment = { HOME: '/home/ada', REVEILLE_HOME: '/home/ada/.reveille' };
  const fileOn = (platform: NodeJS.Platform, more = {}) => approverLocation({ ...environment, ...more }, platform).file;
  assert.equal(fileOn('linux'), '/home/ada/.config/reveille-approver/approver.json');
  assert.equal(fileOn('darwin'), '/home/ada/Library/Application Support/reveille-approver/approver.json');
  assert.equal(fileOn('linux', { XDG_CONFIG_HOME: '/settings' }), '/settings/reveille-approver/approver.json');
  assert.equal(fileOn('linux', { REVEILLE_APPROVER_DIR: '/stick' }), '/stick/approver.json');
});

test('the first key is made there, readable by its owner alone, and the home has no part of it', async (t) => {
  const folder = temporaryFolder(t);
  const environment = {
    HOME: folder,
    REVEILLE_HOME: join(folder, '.reveille'),
    REVEILLE_APPROVER_STORE: 'file',
  };
  const made = await loadOrMakeApprover(environment, 0);
  assert.equal(made.file, approverLocation(environment).file);
  assert.equal(statSync(made.file).mode & 0o777, 0o600);
  assert.ok(!existsSync(environment.REVEILLE_HOME));
  const again = await loadOrMakeApprover(environment, 1);
  assert.equal(again.publicKey, made.publicKey);
  assert.deepEqual(readdirSync(join(made.file, '..')), ['approver.json']);
});

const codeOf = (thrown: unknown) => (thrown instanceof ReveilleError ? thrown.code : String(thrown));

test('five wrong passphrases on pages lock the key, also for the right one and after a restart', async (t) => {
  const environment = { HOME: temporaryFolder(t), REVEILLE_APPROVER_STORE: 'file' };
  await loadOrMakeApprover(environment, 0);
  const right = 'four quiet words here';
  const seal = () => sealApprover(environment, { old: async () => right, fresh: async () => right });
  await seal();
  let now = 1_000_000;
  const open = (passphrase: string) =>
    openApproverWith(environment, passphrase, () => now).then(() => 'opened', codeOf);
  assert.equal(await open('wrong words'), 'forbidden');
  assert.equal(await open(right), 'opened', 'a right one resets the count');
  for (let guess = 0; guess < WRONG_MAX; guess++) assert.equal(await open('wrong words'), 'forbidden');
  assert.equal(await open(right), 'rate_limited');
  // Nothing of the count is in memory: what the file says holds for the next process as well.
  const kept = join(approverLocation(environment).folder, 'wrong-passphrases.json');
  assert.deepEqual(JSON.parse(readFileSync(kept, 'utf8')), { wrong: 5, locked_until: now + 15 * 60_000 });
  now += 15 * 60_000;
  assert.equal(await open('wrong words'), 'forbidden');
  now += 15 * 60_000;
  assert.equal(await open(right), 'rate_limited', 'the next lock is twice as long');
  await seal();
  assert.equal(await open(right), 'opened', 'a terminal is not locked, and sealing anew ends the lock');
});

test('guesses are processed one at a time, a few wait, and more are refused with Retry-After', async (t) => {
  const file = join(temporaryFolder(t), 'wrong-passphrases.json');
  let [open, most] = [0, 0];
  const guess = () =>
    guardGuess(
      file,
      () => 0,
      async () => {
        most = Math.max(most, ++open);
        await new Promise(setImmediate);
        open--;
        return 'opened';
      },
    );
  const outcomes = await Promise.allSettled(Array.from({ length: 50 }, guess));
  const refused = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason as ReveilleError] : [],
  );
  t.diagnostic(
    `50 simultaneous guesses: ${50 - refused.length} processed, ${most} at a time, ${refused.length} refused`,
  );
  assert.deepEqual([most, refused.length], [1, 50 - (WAITING_MAX + 1)]);
  for (const { code, retryAfterSeconds } of refused) assert.deepEqual([code, retryAfterSeconds], ['unavailable', 2]);
  assert.equal(await guess(), 'opened');
});

test('simultaneous guesses are limited to five as well', async (t) => {
  const file = join(temporaryFolder(t), 'wrong-passphrases.json');
  let tried = 0;
  const wrong = () =>
    guardGuess(
      file,
      () => 0,
      async () => {
        tried++;
        throw new ReveilleError('forbidden', 'wrong');
      },
    ).catch(() => {});
  for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 4 }, wrong));
  assert.equal(tried, WRONG_MAX);
});
