/** The files of each service manager, compared with their format; and the copy of the program that a service runs. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { needs } from '../../../test/support/tools.ts';
import { pmsetTime, pmsetWords, wakeTaskText } from '../sleep/wake-elsewhere.ts';
import { currentVersion, forgetVersions, serviceLocation, switchTo } from './folders.ts';
import { copyProgram, lastingNode } from './lasting-copy.ts';
import { plistText } from './launchd.ts';
import { unitText } from './systemd.ts';
import { taskText } from './windows-task.ts';

const SPEC = {
  name: 'reveille',
  command: ['/opt/node 24/bin/node', '/home/o\'neil & "co"/100%/$HOME/reveille.mjs', 'up'],
  environment: { PATH: '/usr/bin:/a <b>', REVEILLE_HOME: '/home/x/.reveille' },
  logFile: '/home/x/.reveille/service.log',
};
const skip = needs('python3');

function inPython(code: string, input: string | Buffer): unknown {
  return JSON.parse(execFileSync('python3', ['-c', `import json,sys\n${code}`], { input, encoding: 'utf8' }));
}

test('a plist reader accepts the plist, with every argument unchanged', { skip }, () => {
  const read = inPython('import plistlib\nprint(json.dumps(plistlib.loads(sys.stdin.buffer.read())))', plistText(SPEC));
  assert.deepEqual(read, {
    Label: 'io.reveille.reveille',
    ProgramArguments: SPEC.command,
    EnvironmentVariables: SPEC.environment,
    RunAtLoad: true,
    KeepAlive: true,
    ThrottleInterval: 2,
    ExitTimeOut: 60,
    AbandonProcessGroup: true,
    ProcessType: 'Interactive',
    StandardOutPath: SPEC.logFile,
    StandardErrorPath: SPEC.logFile,
  });
});

test('the task is XML of the namespace of tasks, its settings in the order of the schema', { skip }, () => {
  const command = ['C:\\Program Files\\nodejs\\node.exe', 'C:\\Users\\o & o\\reveille.mjs', 'up'];
  const spec = {
    ...SPEC,
    command,
    environment: { REVEILLE_HOME: 'C:\\Users\\o & o\\.reveille' },
    logFile: 'C:\\l.log',
  };
  const code = `import xml.etree.ElementTree as E
t=E.fromstring(sys.stdin.buffer.read().decode('utf-16'))
n='{http://schemas.microsoft.com/windows/2004/02/mit/task}'
f=lambda p:t.find('/'.join(n+x for x in p.split('/')))
print(json.dumps({'root':t.tag,'version':t.get('version'),'parts':[c.tag.replace(n,'') for c in t],
 'context':f('Actions').get('Context'),'principal':f('Principals/Principal').get('id'),
 'command':f('Actions/Exec/Command').text,'arguments':f('Actions/Exec/Arguments').text,
 'limit':f('Settings/ExecutionTimeLimit').text,'again':[c.tag.replace(n,'') for c in f('Settings/RestartOnFailure')]}))`;
  const read = inPython(code, Buffer.from(`\ufeff${taskText(spec)}`, 'utf16le'));
  assert.deepEqual(read, {
    root: '{http://schemas.microsoft.com/windows/2004/02/mit/task}Task',
    version: '1.2',
    parts: ['RegistrationInfo', 'Triggers', 'Principals', 'Settings', 'Actions'],
    context: 'Author',
    principal: 'Author',
    command: 'cmd.exe',
    arguments:
      '/d /s /c "set "REVEILLE_HOME=C:\\Users\\o & o\\.reveille" && "C:\\Program Files\\nodejs\\node.exe" "C:\\Users\\o & o\\reveille.mjs" "up" >> "C:\\l.log" 2>&1"',
    limit: 'PT0S',
    again: ['Interval', 'Count'],
  });
  assert.throws(() => taskText({ ...spec, command: ['100%'] }), /a percent sign/);
});

test('the task that wakes a computer is valid, and the time that arms a wake on a Mac is in its zone', {
  skip,
}, () => {
  const at = Date.UTC(2026, 11, 1, 6, 59);
  const code = `import xml.etree.ElementTree as E
t=E.fromstring(sys.stdin.buffer.read().decode('utf-16'))
n='{http://schemas.microsoft.com/windows/2004/02/mit/task}'
f=lambda p:t.find('/'.join(n+x for x in p.split('/'))).text
print(json.dumps([[c.tag.replace(n,'') for c in t],f('Triggers/TimeTrigger/StartBoundary'),f('Triggers/TimeTrigger/EndBoundary'),
 f('Settings/WakeToRun'),f('Settings/DeleteExpiredTaskAfter')]))`;
  assert.deepEqual(inPython(code, Buffer.from(`\ufeff${wakeTaskText(at)}`, 'utf16le')), [
    ['RegistrationInfo', 'Triggers', 'Principals', 'Settings', 'Actions'],
    ...['2026-12-01T06:59:00Z', '2026-12-01T07:59:00Z', 'true', 'PT0S'],
  ]);
  const read = inPython(
    `import time\nprint(json.dumps(time.mktime(time.strptime(sys.stdin.read(), '%m/%d/%y %H:%M:%S'))))`,
    pmsetTime(at),
  );
  assert.equal(read, at / 1000);
  const words = ['-n', '/usr/bin/pmset', 'schedule', 'cancel', 'wake', pmsetTime(at), 'reveille'];
  assert.deepEqual(pmsetWords('reveille', at, true), words);
});

test('the unit quotes text that systemd would interpret, and does not stop the agents', () => {
  const unit = unitText(SPEC);
  assert.match(
    unit,
    /^ExecStart="\/opt\/node 24\/bin\/node" "\/home\/o'neil & \\"co\\"\/100%%\/\$\$HOME\/reveille\.mjs" "up"$/m,
  );
  assert.match(unit, /^Environment="PATH=\/usr\/bin:\/a <b>"$/m);
  assert.match(unit, /^KillMode=process$/m);
  assert.throws(() => unitText({ ...SPEC, command: ['a\nb'] }), /cannot be in a unit file/);
});

describe('the lasting copy', () => {
  /** A package as `npx` would have fetched it: a dependency beside it, and one below in another version. */
  function fetched(root: string): string {
    const put = (path: string, manifest: object, files: Record<string, string> = {}) => {
      mkdirSync(join(root, path), { recursive: true });
      writeFileSync(join(root, path, 'package.json'), JSON.stringify({ version: '1.0.0', ...manifest }));
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(root, path, name)), { recursive: true });
        writeFileSync(join(root, path, name), text);
      }
    };
    const own = 'node_modules/reveille';
    put(
      own,
      { name: 'reveille', version: '9.9.9', dependencies: { a: '1', b: '1' }, optionalDependencies: { none: '1' } },
      {
        'bin/reveille.mjs': `import a from 'a';\nimport b from 'b';\nconsole.log(a + b === 'a1b(a2)' ? '9.9.9' : a + b);`,
      },
    );
    put('node_modules/a', { name: 'a', type: 'module', exports: './i.js' }, { 'i.js': `export default 'a1';` });
    put(
      'node_modules/b',
      { name: 'b', type: 'module', exports: './i.js', dependencies: { a: '2' } },
      {
        'i.js': `import a from 'a';\nexport default 'b(' + a + ')';`,
      },
    );
    put(
      'node_modules/b/node_modules/a',
      { name: 'a', type: 'module', exports: './i.js' },
      { 'i.js': `export default 'a2';` },
    );
    put('node_modules/stranger', { name: 'stranger' });
    return join(root, own);
  }

  test('contains the package and its dependencies, each in its version, and nothing else', async (t) => {
    const folder = temporaryFolder(t);
    const versions = join(folder, 'versions');
    const copy = await copyProgram(versions, process.execPath, fetched(join(folder, '_npx', '0123')));
    assert.equal(copy, join(versions, '9.9.9'));
    assert.deepEqual(readdirSync(join(copy, 'node_modules')).sort(), ['a', 'b', 'reveille']);
    assert.ok(existsSync(join(copy, 'node_modules/b/node_modules/a')));
    assert.deepEqual(readdirSync(versions), ['9.9.9']);
    assert.equal(await copyProgram(versions, process.execPath, join(folder, '_npx/0123/node_modules/reveille')), copy);
  });

  test('a Node in a cache or a temporary folder runs no service', (t) => {
    assert.throws(() => lastingNode(join(temporaryFolder(t), 'node')), /is temporary; install Node 24/);
    assert.throws(() => lastingNode('/home/x/.npm/_npx/1/node_modules/node/bin/node'), /is temporary/);
  });

  test('the link changes in one step, and unused versions are removed', (t) => {
    const person = temporaryFolder(t);
    const place = serviceLocation({ HOME: person }, join(person, '.reveille'), 'linux');
    assert.equal(place.name, 'reveille');
    assert.match(serviceLocation({ HOME: person }, '/srv/other', 'linux').name, /^reveille-[0-9a-f]{8}$/);
    for (const version of ['1.0.0', '2.0.0', '3.0.0']) mkdirSync(join(place.versions, version), { recursive: true });
    switchTo(place, join(place.versions, '1.0.0'));
    switchTo(place, join(place.versions, '2.0.0'));
    assert.equal(currentVersion(place), join(place.versions, '2.0.0'));
    forgetVersions(place, [join(place.versions, '1.0.0')]);
    assert.deepEqual(readdirSync(place.versions).sort(), ['1.0.0', '2.0.0']);
  });
});

