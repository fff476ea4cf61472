/**
 * `reveille approver` and `submitter` as a person uses them: where the key is kept, under a passphrase, on two
 * computers, and when it is lost.
 */

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { testPasskey } from '../../../src/kit/identity/testing/passkey.ts';
import { ADMIN_TOKEN, executorKeyOf } from '../../support/cluster/approval.ts';
import { type Outcome, reveille } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { callerOf, startedExecutor, TOKEN, transfer } from './executor-bench.ts';

const PASSPHRASE = 'a horse that nobody has stapled';

async function open(t: TestContext) {
  const folder = temporaryFolder(t);
  const executor = await startedExecutor(t, folder);
  const home = join(folder, 'home');
  /** A command line of a user whose key is in a folder of its own. */
  const at =
    (computer: string) =>
    (args: string[], more: Record<string, string> = {}, input?: string): Promise<Outcome> =>
      reveille(home, args, {
        env: {
          EXECUTOR_PORT: String(executor.port),
          EXECUTOR_TOKEN: TOKEN,
          EXECUTOR_ADMIN_TOKEN: ADMIN_TOKEN,
          MATRIX_USER_ID: 'ada',
          REVEILLE_APPROVER_DIR: join(folder, computer),
          REVEILLE_APPROVER_STORE: 'file',
          ...more,
        },
        ...(input !== undefined && { input }),
      });
  const keyFile = (computer: string) => join(folder, computer, 'approver.json');
  return { folder, executor, desktop: at('desk'), at, keyFile, ada: callerOf(executor, 'ada') };
}

function done({ status, stdout, stderr }: Outcome): string {
  assert.equal(status, 0, stderr + stdout);
  return stdout;
}

test('a key is created and enrolled, sealed with a passphrase, and answers nothing without it', async (t) => {
  const { desktop, keyFile, ada, folder } = await open(t);
  assert.equal((await desktop(['approver', 'show'])).status, 1);
  done(await desktop(['approver', 'enroll', '--name', 'ada at her desk']));
  const { approver, kept } = JSON.parse(done(await desktop(['approver', 'show', '--json'])));
  assert.equal(kept, 'file');
  assert.equal(statSync(keyFile('desk')).mode & 0o777, 0o600);
  assert.equal(statSync(join(folder, 'desk')).mode & 0o777, 0o700);
  const { seed } = JSON.parse(readFileSync(keyFile('desk'), 'utf8')) as { seed: string };
  const listed = done(await desktop(['approver', 'list']));
  assert.match(listed, /\(yours\) +ada +active +ada at her desk/);
  assert.match(listed, /^The executor signs receipts with [0-9a-f]{64}$/m);

  const short = await desktop(['approver', 'seal'], {}, 'short\n');
  assert.match(short.stderr, /at least 8 characters/);
  done(await desktop(['approver', 'seal'], {}, `${PASSPHRASE}\n`));
  const sealed = readFileSync(keyFile('desk'), 'utf8');
  assert.ok(!sealed.includes(seed), 'none of it stays unsealed');
  assert.deepEqual(readdirSync(join(folder, 'desk')), ['approver.json']);
  assert.equal(JSON.parse(sealed).public_key, approver);

  const id = await ada.submit({ intent: transfer() });
  const { displayed_sha256: question } = await ada.waiting(id);
  const approve = ['intent', 'approve', id, '--displayed-sha256', question];
  const withoutPassphrase = await desktop(approve);
  assert.equal(withoutPassphrase.status, 2);
  assert.match(withoutPassphrase.stderr, /REVEILLE_APPROVER_PASSPHRASE_FILE/);
  assert.match((await desktop(approve, {}, 'another horse\n')).stderr, /passphrase is wrong/);
  const readable = join(folder, 'readable');
  writeFileSync(readable, PASSPHRASE, { mode: 0o644 });
  assert.match((await desktop(approve, { REVEILLE_APPROVER_PASSPHRASE_FILE: readable })).stderr, /used by others/);
  assert.equal((await ada.state(id)).status, 'awaiting_approval');
  const file = join(folder, 'passphrase');
  writeFileSync(file, `${PASSPHRASE}\n`, { mode: 0o600 });
  done(await desktop(approve, { REVEILLE_APPROVER_PASSPHRASE_FILE: file }));
  await ada.until(id, 'completed');

  assert.match(done(await desktop(['approver', 'unseal'], {}, `${PASSPHRASE}\n`)), /Any program of yours can read it/);
  assert.equal(JSON.parse(readFileSync(keyFile('desk'), 'utf8')).seed, seed);
  writeFileSync(keyFile('desk'), sealed.replace(/"N": \d+/, '"N": 4294967296'));
  assert.match((await desktop(['approver', 'show'])).stderr, /is damaged and was not changed/);
});

