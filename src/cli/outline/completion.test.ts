/** Completions in their shells, and the manual page in its formatter. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { lacks } from '../../../test/support/tools.ts';
import type { CliProcess } from '../cli-process.ts';
import { buildProgram } from '../tree/program.ts';
import { everyCommand, manPage, outlineOf } from './outline.ts';

const quiet = { env: {}, stdout: new PassThrough(), stderr: new PassThrough() } as unknown as CliProcess;

/** Command lines, the word being typed, and the expected offers; a minus marks an offer that must be absent. */
const CASES: readonly (readonly [line: readonly string[], offered: readonly string[]])[] = [
  [['al'], ['alarm', '-agent']],
  [
    ['alarm', ''],
    ['set', 'list', 'show', 'watch', '-doctor'],
  ],
  [
    ['alarm', 'set', '--in', '5m', '--mes'],
    ['--message-file', '-set'],
  ],
  [
    ['--json', 'alarm', 'set', '--m'],
    ['--max-failures', '-alarm'],
  ],
  // The value of a flag is no command, though there is one of that name.
  [['machine', 'list', '--zone', 'alarm', ''], ['-set']],
  [
    ['alarm', 'list', '--status', ''],
    ['-list', '-alarm'],
  ],
  // Flags that are only loaded with their command.
  [['machine', 'put', '--prov'], ['--provider']],
  [
    ['neo', 'server', 'r'],
    ['review', 'remove', '-add'],
  ],
  [['restore', 'fold'], ['folder']],
  [['alarm', 'set', '--message-file', 'wor'], ['words and more.txt']],
  [
    ['neo', '--data-dir', ''],
    ['folder', '-words and more.txt', '-tools'],
  ],
  [['no', 'such', ''], ['-set']],
];

/** Runs a script of the shell that prints the offers for each case, an empty line after each. */
async function offers(t: TestContext, shell: string, asking: (script: string) => string): Promise<string[][]> {
  const home = temporaryFolder(t);
  const { stdout: script, status } = await reveille(home, ['completion', shell]);
  assert.equal(status, 0);
  const file = join(home, `completion.${shell}`);
  writeFileSync(file, script);
  const cwd = join(home, 'here');
  mkdirSync(join(cwd, 'folder'), { recursive: true });
  writeFileSync(join(cwd, 'words and more.txt'), '');
  const options = { cwd, encoding: 'utf8', env: { PATH: process.env.PATH, HOME: home, TERM: 'dumb' } } as const;
  const asked = spawnSync(shell, shell === 'zsh' ? ['-f', '-c', asking(file)] : ['-c', asking(file)], options);
  assert.equal(asked.stderr, '');
  return asked.stdout.split('==\n').map((lines) => lines.split('\n').filter((line) => line !== ''));
}

function check(shell: string, offered: readonly string[][]): void {
  for (const [at, [line, expected]] of CASES.entries()) {
    const words = offered[at]!.map((word) => word.replaceAll('\\ ', ' ').replace(/\/$/, ''));
    for (const each of expected) {
      const isWanted = !/^-[^-]/.test(each);
      const word = isWanted ? each : each.slice(1);
      assert.equal(words.includes(word), isWanted, `${shell}: ${line.join(' ')} | ${word} in ${words.join(', ')}`);
    }
  }
}

const quoted = (word: string) => `'${word}'`;

test('bash completes commands, flags and files, and treats no value as a command', async (t) => {
  if (lacks(t, 'bash')) return;
  const asks = CASES.map(([line]) => {
    const words = ['reveille', ...line].map(quoted).join(' ');
    return `COMP_WORDS=(${words}); COMP_CWORD=${line.length}; _reveille; printf '%s\\n' "\${COMPREPLY[@]}" ==`;
  });
  check('bash', await offers(t, 'bash', (file) => `source ${file}\n${asks.join('\n')}`));
});

test('fish completes the same', async (t) => {
  if (lacks(t, 'fish')) return;
  const asks = CASES.map(
    ([line]) => `complete -C ${quoted(`reveille ${line.join(' ')}`)} | string replace -r '\\t.*' ''; echo ==`,
  );
  check('fish', await offers(t, 'fish', (file) => `source ${file}\n${asks.join('\n')}`));
});

test('zsh offers the same words', async (t) => {
  if (lacks(t, 'zsh')) return;
  // Its own functions work in an interactive shell alone; these print their arguments.
  const stubs = `
    compdef() { : }
    _describe() { local name; while [[ $1 == -* ]]; do shift; [[ $1 == option ]] && shift; done
      name=\${@[-1]}; for each in \${(P)name}; do print -r -- \${each%%:*}; done }
    _files() { [[ $1 == -/ ]] && print -rl -- *(/) || print -rl -- *; }
    _message() { : }`;
  const asks = CASES.map(([line]) => {
    const words = ['reveille', ...line].map(quoted).join(' ');
    return `words=(${words}); CURRENT=${line.length + 1}; PREFIX=${quoted(line.at(-1)!)}; _reveille; print '=='`;
  });
  const offered = await offers(t, 'zsh', (file) => `${stubs}\nsource ${file}\n${asks.join('\n')}`);
  // The shell itself omits offers without the typed prefix.
  const fitting = offered.map((words, at) => words.filter((word) => word.startsWith(CASES[at]?.[0].at(-1) ?? '')));
  check('zsh', fitting);
});

test('an unknown shell is refused with the known ones', async (t) => {
  const { status, stderr } = await reveille(temporaryFolder(t), ['completion', 'tcsh']);
  assert.deepEqual([status, stderr], [2, 'error: the shell must be one of bash, zsh, fish (got "tcsh")\n']);
});

test('the manual page has every command and flag, and its formatter has no warning', async (t) => {
  const outline = await outlineOf(buildProgram(quiet));
  const page = manPage(outline, '1.2.3');
  const commands = everyCommand(outline).slice(1);
  assert.equal(page.split('\n').filter((line) => line.startsWith('.SS ')).length, commands.length);
  if (lacks(t, 'groff')) return;
  const { stdout, stderr } = spawnSync('groff', ['-man', '-ww', '-Tutf8', '-P-cbou', '-rLL=200n'], {
    input: page,
    encoding: 'utf8',
  });
  assert.equal(stderr, '');
  for (const { words, options } of commands) {
    assert.match(stdout, new RegExp(`^ +${words.join(' ')}\\b`, 'm'));
    for (const { names } of options) for (const name of names) assert.ok(stdout.includes(name), name);
  }
  assert.match(stdout, /\$ reveille alarm set "Check the build" "in 10 minutes"/);
});
