import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { hasBubblewrap, needsSandbox } from '../../../test/support/tools.ts';
import { asItIsNow, bubblewrapCommand, probeBubblewrap } from './bubblewrap.ts';
import { NO_PLACES, seatbeltProfile, viewOf, Walls } from './separation.ts';

function house(t: TestContext) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reveille-view-')));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const at = (...parts: string[]) => join(root, ...parts);
  for (const folder of ['home/neo/workspace', 'home/keys', 'ada', 'bob', 'package'])
    mkdirSync(at(folder), { recursive: true });
  writeFileSync(at('home', 'keys', 'agent.key'), 'key');
  writeFileSync(at('docker.sock'), '');
  symlinkSync(at('home'), at('link'));
  return at;
}

test('a program sees nothing of a hidden place but what it names of what may be granted', (t) => {
  const at = house(t);
  const places = {
    hidden: [at('link'), at('home', 'keys'), at('docker.sock'), at('not-there')],
    grantable: [
      { path: at('home', 'neo'), writable: true },
      { path: at('home', 'keys', 'agent.key'), writable: false },
    ],
    kept: [at('package')],
  };
  const view = (env: Record<string, string>, cwd = at('ada')) =>
    viewOf(places, { command: ['node'], cwd, env, others: () => [at('bob'), at('ada'), at()] });
  const hidden = [
    { path: at('home'), isFolder: true },
    { path: at('docker.sock'), isFolder: false },
    { path: at('bob'), isFolder: true },
  ];
  assert.deepEqual(view({}), { hidden, shown: [], kept: [at('package')] });
  const named = { D: at('link', 'neo'), W: at('home', 'neo', 'workspace'), K: at('home', 'keys', 'agent.key') };
  assert.deepEqual(view(named).shown, [
    { path: at('home', 'neo'), writable: true },
    { path: at('home', 'keys', 'agent.key'), writable: false },
  ]);
  assert.deepEqual(view({ W: `--root=${at('home', 'neo', 'workspace')}` }).shown, [
    { path: at('home', 'neo', 'workspace'), writable: true },
  ]);
  // What is not among the grants stays hidden, however it is named; so does a hidden place as a whole.
  assert.deepEqual(view({ X: at('home', 'secrets.json'), Y: at('home'), Z: at() }).shown, []);
  assert.deepEqual(view({}, at('package')).kept, [], 'who works on the program may change it');
});

test('bubblewrap hides before it shows, shuts what is hidden against writing, and keeps the network', () => {
  const view = {
    hidden: [
      { path: '/h', isFolder: true },
      { path: '/s', isFolder: false },
    ],
    shown: [
      { path: '/h/own', writable: true },
      { path: '/h/key', writable: false },
    ],
    kept: ['/p'],
  };
  const words = bubblewrapCommand('/usr/bin/bwrap', view, ['agent', '--bind', '/h', '/h']).join(' ');
  assert.match(words, / --ro-bind-try \/p \/p --tmpfs \/h --ro-bind-try \/dev\/null \/s /);
  assert.match(
    words,
    / --bind \/h\/own \/h\/own --ro-bind \/h\/key \/h\/key --remount-ro \/h -- agent --bind \/h \/h$/,
  );
  assert.match(words, /--unshare-pid --cap-drop ALL .*--dev \/dev .*--proc \/proc/);
  assert.doesNotMatch(words, /unshare-net|unshare-all/);
});