test('a second computer asks, an enrolled one vouches, and either can revoke the other but not the last', async (t) => {
  const { desktop, at, folder, ada } = await open(t);
  const laptop = at('laptop');
  done(await desktop(['approver', 'enroll']));
  const asked = await laptop(['approver', 'enroll', '--name', 'laptop', '--json']);
  assert.equal(asked.status, 1, 'it is not enrolled yet');
  assert.match(asked.stderr, /--request-file/);
  const request = join(folder, 'request.json');
  writeFileSync(request, asked.stdout);
  assert.match((await laptop(['approver', 'enroll', '--request-file', request])).stderr, /is not an active approver/);
  done(await desktop(['approver', 'enroll', '--request-file', request]));
  const { approver: ofLaptop } = JSON.parse(done(await laptop(['approver', 'show', '--json'])));
  const { approver: desktopKey } = JSON.parse(done(await desktop(['approver', 'show', '--json'])));

  const id = await ada.submit({ intent: transfer() });
  const { displayed_sha256: question } = await ada.waiting(id);
  done(await desktop(['approver', 'revoke', ofLaptop.slice(0, 12)]));
  const late = await laptop(['intent', 'approve', id, '--displayed-sha256', question]);
  const remedy = /is not an active approver of ada; enroll the key of this computer with: reveille approver enroll\n$/;
  assert.match(late.stderr, remedy);
  assert.equal(late.stdout, '', 'the question is not shown');
  // Without the operator's token the executor rejects the answer.
  for (const verb of ['approve', 'deny']) {
    const words = ['intent', verb, id, '--displayed-sha256', question];
    assert.match((await laptop(words, { EXECUTOR_ADMIN_TOKEN: '' })).stderr, remedy);
  }
  const keyless = await at('keyless')(['intent', 'approve', id]);
  assert.match(keyless.stderr, /no approver's key is at .*; create and enroll one with: reveille approver enroll/);
  assert.equal(keyless.stdout, '');
  assert.match((await desktop(['approver', 'revoke', desktopKey])).stderr, /is the last key of ada/);
  assert.match(
    (await laptop(['approver', 'enroll'])).stderr,
    /was revoked for ada: .*move .* away and run: reveille approver enroll/,
  );
  assert.match(done(await laptop(['approver', 'show'])), /\nREVOKED at \S+ for ada/);
  assert.doesNotMatch(done(await desktop(['approver', 'show'])), /REVOKED/);
  for (const line of done(await desktop(['approver', 'list']))
    .split('\n')
    .filter((one) => !one.startsWith('The executor')))
    assert.ok(line.length <= 80, line);
  assert.match(done(await desktop(['approver', 'list'])), new RegExp(`revoked \\S+ by ${desktopKey.slice(0, 16)}`));
  assert.equal((await ada.state(id)).status, 'awaiting_approval');
});

test('a lost key is reset in the stopped executor’s own folder, and every list shows it', async (t) => {
  const { desktop, at, executor, folder } = await open(t);
  done(await desktop(['approver', 'enroll']));
  const data = { EXECUTOR_DATA_DIR: join(folder, 'executor') };
  const running = await desktop(['approver', 'reset', '--user', 'ada'], data);
  assert.equal(running.status, 1, 'not while it runs');
  await executor.close();
  assert.match(
    done(await desktop(['approver', 'reset', '--user', 'ada'], data)),
    /1 revoked\. The reset stays on record/,
  );
  const again = await startedExecutor(t, folder);
  const found = at('found');
  const env = { EXECUTOR_PORT: String(again.port) };
  assert.match(done(await found(['approver', 'enroll'], env)), /Enrolled/);
  assert.match(done(await found(['approver', 'list'], env)), /operator RESET the approvers of ada at/);
  assert.match((await desktop(['approver', 'enroll'], env)).stderr, /was revoked for ada|word/);
});

/** A `secret-tool` of these tests: it stores its input in a file, or behaves as the test sets. */
function secretTool(folder: string, script: string): Record<string, string> {
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  const path = join(bin, 'secret-tool');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return {
    PATH: `${bin}:${process.env.PATH}`,
    DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere',
    REVEILLE_APPROVER_STORE: '',
  };
}

test('the system’s key store is used where it answers, and the file where it hangs or fails', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const { at, folder, keyFile } = await open(t);
  const kept = join(folder, 'kept');
  const works = secretTool(
    folder,
    `env > "${folder}/seen"; echo "$@" >> "${folder}/argv"; case "$1" in store) cat > "${kept}";; lookup) cat "${kept}";; clear) rm "${kept}";; esac`,
  );
  const desktop = at('desk');
  done(await desktop(['approver', 'enroll'], works));
  const record = JSON.parse(readFileSync(keyFile('desk'), 'utf8'));
  assert.deepEqual([record.keyring, record.seed], ['secret-service', undefined]);
  const seed = readFileSync(kept, 'utf8');
  assert.match(seed, /^[0-9a-f]{64}$/);
  assert.ok(
    !readFileSync(join(folder, 'argv'), 'utf8').includes(seed),
    'it is not an argument, which others could read',
  );
  assert.doesNotMatch(
    readFileSync(join(folder, 'seen'), 'utf8'),
    /REVEILLE_|TOKEN/,
    'it gets none of the executor’s variables',
  );
  done(await desktop(['approver', 'seal'], works, `${PASSPHRASE}\n`));
  assert.throws(() => statSync(kept), { code: 'ENOENT' });

  for (const [name, script] of [
    ['hangs', 'sleep 600'],
    ['asks', 'cat; read answer'],
    ['fails', 'exit 1'],
    ['forgets', 'cat > /dev/null'],
  ] as const) {
    const here = at(name);
    const tool = secretTool(folder, script);
    await here(['approver', 'enroll'], tool);
    assert.match(String(JSON.parse(readFileSync(keyFile(name), 'utf8')).seed), /^[0-9a-f]{64}$/, name);
  }
  const asked = await at('asked')(['approver', 'enroll'], {
    ...secretTool(folder, 'exit 1'),
    REVEILLE_APPROVER_STORE: 'keyring',
  });
  assert.match(asked.stderr, /no keyring that answers; set it to file/);
  const odd = await at('odd')(['approver', 'enroll'], { REVEILLE_APPROVER_STORE: 'cloud' });
  assert.match(odd.stderr, /REVEILLE_APPROVER_STORE must be one of keyring, file/);
});

