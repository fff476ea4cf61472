import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { reveille, reveilleProcess } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { needs } from '../../../test/support/tools.ts';
import { PROGRAM } from '../home/package-root.ts';

const PROFILE = `privacy: {os_idle_consent: true}
chronometric:
  hyperfocus_break_minutes: 45
  end_of_day_local: "18:30"
  weekday_overrides: {fri: {end_of_day_local: "16:00"}, sat: {hyperfocus_break_minutes: 30}}
  protected_windows: [{label: "all \u0007day", from: "00:00", to: "24:00"}]
  timezone: Pacific/Chatham
`;

function home(t: TestContext) {
  const folder = temporaryFolder(t);
  const path = join(folder, '.config', 'reveille', 'profile.yaml');
  const write = (text: string, name = 'p.yaml') => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const run = (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    // The zone of the machine is that of a process.
    (env.TZ === undefined ? reveille : reveilleProcess)(folder, ['profile', ...words], { env });
  return { folder, path, write, run };
}

type Checked = {
  path: string | null;
  from: string | null;
  ok: boolean;
  unreadable: string | null;
  fields: { field: string; means: string; line: number | null }[];
  today: Record<string, unknown>;
  problems: { severity: string; line: number; column: number; sentence: string }[];
};

describe('reveille profile check', () => {
  test('says what was understood, from which line, and what counts now', async (t) => {
    const { write, run } = home(t);
    const file = write(PROFILE.replace('\u0007', '\\a'));
    const { status, stdout, stderr } = await run(['check', file]);
    assert.deepEqual([status, stderr], [0, '']);
    assert.match(stdout, /p\.yaml is valid\.\n/);
    assert.match(stdout, /^privacy\.os_idle_consent +line 1 +given$/m);
    assert.match(stdout, /^chronometric\.end_of_day_local +line 4 +18:30$/m);
    assert.match(
      stdout,
      /^chronometric\.zones +default +00:00 to 05:00 night_owl_caution\n +05:00 to 12:00 morning_peak$/m,
    );
    assert.match(stdout, /^chronometric\.weekday_overrides\.friday\.end_of_day_local +line 5 +16:00$/m);
    assert.match(stdout, /^chronometric\.weekday_overrides\.saturday\.hyperfocus_break_minutes +line 5 +30 min$/m);
    assert.doesNotMatch(stdout, /weekday_overrides\.monday/);
    assert.match(stdout, /^Now: \w+day, \d\d:\d\d \(Pacific\/Chatham\)$/m);
    assert.match(stdout, /protected +all \\u0007day/, 'no control character reaches the terminal');

    const machine = JSON.parse((await run(['check', '--json'], { REVEILLE_PROFILE: file })).stdout) as Checked;
    assert.deepEqual([machine.path, machine.from, machine.ok], [file, 'REVEILLE_PROFILE', true]);
    assert.equal(machine.fields.find(({ field }) => field === 'chronometric.hyperfocus_break_minutes')?.line, 3);
    assert.equal(machine.today.protected_window, 'all \u0007day');
  });

  test('looks where config.yaml says, as the server does', async (t) => {
    const { folder, write, run } = home(t);
    const file = write('chronometric: {hyperfocus_break_minutes: 45}\n');
    mkdirSync(join(folder, 'home'), { recursive: true });
    writeFileSync(join(folder, 'home', 'config.yaml'), `REVEILLE_PROFILE: ${file}\n`);
    const { stdout } = await run(['check', '--json'], { REVEILLE_HOME: join(folder, 'home') });
    const { path, from, ok } = JSON.parse(stdout) as Checked;
    assert.deepEqual([path, from, ok], [file, 'REVEILLE_PROFILE', true]);
  });

  test('says that there is no time zone where the machine names none, unless the profile does', async (t) => {
    const { write, run } = home(t);
    for (const TZ of ['', 'Nowhere/Land', 'CET-1CEST,M3.5.0,M10.5.0/3']) {
      const { status, stdout, stderr } = await run(['check', write('')], { TZ });
      assert.deepEqual([status, stderr.split(';')[0]], [1, "the computer's time zone cannot be read"], TZ);
      assert.match(stdout, /that of this computer, which cannot be read/);
    }
    const file = write('chronometric: {timezone: Asia/Kathmandu}\n');
    assert.equal((await run(['check', file], { TZ: 'Nowhere/Land' })).status, 0);
  });

  test('warns without failing, and fails with every place where something is wrong', async (t) => {
    const { write, run } = home(t);
    const warned = write('privacy:\n  os_idle_consent: yes\n', 'warned.yaml');
    const warning = await run(['check', warned]);
    assert.equal(warning.status, 0);
    assert.match(warning.stderr, /warned\.yaml:2:20: warning: privacy\.os_idle_consent is not the YAML boolean true/);
    assert.match(warning.stdout, /os_idle_consent +default +not given/);

    const wrong = write('chronometric:\n  end_of_day_local: 1830\n  timezone: Mars\n', 'wrong.yaml');
    const { status, stdout, stderr } = await run(['check', wrong]);
    assert.equal(status, 1);
    assert.match(stdout, /wrong\.yaml is valid in part/);
    assert.match(stderr, /wrong\.yaml:2:21: error: .*write "18:30"\n.*wrong\.yaml:3:13: error: .*IANA/);
    const machine = await run(['check', wrong, '--json']);
    const data = JSON.parse(machine.stdout) as Checked;
    assert.deepEqual([machine.status, machine.stderr, data.ok, data.problems.length], [1, '', false, 2]);
  });

  test('says why a profile cannot be read, and that there is none', async (t) => {
    const { write, run } = home(t);
    const broken = await run(['check', write('chronometric: {', 'broken.yaml')]);
    assert.equal(broken.status, 1);
    assert.match(broken.stdout, /^\S+broken\.yaml cannot be read\.\n$/);
    assert.match(broken.stderr, /broken\.yaml:1:\d+: error: /);
    const named = await run(['check'], { NEURODOCK_PROFILE_PATH: '~/nowhere.yaml' });
    assert.equal(named.status, 1);
    assert.match(named.stderr, /^NEURODOCK_PROFILE_PATH names \/\S+\/nowhere\.yaml, which does not exist/);
    const none = await run(['check']);
    assert.deepEqual([none.status, none.stderr], [0, '']);
    assert.match(none.stdout, /^There is no profile: defaults apply\./);
  });
});

/** Runs a command on a terminal of its own; `script` lends one. */
async function onTerminal(folder: string, words: string, answers: string) {
  const child = spawn('script', ['-qec', `'${process.execPath}' '${PROGRAM}' ${words}`, '/dev/null'], {
    env: { PATH: process.env.PATH ?? '', HOME: folder, REVEILLE_HOME: folder, TERM: 'dumb', TZ: 'UTC' },
    stdio: 'pipe',
  });
  let screen = '';
  const lines = answers.split('\n');
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
    // An answer for each question that has appeared.
    while ((screen.match(/\] /g) ?? []).length > answers.split('\n').length - lines.length && lines.length > 0)
      child.stdin.write(`${lines.shift()}${lines.length === 0 && answers.endsWith('\u0004') ? '' : '\r'}`);
  });
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  return { status, screen };
}

