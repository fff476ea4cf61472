import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { type RunOptions, reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { openState } from '../../chronometric/state/open-state.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { dayViewSchema, promptContextSchema, weekViewSchema } from '../../wire/chronometric-view.ts';

const DAY_MS = 86_400_000;
const CANARY = 'canary: leave by the back door';

/** A home, and its state as a running server would have it open. */
function home(t: TestContext) {
  const folder = temporaryFolder(t);
  const dataDir = join(folder, 'chronometric');
  const state = openState({ dataDir, clock: systemClock, dayEnd: (instant) => instant + DAY_MS });
  t.after(() => state.close());
  return { folder, dataDir, state, now: () => systemClock.now() };
}

const file = (folder: string) => join(folder, 'chronometric', 'chronometric.db');
const hook = (folder: string, words: readonly string[] = [], options: RunOptions = {}) =>
  reveille(folder, ['time', 'hook', ...words], options);

const LINE = /^Time: [A-Z][a-z]+day \d{4}-\d\d-\d\d \d\d:\d\d [+-]\d\d:\d\d \(Europe\/Berlin\)\..*\n$/;

test('time shows the recorded data, as a screen and as JSON by its schema', async (t) => {
  const { folder, state, now } = home(t);
  state.start(CANARY, now(), 'auto_close');
  state.beat(now());
  const screen = await reveille(folder, ['time']);
  assert.deepEqual([screen.status, screen.stderr], [0, '']);
  assert.match(
    screen.stdout,
    /\d\d:\d\d–now +under 1 min +canary: leave by the back door\n +open\n +break due in (1 h|59 min) of active time/,
  );
  const day = JSON.parse((await reveille(folder, ['time', '--json'])).stdout);
  assert.deepEqual(dayViewSchema.parse(day), day);
  assert.equal(day.sessions[0].intent, CANARY);
  const week = JSON.parse((await reveille(folder, ['time', '--week', '--json'])).stdout);
  assert.deepEqual(weekViewSchema.parse(week), week);
  assert.deepEqual(week.days.at(-1).sessions[0].session_id, day.sessions[0].session_id);
  assert.equal(state.open()?.intent, CANARY, 'a query ends nothing');
});

test('time prints a remedy when nothing is recorded, and makes nothing', async (t) => {
  const folder = temporaryFolder(t);
  const { status, stdout } = await reveille(folder, ['time']);
  assert.equal(status, 0);
  assert.match(stdout, /^Nothing is recorded for today yet\.\n\n.*claude mcp add --scope user chronometric/s);
  assert.deepEqual(readdirSync(folder), []);
  const empty = JSON.parse((await reveille(folder, ['time', '--date', '2026-06-15', '--json'])).stdout);
  assert.deepEqual([empty.date, empty.sessions], ['2026-06-15', []]);
});

test('time refuses an impossible date, and reports an unreadable profile', async (t) => {
  const folder = temporaryFolder(t);
  for (const date of ['yesterday', '2026-02-30', '2026-6-1', '']) {
    const { status, stderr } = await reveille(folder, ['time', '--date', date]);
    assert.equal(status, 2, date);
    assert.match(stderr, /--date .*2026|--date 2026-02-30 is no day/);
  }
  const profile = join(folder, 'profile.yaml');
  writeFileSync(profile, 'chronometric: [\n');
  const { status, stderr } = await reveille(folder, ['time'], { env: { REVEILLE_PROFILE: profile } });
  assert.equal(status, 0);
  assert.match(stderr, /^Shown without your profile: /);
});

test('the hook prints the time since the last prompt, the session, and when a break is due', async (t) => {
  const { folder, state, now } = home(t);
  const first = await hook(folder);
  assert.deepEqual([first.status, first.stderr], [0, '']);
  assert.match(first.stdout, LINE);
  assert.match(first.stdout, /First prompt seen here\. No session open\.\n$/);
  state.start(CANARY, now(), 'auto_close');
  const second = await hook(folder);
  assert.match(
    second.stdout,
    /Last prompt (just now|\d+ s ago)\. Session open since .*Break due in (1 h|59 min) of active time\.\n$/,
  );
  assert.ok(!second.stdout.includes('canary'), 'an intention is printed only on request');
  const output = JSON.parse((await hook(folder, ['--json', '--intent'])).stdout);
  assert.deepEqual(promptContextSchema.parse(output), output);
  assert.equal(output.session.intent, CANARY);
});

test('the gap is that to the previous prompt, and the tools get it too', async (t) => {
  const { folder, state, now } = home(t);
  state.prompted(now() - 3 * 3_600_000);
  const gap = async () => JSON.parse((await hook(folder, ['--json'])).stdout).since_last_prompt;
  assert.match(await gap(), /^PT3H/);
  assert.match(await gap(), /^PT\d+S$/);
  assert.ok(now() - state.lastPromptAt()! < 60_000);
});

test('a clock that was put back gives a gap of zero', async (t) => {
  const { folder, state, now } = home(t);
  state.prompted(now() + 3_600_000);
  assert.match((await hook(folder)).stdout, /Last prompt just now\./);
});

test('the hook prints the format of each program', async (t) => {
  const folder = temporaryFolder(t);
  const { stdout } = await hook(folder, ['--format', 'gemini']);
  const { hookSpecificOutput: output } = JSON.parse(stdout);
  assert.equal(output.hookEventName, 'BeforeAgent');
  assert.match(`${output.additionalContext}\n`, LINE);
});

test('with any flags, the hook succeeds and prints only output that the program understands', async (t) => {
  const folder = temporaryFolder(t);
  const bad: [words: string[], silent: boolean][] = [
    [['--format', 'xml'], true],
    [['--format'], true],
    [['--bogus', '--format=text'], false],
    [['more', 'words'], false],
    [['--json=1'], false],
  ];
  for (const [words, silent] of bad) {
    const { status, stdout, stderr } = await hook(folder, words);
    assert.equal(status, 0, words.join(' '));
    if (silent) assert.deepEqual([stdout, stderr === ''], ['', false], words.join(' '));
    else assert.match(stdout, LINE);
  }
});

test('the hook succeeds with every dependency broken, and reports it on stderr', async (t) => {
  const broken = async (spoil: (folder: string) => Record<string, string> | undefined, expected: RegExp) => {
    const folder = temporaryFolder(t);
    const env = spoil(folder) ?? {};
    const { status, stdout, stderr } = await hook(folder, [], { env });
    assert.equal(status, 0, stderr);
    assert.match(stdout, LINE);
    assert.match(stderr, expected);
  };
  await broken((folder) => {
    mkdirSync(join(folder, 'chronometric'));
    writeFileSync(file(folder), 'this is no database, and long enough to tell'.repeat(100));
    return undefined;
  }, /^reveille time hook: .*chronometric\.db is damaged/);
  await broken((folder) => {
    writeFileSync(join(folder, 'file'), '');
    return { CHRONOMETRIC_DATA_DIR: join(folder, 'file', 'below') };
  }, /chronometric\.db cannot be opened/);
  await broken((folder) => ({ REVEILLE_PROFILE: join(folder, 'gone.yaml') }), /gone\.yaml, which does not exist/);
  await broken((folder) => {
    writeFileSync(join(folder, 'profile.yaml'), 'a: [\n');
    return { REVEILLE_PROFILE: join(folder, 'profile.yaml') };
  }, /profile\.yaml/);
});

test('the hook continues without damaged settings', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'config.yaml'), 'a: [\n');
  writeFileSync(join(folder, 'secrets.json'), '{');
  const { status, stdout } = await hook(folder);
  assert.equal(status, 0);
  assert.match(stdout, LINE);
});