test('a submitter is added, listed and revoked, and its token is shown once', async (t) => {
  const { desktop, executor } = await open(t);
  const { id, token } = JSON.parse(done(await desktop(['submitter', 'add', 'my agent', '--json'])));
  assert.equal((await callerOf(executor, undefined, token).call('GET', '/intents')).status, 200);
  const listed = done(await desktop(['submitter', 'list']));
  assert.match(listed, /stands +ada +my agent/);
  for (const line of listed.split('\n')) assert.ok(line.length <= 80, line);
  assert.ok(!listed.includes(token));
  assert.match((await desktop(['submitter', 'revoke', 'bogus'])).stderr, /see: reveille submitter list/);
  done(await desktop(['submitter', 'revoke', 'my agent']));
  assert.match(done(await desktop(['submitter', 'revoke', id.slice(0, 8)])), /Revoked my agent/);
  assert.equal((await callerOf(executor, undefined, token).call('GET', '/intents')).status, 401);
  assert.match((await desktop(['submitter', 'list'], { EXECUTOR_ADMIN_TOKEN: TOKEN })).stderr, /Bearer/);
  assert.match(
    (await desktop(['submitter', 'list'], { EXECUTOR_ADMIN_TOKEN: '' })).stderr,
    /EXECUTOR_ADMIN_TOKEN is not set/,
  );
});

test('a passkey from a page is enrolled on the command line, listed with its address, and revoked', async (t) => {
  const { executor, desktop, folder, ada } = await open(t);
  done(await desktop(['approver', 'enroll']));
  const passkey = testPasskey();
  const file = join(folder, 'request.json');
  const request = passkey.enrollment(await executorKeyOf(executor.url), 'ada');
  writeFileSync(file, JSON.stringify({ request }));
  const vouched = done(await desktop(['approver', 'enroll', '--request-file', file]));
  assert.match(vouched, /A passkey for http:\/\/localhost:8087 \(ada's passkey\) asks to approve for ada/);
  assert.match(
    done(await desktop(['approver', 'list'])),
    /ada's passkey\n +a passkey for http:\/\/localhost:8087, enrolled/,
  );
  const id = await ada.submit({ intent: transfer() });
  assert.equal((await ada.sendAnswer(id, 'pay', passkey.answer(id, await ada.waiting(id)))).status, 200);
  await ada.until(id, 'completed');
  const receipt = join(folder, 'receipt.json');
  writeFileSync(receipt, JSON.stringify(await ada.data('GET', `/intents/${id}/receipt`)));
  const args = ['receipt', 'verify', receipt, '--trust-embedded', '--approver', passkey.approver];
  const output = done(await desktop(args)).replace(/\s+/g, ' ');
  assert.match(
    output,
    new RegExp(`signed with the passkey ${passkey.approver} \\(ada's passkey\\) at http://localhost:8087`),
  );
  const [{ answered }] = JSON.parse(done(await desktop([...args, '--json']))).calls;
  assert.deepEqual([answered.signed_with, answered.origin], ['passkey', 'http://localhost:8087']);
  done(await desktop(['approver', 'revoke', passkey.approver.slice(0, 12)]));
  assert.match(done(await desktop(['approver', 'list'])), /revoked +ada's passkey/);
});
