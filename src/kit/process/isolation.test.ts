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
import { bubblewrapCommand, currentEntryMounts, probeBubblewrap } from './bubblewrap.ts';
import { NO_SANDBOX_PATHS, Sandbox, type SandboxedProgram, viewOf } from './isolation.ts';
import { seatbeltProfile } from './seatbelt.ts';
import { mountsOf, type View } from './view.ts';

const EVERYTHING: View = { base: 'everything', hidden: [], shown: [], kept: [], tools: [] };

function folders(t: TestContext) {
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

test('a program sees of hidden folders only the grantable paths that it names', (t) => {
  const at = folders(t);
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
  const folder = { path: at('ada'), writable: true };
  const bare = view({});
  assert.deepEqual([bare.hidden, bare.shown, bare.kept], [hidden, [folder], [at('package')]]);
  const named = { D: at('link', 'neo'), W: at('home', 'neo', 'workspace'), K: at('home', 'keys', 'agent.key') };
  const workspace = { path: at('home', 'neo', 'workspace'), writable: true };
  assert.deepEqual(view(named).shown, [
    { path: at('home', 'neo'), writable: true },
    workspace,
    folder,
    { path: at('home', 'keys', 'agent.key'), writable: false },
  ]);
  assert.deepEqual(view({ W: `--root=${at('home', 'neo', 'workspace')}` }).shown, [workspace, folder]);
  // Paths without a grant stay hidden in any spelling; so does a hidden folder as a whole.
  assert.deepEqual(view({ X: at('home', 'secrets.json'), Y: at('home'), Z: at() }).shown, [folder]);
  assert.deepEqual(view({}, at('package')).kept, [], 'the working folder is writable');
});

test('a program may write to its folder and to declared paths, but not to start files, homes or system folders', (t) => {
  const at = folders(t);
  for (const folder of ['person/.ssh', 'person/.claude/hooks', 'person/project', 'state'])
    mkdirSync(at(folder), { recursive: true });
  const written = (cwd: string, more: Partial<SandboxedProgram> = {}, env: Record<string, string> = {}) =>
    viewOf(
      {
        ...NO_SANDBOX_PATHS,
        home: at('person'),
        hidden: [at('home')],
        never: [at('person', '.ssh'), at('person', '.bashrc')],
      },
      { command: ['sh', '-c', `cat ${at('bob')}`], cwd, env, ...more },
    ).shown.flatMap(({ path, writable }) => (writable ? [path] : []));
  const [person, project] = [at('person'), at('person', 'project')];
  assert.deepEqual(written(project), [project]);
  const declared = { writable: [at('person', '.claude/'), at('person', '.claude.json'), at('made/')] };
  assert.deepEqual(written(project, declared), [project, at('person', '.claude'), at('made')]);
  assert.deepEqual(written(project, {}, { X_DATA_DIR: at('state'), SOME: at('ada') }), [project, at('state')]);
  for (const cwd of [person, at('person', '.ssh'), join(at(), '..'), '/', '/etc', '/usr/bin', '/tmp', '/proc/sys'])
    assert.deepEqual(written(cwd), [], cwd);
  const hostile = [
    '/etc/',
    '/',
    `${person}/`,
    `${at('person', '.ssh')}/`,
    `${at('home')}/`,
    '/dev/',
    '/root/',
    '/run/',
  ];
  assert.deepEqual(written(project, { writable: hostile }), [project]);
});

test('a link in a writable folder makes no other folder writable', (t) => {
  const at = folders(t);
  for (const folder of ['project/state', 'victim', 'home-of-data']) mkdirSync(at(folder), { recursive: true });
  const written = (writable: string[], env: Record<string, string> = {}) =>
    viewOf(
      { ...NO_SANDBOX_PATHS, home: at('person') },
      { command: ['x'], cwd: at('project'), env, writable },
    ).shown.flatMap(({ path, writable: may }) => (may ? [path] : []));
  const [project, state] = [at('project'), at('project', 'state')];
  assert.deepEqual(written([`${state}/`]), [project, state]);
  // Another program in the same folder could do this.
  rmSync(state, { recursive: true });
  symlinkSync(at('victim'), state);
  symlinkSync(at('victim'), at('home-of-data', 'sub'));
  assert.deepEqual(written([`${state}/`, `${state}/deeper/`]), [project]);
  assert.deepEqual(written([], { X_DATA_DIR: state }), [project]);
  assert.deepEqual(written([at('home-of-data/'), at('home-of-data', 'sub/')]), [project, at('home-of-data')]);
  // A link that the operator names is followed if no writable folder contains it.
  symlinkSync(at('victim'), at('named'));
  assert.deepEqual(written([at('named/')]), [project, at('victim')]);
});

test('a program may read files that the operator names in its arguments, but not files that a model names', (t) => {
  const at = folders(t);
  const key = at('home', 'keys', 'agent.key');
  const places = { ...NO_SANDBOX_PATHS, hidden: [at('home')], grantable: [{ path: key, writable: false }] };
  const program = { command: ['agent', '-p', key], cwd: at('ada'), env: {} };
  assert.ok(viewOf(places, program).shown.some(({ path }) => path === key));
  const { shown, tools } = viewOf(places, { ...program, words: ['agent'] });
  assert.ok(![...shown.map(({ path }) => path), ...tools].includes(key));
});

test('a folder between a writable mount and one below it is a mount, and the longest path decides', () => {
  const view: View = {
    ...EVERYTHING,
    hidden: [
      { path: '/srv/w/a/secret', isFolder: true },
      { path: '/home/h', isFolder: true },
    ],
    shown: [
      { path: '/srv/w', writable: true },
      { path: '/srv/w/b/state', writable: true },
    ],
    kept: ['/srv/w/c/rules.json', '/home/h/policy', '/etc/x'],
    tools: ['/tmp/node', '/home/h/tool', '/opt/t'],
  };
  const mounts = mountsOf(view).map(({ path, as }) => `${as} ${path}`);
  assert.deepEqual(mounts.sort(), [
    ...['hidden /home/h', 'hidden /srv/w/a/secret', 'hidden /tmp', 'hidden /var/tmp'],
    ...['read /srv/w/c/rules.json', 'read /tmp/node'],
    ...['write /srv/w', 'write /srv/w/a', 'write /srv/w/b', 'write /srv/w/b/state', 'write /srv/w/c'],
  ]);
  const system = mountsOf({ ...view, base: 'system' }).map(({ path, as }) => `${as} ${path}`);
  assert.deepEqual(
    system.filter((mount) => !mounts.includes(mount)),
    ['read /opt/t'],
  );
});

test('bubblewrap hides folders before it shows others, makes hidden ones read-only, and keeps the network', () => {
  const view = {
    ...EVERYTHING,
    hidden: [
      { path: '/h', isFolder: true },
      { path: '/s', isFolder: false },
    ],
    shown: [
      { path: '/h/own', writable: true },
      { path: '/h/key', writable: false },
    ],
    kept: ['/w/p'],
  };
  view.shown.push({ path: '/w', writable: true });
  const args = bubblewrapCommand('/usr/bin/bwrap', view, ['agent', '--bind', '/h', '/h']).join(' ');
  assert.match(args, / --tmpfs \/h --ro-bind-try \/dev\/null \/s --bind-try \/w \/w /);
  assert.match(
    args,
    / --ro-bind-try \/w\/p \/w\/p --bind-try \/h\/own \/h\/own --ro-bind-try \/h\/key \/h\/key --remount-ro \/h -- agent --bind \/h \/h$/,
  );
  assert.match(args, /--unshare-pid .*--cap-drop ALL .*--ro-bind \/ \/ --dev \/dev .*--proc \/proc/);
  assert.doesNotMatch(args, /unshare-net|unshare-all|--dev-bind \/ /);
});

test('a hidden socket stays hidden when its daemon restarts, and a later socket is not visible', async (t) => {
  const means = await probeBubblewrap(process.env.PATH);
  if (!(await hasBubblewrap(t)) || means.kind !== 'bubblewrap') return;
  const at = folders(t);
  const put = (name: string) => {
    writeFileSync(at('run', `${name}.new`), name);
    renameSync(at('run', `${name}.new`), at('run', name));
  };
  mkdirSync(at('run', 'folder'), { recursive: true });
  for (const name of ['docker.sock', 'other.sock']) put(name);
  symlinkSync('other.sock', at('run', 'link'));
  const script = 'echo ready; read line; echo *; cat link folder/later; echo; touch made 2>&- || echo read-only';
  const args = [
    '--dev-bind',
    '/',
    '/',
    ...currentEntryMounts(at('run'), [at('run', 'docker.sock')]),
    '--chdir',
    at('run'),
  ];
  const program = spawn(means.path, [...args, 'sh', '-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const output: string[] = [];
  for await (const line of createInterface({ input: program.stdout })) {
    output.push(line);
    if (line !== 'ready') continue;
    for (const name of ['docker.sock', 'podman.sock', 'folder/later']) put(name);
    program.stdin.end('go on\n');
  }
  assert.deepEqual(output, ['ready', 'folder link other.sock', 'other.sockfolder/later', 'read-only']);
});

test('a folder hidden from other programs is writable for the program that it is shown to', () => {
  const view: View = {
    ...EVERYTHING,
    hidden: [
      { path: '/home/neo', isFolder: true },
      { path: '/home/executor', isFolder: true },
    ],
    shown: [{ path: '/home/neo', writable: true }],
    kept: [],
  };
  const command = bubblewrapCommand('bwrap', view, ['node']);
  const readOnly = command.filter((_, index) => command[index - 1] === '--remount-ro');
  assert.deepEqual(readOnly, ['/dev', '/run', '/home/executor']);
});

test('the macOS profile allows writes only to named paths, and escapes quotes', () => {
  const view: View = {
    ...EVERYTHING,
    hidden: [{ path: '/h "x"', isFolder: true }],
    shown: [
      { path: '/h "x"/own', writable: true },
      { path: '/w', writable: true },
    ],
    kept: ['/w/p', '/p'],
  };
  const lines = seatbeltProfile(view, '/temporary').split('\n');
  const at = (line: string) => {
    assert.ok(lines.includes(line), `${line} is missing`);
    return lines.indexOf(line);
  };
  assert.deepEqual(lines.slice(0, 2), ['(version 1)', '(allow default)']);
  const closed = at('(deny file-write*)');
  const hidden = at('(deny file-read* file-write* (subpath "/h \\"x\\""))');
  assert.ok(closed < at('(allow file-write* (subpath "/temporary"))') && closed < hidden);
  assert.ok(hidden < at('(allow file-read* file-write* (subpath "/h \\"x\\"/own"))'));
  assert.ok(at('(allow file-read* file-write* (subpath "/w"))') < at('(deny file-write* (subpath "/w/p"))'));
  at('(deny file-write-unlink (literal "/w"))');
  at('(deny mach-lookup (global-name "com.apple.SecurityServer"))');
  const allowed = lines.filter((line) => /^\(allow .*file-write\*/.test(line));
  assert.deepEqual(allowed, [
    '(allow file-write* (subpath "/temporary"))',
    '(allow file-read* file-write* (subpath "/w"))',
    '(allow file-read* file-write* (subpath "/h \\"x\\"/own"))',
  ]);
});

test('without bubblewrap a program starts without a sandbox, or not at all if one is required', async (t) => {
  if (process.platform !== 'linux') return t.skip('bubblewrap is for Linux');
  const program = { command: ['node'], cwd: undefined, env: {} };
  const off = new Sandbox('off', NO_SANDBOX_PATHS, process.env.PATH);
  assert.deepEqual(await off.wrap(program), { command: ['node'], carried: false });
  const means = await probeBubblewrap(process.env.PATH);
  if (means.kind === 'none') {
    const required = new Sandbox('required', NO_SANDBOX_PATHS, process.env.PATH);
    await assert.rejects(required.wrap(program), /REVEILLE_SEPARATION is required, and programs cannot be isolated/);
    assert.deepEqual(await new Sandbox('auto', NO_SANDBOX_PATHS, process.env.PATH).wrap(program), {
      command: ['node'],
      carried: false,
    });
  } else {
    const inside = await new Sandbox('required', NO_SANDBOX_PATHS, process.env.PATH).wrap(program);
    assert.deepEqual([inside.carried, inside.command.at(-1)], [true, 'node']);
  }
});

test('a program cannot reach hidden files in its next run by moving a parent folder or replacing a link', async (t) => {
  const at = folders(t);
  mkdirSync(at('person', '.config', 'secret'), { recursive: true });
  writeFileSync(at('person', '.config', 'secret', 'seed'), 'the seed');
  symlinkSync(at('person', '.config'), at('settings'));
  const hidden = [at('settings', 'secret')];
  const sandbox = new Sandbox('auto', { ...NO_SANDBOX_PATHS, hidden }, process.env.PATH);
  const reason = needsSandbox(await sandbox.mechanism());
  if (reason !== false) return t.skip(reason);
  const runOnce = async (script: string) => {
    const { command } = await sandbox.wrap({ command: ['/bin/sh', '-c', script], cwd: at('person'), env: {} });
    return spawnSync(command[0]!, command.slice(1), { cwd: at('person'), encoding: 'utf8' });
  };
  const moved = await runOnce(
    `mv .config away; mv ../person ../elsewhere; rm ../settings; mkdir -p ../settings/secret`,
  );
  assert.match(moved.stderr, /\.config.*busy/);
  assert.match(moved.stderr, /person.*busy/);
  const seen = await runOnce('cat away/secret/seed .config/secret/seed; ls .config/secret');
  assert.doesNotMatch(seen.stdout, /seed/);
  assert.equal(readFileSync(at('person', '.config', 'secret', 'seed'), 'utf8'), 'the seed');
});

test('a program cannot start in a hidden folder', async (t) => {
  const at = folders(t);
  const sandbox = new Sandbox('auto', { ...NO_SANDBOX_PATHS, hidden: [at('home')] }, process.env.PATH);
  const reason = needsSandbox(await sandbox.mechanism());
  if (reason !== false) return t.skip(reason);
  const program = { command: ['node'], cwd: at('home', 'keys'), env: {} };
  await assert.rejects(sandbox.wrap(program), /keys is hidden from programs that Reveille starts/);
});

test('a program whose files are hidden does not start, and the error names them', async (t) => {
  const at = folders(t);
  const sandbox = new Sandbox('auto', { ...NO_SANDBOX_PATHS, hidden: [at('home')] }, process.env.PATH);
  const reason = needsSandbox(await sandbox.mechanism());
  if (reason !== false) return t.skip(reason);
  const file = at('home', 'server.mjs');
  mkdirSync(at('home'), { recursive: true });
  writeFileSync(file, '');
  const program = { command: [process.execPath, file], words: [], cwd: at('person'), env: {} };
  await assert.rejects(sandbox.wrap(program), { message: new RegExp(`^the sandbox hides ${file} from the program`) });
});
