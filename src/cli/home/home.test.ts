import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { homeAt, makeHome } from './home.ts';

const refused = (path: string) =>
  assert.throws(
    () => makeHome(homeAt(path)),
    (error: Error) => error.message.startsWith(`REVEILLE_HOME ${path} cannot be created: `),
  );

test('a home is made with the folders above it, open to nobody else, and may be there already', (t) => {
  const path = join(temporaryFolder(t), 'a', 'b');
  for (let round = 0; round < 2; round++) makeHome(homeAt(path));
  assert.equal(statSync(path).mode & 0o777, 0o700);
  assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700);
});

test('a home behind a link to a folder is that folder', (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'real'));
  symlinkSync('real', join(folder, 'link'));
  makeHome(homeAt(join(folder, 'link', 'home')));
  assert.ok(statSync(join(folder, 'real', 'home')).isDirectory());
});

test('a home that cannot be made is refused: below a file, in place of one, behind a link to nothing', (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'file'), '');
  symlinkSync('nothing', join(folder, 'link'));
  for (const path of ['file', 'file/home', 'link', 'link/home']) refused(join(folder, path));
});

test('a home in a file system that takes no folders is refused, not tried for ever', () => {
  refused('/proc/reveille');
  refused('/proc/reveille/home');
});

test('a home that others may write to, or in which files are links, stops the start and says what to do', (t) => {
  const path = join(temporaryFolder(t), 'home');
  const keys = join(path, 'keys');
  const refusal = (pattern: RegExp) => assert.throws(() => makeHome(homeAt(path)), pattern);
  makeHome(homeAt(path));
  mkdirSync(keys, { mode: 0o700 });
  for (const [name, place] of [
    ['home', path],
    ['home/keys', keys],
  ] as const) {
    for (const mode of [0o770, 0o702, 0o777]) {
      chmodSync(place, mode);
      refusal(new RegExp(`${name} is writable for other users \\(mode 0${mode.toString(8)}\\); run: chmod 700 `));
    }
    chmodSync(place, 0o755);
    makeHome(homeAt(path));
    const link = join(place, 'secrets.json');
    symlinkSync('/dev/null', link);
    refusal(new RegExp(`${name}/secrets\\.json is a link; replace the link by the file itself`));
    rmSync(link);
  }
  makeHome(homeAt(path));
});