test('while another process has the state locked, the hook works without it', async (t) => {
  const { folder, state, now } = home(t);
  state.beat(now());
  const other = new DatabaseSync(file(folder));
  t.after(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  const { status, stdout, stderr } = await hook(folder);
  assert.equal(status, 0);
  assert.match(stdout, LINE);
  assert.match(stderr, /^reveille time hook: /);
});

test('a prompt larger than any pipe is discarded unread, and leaves no trace', async (t) => {
  const folder = temporaryFolder(t);
  const { status, stdout, stderr } = await hook(folder, [], { input: CANARY.repeat(100_000) });
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, LINE);
  for (const name of readdirSync(join(folder, 'chronometric')))
    assert.ok(!readFileSync(join(folder, 'chronometric', name), 'latin1').includes('canary'), name);
});

test('simultaneous hooks and a server lose nothing', async (t) => {
  const { folder, state, now } = home(t);
  state.start(CANARY, now(), 'auto_close');
  const hooks = Array.from({ length: 4 }, () => hook(folder, ['--json']));
  let under = true;
  const all = Promise.all(hooks).finally(() => {
    under = false;
  });
  while (under) {
    state.prompted(now());
    state.beat(now());
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const { status, stdout, stderr } of await all) {
    assert.deepEqual([status, stderr], [0, '']);
    const output = JSON.parse(stdout);
    assert.ok(output.session !== null && output.problems.length === 0);
  }
  assert.equal(state.open()?.intent, CANARY);
  assert.ok(existsSync(file(folder)));
});
