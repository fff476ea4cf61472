import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reveilleProcess } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { everyCommand, outlineOf } from '../outline/outline.ts';
import { buildProgram, LISTED } from './program.ts';

test('an absent command ends with 2, also with --help', async (t) => {
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

test('the help of existing commands, and the version, are printed and end with 0', async (t) => {
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

test('every command is in the help of the program or of a topic', async (t) => {
  const program = buildProgram(process);
  const names = program
    .createHelp()
    .visibleCommands(program)
    .map((command) => command.name());
  assert.deepEqual(names.toSorted(), LISTED.toSorted());
  const { stdout } = await reveilleProcess(temporaryFolder(t), ['--help']);
  assert.ok(stdout.split('\n').length <= 40, stdout);
  for (const [topic, word] of [
    ['operate', 'backup'],
    ['daemons', 'chronosd'],
    ['agents', 'machine'],
    ['approvals', 'policy'],
  ] as const) {
    const page = await reveilleProcess(temporaryFolder(t), ['help', topic]);
    assert.equal(page.status, 0, page.stderr);
    assert.match(page.stdout, new RegExp(`^  ${word} `, 'm'));
  }
});

test('each command has a summary of one line and examples that parse', async () => {
  const outline = await outlineOf(buildProgram(process));
  for (const command of everyCommand(outline).slice(1)) {
    assert.ok(command.summary.length <= 110, command.words.join(' '));
    assert.match(command.after, /Examples?:\n {2}\$ /, command.words.join(' '));
  }
});

test('the old name of a renamed command works, with a warning', async (t) => {
  const { stderr, status } = await reveilleProcess(temporaryFolder(t), ['spread', '--buckets', '0']);
  assert.match(stderr, /"spread" is now "reshard"/);
  assert.notEqual(status, 0);
});
