import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reveilleProcess } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';

test('a command that does not exist ends with 2, also when its help is asked for', async (t) => {
  const home = temporaryFolder(t);
  const cases: [string[], RegExp][] = [
    [['chronograph'], /unknown command 'chronograph'/],
    [['chronograph', '--help'], /unknown command 'chronograph'/],
    [['chronograph', '-h'], /unknown command 'chronograph'/],
    [['--help', 'bogus'], /unknown command 'bogus'/],
    [['alrm', '--help'], /unknown command 'alrm'\n\(Did you mean alarm\?\)/],
    [['alarm', 'bogus', '--help'], /unknown command 'bogus'/],
  ];
  for (const [words, said] of cases) {
    const { status, stdout, stderr } = await reveilleProcess(home, words);
    assert.deepEqual([words, status, stdout], [words, 2, '']);
    assert.match(stderr, said);
  }
});

test('the help of what exists, and the version, are printed and end with 0', async (t) => {
  const home = temporaryFolder(t);
  const cases: [string[], RegExp][] = [
    [['--help'], /^Usage: reveille /],
    [['-h'], /^Usage: reveille /],
    [['alarm', '-h'], /^Usage: reveille alarm /],
    [['-v'], /^\d+\.\d+\.\d+\S*\n$/],
    [['--version'], /^\d+\.\d+\.\d+\S*\n$/],
    [['help'], /^Usage: reveille /],
    [['help', '--help'], /^Usage: reveille /],
    [['alarm', '--help'], /^Usage: reveille alarm /],
    [['help', 'alarm'], /^Usage: reveille alarm /],
    [['alarm', 'show', 'x', '--help'], /^Usage: reveille alarm show /],
  ];
  for (const [words, said] of cases) {
    const { status, stdout, stderr } = await reveilleProcess(home, words);
    assert.deepEqual([words, status, stderr], [words, 0, '']);
    assert.match(stdout, said);
  }
});