describe('reveille profile init', () => {
  test('asks on a terminal until the answers can be used, and writes them for their owner alone', {
    skip: needs('script'),
  }, async (t) => {
    const { folder, path, run } = home(t);
    const { status, screen } = await onTerminal(folder, 'profile init', 'late\n6 pm\n\nyes');
    assert.equal(status, 0, screen);
    assert.match(screen, /Write a time such as 18:30\./);
    assert.match(screen, /Wrote \S+profile\.yaml/);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const { fields } = JSON.parse((await run(['check', '--json'])).stdout) as Checked;
    const means = (name: string) => fields.find(({ field }) => field === name)?.means;
    assert.equal(means('chronometric.end_of_day_local'), '18:00');
    assert.equal(means('chronometric.hyperfocus_break_minutes'), "the caller's threshold");
    assert.equal(means('privacy.os_idle_consent'), 'given');
  });

  test('writes nothing when the questions are left', { skip: needs('script') }, async (t) => {
    const { folder, path } = home(t);
    const { status, screen } = await onTerminal(folder, 'profile init', '18:30\n\u0004');
    assert.equal(status, 1, screen);
    assert.match(screen, /the input ended; nothing was written/);
    assert.equal(existsSync(path), false);
  });

  test('asks nobody where nobody sits, and with --yes writes one that declares nothing', async (t) => {
    const { folder, path, run } = home(t);
    const refused = await run(['init']);
    assert.equal(refused.status, 2);
    assert.match(refused.stderr, /no terminal to ask at; "reveille profile init --yes"/);
    mkdirSync(join(folder, '.neurodock'));
    writeFileSync(join(folder, '.neurodock', 'profile.yaml'), '');
    const { status, stdout, stderr } = await run(['init', '--yes']);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^Wrote \S+profile\.yaml\n/);
    assert.match(stderr, /\.neurodock\/profile\.yaml is no longer read/);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal((await run(['check'])).status, 0);
  });

  test('never writes over a profile', async (t) => {
    const { write, run } = home(t);
    const file = write('# mine\n');
    const { status, stderr } = await run(['init', '--yes'], { REVEILLE_PROFILE: file });
    assert.equal(status, 1);
    assert.match(stderr, /p\.yaml exists and is not overwritten/);
    assert.equal(readFileSync(file, 'utf8'), '# mine\n');
  });
});