test('a socket that is hidden stays so when its daemon starts again, and one that comes later is not there', async (t) => {
  const means = await probeBubblewrap(process.env.PATH);
  if (!(await hasBubblewrap(t)) || means.kind !== 'bubblewrap') return;
  const at = house(t);
  const put = (name: string) => {
    writeFileSync(at('run', `${name}.new`), name);
    renameSync(at('run', `${name}.new`), at('run', name));
  };
  mkdirSync(at('run', 'folder'), { recursive: true });
  for (const name of ['docker.sock', 'other.sock']) put(name);
  symlinkSync('other.sock', at('run', 'link'));
  const script = 'echo ready; read word; echo *; cat link folder/later; echo; touch made 2>&- || echo shut';
  const words = ['--dev-bind', '/', '/', ...asItIsNow(at('run'), [at('run', 'docker.sock')]), '--chdir', at('run')];
  const program = spawn(means.path, [...words, 'sh', '-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const said: string[] = [];
  for await (const line of createInterface({ input: program.stdout })) {
    said.push(line);
    if (line !== 'ready') continue;
    for (const name of ['docker.sock', 'podman.sock', 'folder/later']) put(name);
    program.stdin.end('go on\n');
  }
  assert.deepEqual(said, ['ready', 'folder link other.sock', 'other.sockfolder/later', 'shut']);
});

test('a folder that is hidden from others can be written to by the program that it is shown to', () => {
  const view = {
    hidden: [
      { path: '/home/neo', isFolder: true },
      { path: '/home/executor', isFolder: true },
    ],
    shown: [{ path: '/home/neo', writable: true }],
    kept: [],
  };
  const command = bubblewrapCommand('bwrap', view, ['node']);
  const shut = command.filter((_, index) => command[index - 1] === '--remount-ro');
  assert.deepEqual(shut, ['/run', '/home/executor']);
});

test('the profile for macOS hides, then shows, and reads no quotes as its own', () => {
  const view = {
    hidden: [{ path: '/h "x"', isFolder: true }],
    shown: [{ path: '/h "x"/own', writable: true }],
    kept: ['/p'],
  };
  const lines = seatbeltProfile(view).split('\n');
  assert.deepEqual(lines.slice(0, 2), ['(version 1)', '(allow default)']);
  const denied = lines.indexOf('(deny file-read* file-write* (subpath "/h \\"x\\""))');
  assert.ok(denied > lines.indexOf('(deny file-write* (subpath "/p"))'));
  assert.ok(lines.indexOf('(allow file-read* file-write* (subpath "/h \\"x\\"/own"))') > denied);
  assert.ok(lines.includes('(deny mach-lookup (global-name "com.apple.SecurityServer"))'));
});

test('without bubblewrap a program is started as it is, or, where walls are required, not at all', async (t) => {
  if (process.platform !== 'linux') return t.skip('bubblewrap is for Linux');
  const program = { command: ['node'], cwd: undefined, env: {} };
  const off = new Walls('off', NO_PLACES, process.env.PATH);
  assert.deepEqual(await off.around(program), { command: ['node'], carried: false });
  const means = await probeBubblewrap(process.env.PATH);
  if (means.kind === 'none') {
    const required = new Walls('required', NO_PLACES, process.env.PATH);
    await assert.rejects(required.around(program), /REVEILLE_SEPARATION is required, and programs cannot be separated/);
    assert.deepEqual(await new Walls('auto', NO_PLACES, process.env.PATH).around(program), {
      command: ['node'],
      carried: false,
    });
  } else {
    const inside = await new Walls('required', NO_PLACES, process.env.PATH).around(program);
    assert.deepEqual([inside.carried, inside.command.at(-1)], [true, 'node']);
  }
});

test('a program cannot move a folder that leads to what is hidden, or exchange a link that does, and find it in its next life', async (t) => {
  const at = house(t);
  mkdirSync(at('person', '.config', 'secret'), { recursive: true });
  writeFileSync(at('person', '.config', 'secret', 'seed'), 'the seed');
  symlinkSync(at('person', '.config'), at('settings'));
  const hidden = [at('settings', 'secret')];
  const walls = new Walls('auto', { ...NO_PLACES, hidden }, process.env.PATH);
  const reason = needsSandbox(await walls.means());
  if (reason !== false) return t.skip(reason);
  const life = async (script: string) => {
    const { command } = await walls.around({ command: ['/bin/sh', '-c', script], cwd: at('person'), env: {} });
    return spawnSync(command[0]!, command.slice(1), { cwd: at('person'), encoding: 'utf8' });
  };
  const moved = await life(`mv .config away; mv ../person ../elsewhere; rm ../settings; mkdir -p ../settings/secret`);
  assert.match(moved.stderr, /\.config.*busy/);
  assert.match(moved.stderr, /person.*busy/);
  const seen = await life('cat away/secret/seed .config/secret/seed; ls .config/secret');
  assert.doesNotMatch(seen.stdout, /seed/);
  assert.equal(readFileSync(at('person', '.config', 'secret', 'seed'), 'utf8'), 'the seed');
});

test('a program cannot be sent to work in a hidden folder', async (t) => {
  const at = house(t);
  const walls = new Walls('auto', { ...NO_PLACES, hidden: [at('home')] }, process.env.PATH);
  const reason = needsSandbox(await walls.means());
  if (reason !== false) return t.skip(reason);
  const program = { command: ['node'], cwd: at('home', 'keys'), env: {} };
  await assert.rejects(walls.around(program), /keys is hidden from programs that Reveille starts/);
});
