/** The program under a Node that is too old: it continues with the Node of its checkout. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../support/temporary.ts';

const PROGRAM = join(import.meta.dirname, '..', '..', '..', 'bin', 'reveille.mjs');

/** The entry of the checkout: its arguments choose what it does. */
const ENTRY = `
const [, , command, value] = process.argv;
if (command === 'print') console.log(JSON.stringify({ argv: process.argv.slice(2), cwd: process.cwd() }));
if (command === 'environment') {
  const names = Object.keys(process.env).filter((name) => /REVEILLE_LAUNCHED|CHANNEL/.test(name));
  console.log(JSON.stringify(names));
}
if (command === 'exit') process.exitCode = Number(value);
if (command === 'read') process.stdin.pipe(process.stdout);
if (command === 'kill') process.kill(process.pid, value);
if (command === 'wait') {
  let count = 0;
  process.on(value, () => {
    count++;
    setTimeout(() => {
      console.log(count + ' ' + value);
      process.exit(7);
    }, 200);
  });
  setInterval(() => {}, 1000);
  console.log('waits');
}
`;

/** A checkout with a stub entry; its bundled Node is this one, without the options that imitate an older Node. */
function checkout(t: TestContext, bundled?: string) {
  const root = join(temporaryFolder(t), 'a checkout #1');
  mkdirSync(join(root, 'bin'), { recursive: true });
  copyFileSync(PROGRAM, join(root, 'bin', 'reveille.mjs'));
  writeFileSync(join(root, 'bin', 'lean-modules.ts'), '');
  writeFileSync(join(root, 'bin', 'reveille.ts'), ENTRY);
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  writeFileSync(join(root, 'older.cjs'), "Object.defineProperty(process.versions, 'node', { value: '20.20.2' });");
  if (bundled !== undefined) {
    const folder = join(root, 'node_modules', 'node', 'bin');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'node'), bundled, { mode: 0o755 });
  }
  return root;
}

const THIS_NODE = `#!/bin/sh\nunset NODE_OPTIONS\nexec '${process.execPath}' "$@"\n`;

function start(
  root: string,
  cliArgs: readonly string[],
  { program = join(root, 'bin', 'reveille.mjs'), cwd = '/', shell = false } = {},
) {
  const env = { ...process.env, NODE_OPTIONS: `--require "${join(root, 'older.cjs')}"` };
  const words = [process.execPath, program, ...cliArgs];
  // As "npm start", whose shell stays.
  if (shell)
    return spawn('/bin/sh', ['-c', '"$@"; exit', 'sh', ...words], {
      cwd,
      env: { ...env, npm_lifecycle_event: 'start' },
    });
  return spawn(process.execPath, words.slice(1), { cwd, env });
}

async function endOf(child: ChildProcess, input = '') {
  child.stdin!.end(input);
  const [stdout, stderr, [status, signal]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'exit'),
  ]);
  return { stdout, stderr, status, signal };
}

test('the bundled Node gets the same arguments, folder and streams, also through a link', async (t) => {
  const root = checkout(t, THIS_NODE);
  const argv = ['print', 'two words', '--flag', ''];
  const { stdout, stderr, status } = await endOf(start(root, argv));
  assert.deepEqual([JSON.parse(stdout), stderr, status], [{ argv, cwd: '/' }, '', 0]);

  const folder = temporaryFolder(t);
  const program = join(folder, 'reveille');
  symlinkSync(join(root, 'bin', 'reveille.mjs'), program);
  const linked = await endOf(start(root, argv, { program, cwd: folder }));
  assert.deepEqual([JSON.parse(linked.stdout).argv, linked.stderr, linked.status], [argv, '', 0]);

  assert.equal((await endOf(start(root, ['read']), 'a line\n')).stdout, 'a line\n');
});

test('the exit status and the signal of the bundled Node are passed on', async (t) => {
  const root = checkout(t, THIS_NODE);
  assert.equal((await endOf(start(root, ['exit', '3']))).status, 3);
  for (const name of ['SIGTERM', 'SIGKILL']) {
    const { status, signal } = await endOf(start(root, ['kill', name]));
    assert.deepEqual([status, signal], [null, name]);
  }
});

test('a signal reaches the bundled Node, once', async (t) => {
  const root = checkout(t, THIS_NODE);
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    const child = start(root, ['wait', name]);
    child.stdout.once('data', () => child.kill(name));
    const { stdout, status } = await endOf(child);
    assert.deepEqual([stdout, status], [`waits\n1 ${name}\n`, 7]);
  }
});

test('the end of the started process ends the bundled Node, also by SIGKILL, and the end of the shell of npm', async (t) => {
  const root = checkout(t, THIS_NODE);
  const killed = start(root, ['wait', 'SIGTERM']);
  killed.stdout.once('data', () => killed.kill('SIGKILL'));
  // Its streams end with the process that inherits them.
  assert.equal((await endOf(killed)).stdout, 'waits\n1 SIGTERM\n');

  const shell = start(root, ['wait', 'SIGTERM'], { shell: true });
  shell.stdout.once('data', () => shell.kill('SIGTERM'));
  assert.equal((await endOf(shell)).stdout, 'waits\n1 SIGTERM\n');
});

test('the bundled Node passes on neither the channel nor its name', async (t) => {
  const { stdout } = await endOf(start(checkout(t, THIS_NODE), ['environment']));
  assert.deepEqual(JSON.parse(stdout), []);
});

test('without a bundled Node that works, an older Node prints the required version', async (t) => {
  const message = /^reveille needs Node 24 or newer \(this is Node 20\.20\.2\); [^\n]+\n$/;
  for (const root of [checkout(t), checkout(t, '#!/no/such/program\n')]) {
    const { stdout, stderr, status } = await endOf(start(root, ['print']));
    assert.deepEqual([stdout, status], ['', 1]);
    assert.match(stderr, message);
    // A prompt continues without the time.
    assert.equal((await endOf(start(root, ['time', 'hook']))).status, 0);
  }
  // A bundled Node that is too old itself is not started again.
  const root = checkout(t);
  const folder = join(root, 'node_modules', 'node', 'bin');
  mkdirSync(folder, { recursive: true });
  symlinkSync(process.execPath, join(folder, 'node'));
  assert.match((await endOf(start(root, ['print']))).stderr, message);
});
