import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { startStandInNtfy } from '../../../test/support/stand-ins/ntfy.ts';
import { sharedOwner, temporaryFolder } from '../../../test/support/temporary.ts';

const shared = sharedOwner();
after(() => shared.end());
const home = temporaryFolder(shared);
const env = { MATRIX_USER_ID: 'ada' };
const run = (...words: string[]) => reveille(home, words, { env });

test('a channel is added, listed without its secrets, tried and removed', async (t) => {
  const ntfy = await startStandInNtfy(t, 'tk_sesame');
  const tokenFile = join(home, 'token');
  writeFileSync(tokenFile, 'tk_sesame\n');
  const added = await run(
    ...['notify', 'add', 'ntfy', '--server', ntfy.url, '--topic', 'ada', '--token-file', tokenFile, '--allow-private'],
    ...['--quiet', '22:00-07:00'],
  );
  assert.equal(added.stderr, '');
  assert.match(
    added.stdout,
    /^ntfy gets notifications about approvals, failures, missed at http:.*\/ada, quiet 22:00-07:00 Europe\/Berlin\n/,
  );
  const hook = await run(
    'notify',
    'add',
    'webhook',
    '--url',
    'https://hooks.example/s3cret',
    '--about',
    'all',
    '--json',
  );
  const { secret, ...view } = JSON.parse(hook.stdout);
  assert.match(secret, /^whsec_/);
  assert.deepEqual([view.name, view.place, view.told.length], ['webhook', 'https://hooks.example', 4]);
  for (const words of [
    ['notify', 'list'],
    ['notify', 'list', '--json'],
  ]) {
    const { stdout } = await run(...words);
    assert.match(stdout, /webhook/);
    assert.doesNotMatch(stdout, /tk_sesame|s3cret|whsec_/);
  }
  const tried = await run('notify', 'test', 'ntfy');
  assert.deepEqual([tried.status, ntfy.shown()[0]?.title], [0, 'Reveille can reach you here']);
  ntfy.misbehave = (response) => {
    response.destroy();
    return true;
  };
  const away = await run('notify', 'test', 'ntfy');
  assert.match(away.stderr, /^error: the test message to ntfy failed: ntfy cannot be reached: [A-Z_]+$/m);
  assert.equal(away.stderr.match(/cannot be reached/g)?.length, 1);
  assert.equal((await run('notify', 'remove', 'ntfy')).status, 0);
  const gone = await run('notify', 'test', 'ntfy');
  assert.deepEqual([gone.status, /ada has no channel ntfy; see: reveille notify list/.test(gone.stderr)], [1, true]);
  assert.equal(readFileSync(join(home, 'notify', 'notify.db')).includes('tk_sesame'), false);
});

test('a wrong command line is refused with what is wrong and what would be right', async () => {
  const wrong: [string[], number, RegExp][] = [
    [['pigeon'], 2, /the channel must be one of ntfy, webpush, webhook, command, desktop \(got "pigeon"\)/],
    [['ntfy'], 2, /--topic is missing/],
    [['ntfy', '--topic', 'a', '--url', 'https://x.example'], 2, /--url is not a flag of ntfy/],
    [['ntfy', '--topic', 'a', '--about', 'rings,noise'], 2, /--about must be all, or some of .* \(got "noise"\)/],
    [['ntfy', '--topic', 'a', '--quiet', '22-7'], 2, /--quiet must look like 22:00-07:00/],
    [['ntfy', '--topic', 'a', '--quiet', '22:00-22:00'], 1, /to must differ from from/],
    [['ntfy', '--topic', 'a', '--server', 'http://10.0.0.1'], 1, /10\.0\.0\.1 is an address of a private network; to allow it/],
    [['webhook'], 2, /--url is missing/],
    [['webhook', '--url', 'http://127.0.0.1/'], 1, /an address of this computer; .* --allow-private/],
    [['webpush'], 2, /--subscription-file is missing/],
    [['command'], 2, /the program is missing/],
    [['desktop', 'extra'], 2, /desktop takes no arguments \(got "extra"\)/],
  ];
  for (const [words, status, expected] of wrong) {
    const outcome = await run('notify', 'add', ...words);
    assert.equal(outcome.status, status, `${words}: ${outcome.stderr}`);
    assert.match(outcome.stderr, expected);
  }
});