test('without a service manager of this user, one sentence says so, and nothing remains', {
  skip: process.platform !== 'linux' && 'systemd is of Linux',
}, async (t) => {
  const home = temporaryFolder(t);
  const bin = join(home, 'bin');
  mkdirSync(bin);
  const install = () => reveille(join(home, '.reveille'), ['service', 'install'], { env: { HOME: home, PATH: bin } });
  const refuses = async (says: RegExp) => {
    const { status, stderr } = await install();
    assert.equal(status, 1);
    assert.match(stderr, says);
    assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
    assert.deepEqual(readdirSync(home), ['bin']);
  };
  await refuses(
    /^error: no service manager: systemctl is not installed; let the program that starts services .* run "reveille up"/,
  );
  const script = '#!/bin/sh\necho "Failed to connect to bus: No medium found" >&2\nexit 1\n';
  writeFileSync(join(bin, 'systemctl'), script, { mode: 0o755 });
  await refuses(
    /^error: systemd has no session of this user \(Failed to connect .*\); log in as this user, .*enable-linger/,
  );
});

test('the file of a service is printed without a session of its manager', {
  skip: process.platform !== 'linux',
}, async (t) => {
  // No manager answers: there is no program on this PATH.
  const { status, stdout, stderr } = await reveille(temporaryFolder(t), ['service', 'install', '--print'], {
    env: { PATH: '/nowhere' },
  });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /\[Service\]/);
});
