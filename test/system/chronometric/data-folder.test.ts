/**
 * The five tools where the data folder cannot be written, the disk is full, or somebody else has the file locked: what
 * each answers is the table in docs/reference/chronometric.md, which this holds against the server.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { openState } from '../../../src/chronometric/state/open-state.ts';
import { createToolCalls } from '../../../src/chronometric/tool-calls.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { ManualClock } from '../../../src/kit/clock/testing/manual-clock.ts';
import { CHRONOMETRIC_TOOLS, type ChronometricTool } from '../../../src/wire/chronometric-vocabulary.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { noSmallDisk, SmallDisk } from '../../support/cluster/small-disk.ts';
import { needs } from '../../support/tools.ts';
import { type Person, personOf, type ServerChanges, startServer } from './server-process.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const INTENT = ' write the report ';
const isRoot = process.getuid?.() === 0;
const noDisk = noSmallDisk();
const canMount = noDisk === false;
/** Runs a command as an account that heeds the modes of files, for a test that is root. */
const AS_NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];

/** The reason why no folder can be made read-only for a server here, or `false`. */
function noReadOnlyFolder(): string | false {
  if (!isRoot || canMount) return false;
  const missing = needs('setpriv');
  if (missing !== false) return missing;
  // A checkout below the home of root, say, is closed to others.
  const [program, ...words] = [...AS_NOBODY, process.execPath, '--check', import.meta.filename];
  return spawnSync(program!, words).status !== 0 && (noDisk || 'the account nobody cannot read this checkout');
}

const TROUBLES = ['read-only folder', 'full disk', 'locked file'] as const;
type Trouble = (typeof TROUBLES)[number];

/** Two hours into a session, a prompt a minute ago, somebody there until now. */
function record(dataDir: string) {
  const now = systemClock.now();
  const clock = new ManualClock(now - 2 * HOUR);
  const state = openState({ dataDir, clock, dayEnd: (instant) => instant + DAY });
  state.start(INTENT, now - 2 * HOUR, 'error');
  state.beat(now, now - 2 * HOUR);
  state.prompted(now - 60_000);
  return state;
}

type Bench = { person: Person; changes?: ServerChanges; mend?: () => void };

/**
 * A file system that is mounted so where that can be done; folders and files without the right to write where not, for
 * an account that heeds them.
 */
function readOnlyFolder(t: TestContext): Bench {
  // Before the folder is removed, which comes next.
  let restore = () => {};
  t.after(() => restore());
  const person = personOf(t);
  if (isRoot && canMount) {
    const disk = new SmallDisk(4);
    t.after(() => disk.remove());
    record(disk.folder).close();
    execFileSync('mount', ['-o', 'remount,ro', disk.folder]);
    return { person: { ...person, dataDir: disk.folder } };
  }
  record(person.dataDir).close();
  for (const name of readdirSync(person.dataDir)) chmodSync(join(person.dataDir, name), 0o444);
  chmodSync(person.dataDir, 0o555);
  chmodSync(person.home, 0o755);
  restore = () => chmodSync(person.dataDir, 0o755);
  return { person, ...(isRoot && { changes: { under: AS_NOBODY } }) };
}

/** A small disk that is filled to the last page; where none can be mounted, a limit on the size of every file. */
function fullDisk(t: TestContext): Bench {
  const person = personOf(t);
  if (canMount) {
    const disk = new SmallDisk(4);
    t.after(() => disk.remove());
    record(disk.folder).close();
    disk.fill();
    return { person: { ...person, dataDir: disk.folder }, mend: () => disk.free() };
  }
  // This process keeps the file open, with a write-ahead log that is longer than the limit already.
  const state = record(person.dataDir);
  t.after(() => state.close());
  for (let prompt = 0; prompt < 40; prompt++) state.prompted(systemClock.now() - 60_000);
  return { person, changes: { under: ['/bin/sh', '-c', 'ulimit -f 64; exec "$0" "$@"'] } };
}

/** Another process, this one, holds the file so that nobody else may even read it. */
function lockedFile(t: TestContext): Bench {
  const person = personOf(t);
  record(person.dataDir).close();
  const holder = new DatabaseSync(join(person.dataDir, 'chronometric.db'));
  const close = () => {
    if (holder.isOpen) holder.close();
  };
  t.after(close);
  holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM last_call; COMMIT');
  return { person, mend: close };
}

const BENCHES: Readonly<Record<Trouble, (t: TestContext) => Bench>> = {
  'read-only folder': readOnlyFolder,
  'full disk': fullDisk,
  'locked file': lockedFile,
};

const ARGUMENTS: Partial<Record<ChronometricTool, object>> = {
  mark_session_start: { intent: 'something else' },
  request_break_if_needed: { threshold_minutes: 45 },
};

type Called = Awaited<ReturnType<Awaited<ReturnType<typeof startServer>>['call']>>;

/** What a call came to, in the words of the table. */
function inWords(tool: ChronometricTool, { structured, protocolError, isError }: Called): string {
  if (isError) {
    assert.equal(protocolError?.code, -32603, tool);
    assert.ok(!protocolError.message.includes('something else'), 'no word of what was given');
    return `error -32603: ${/cannot be read/.test(protocolError.message) ? 'the file cannot be read' : 'nothing was stored'}`;
  }
  switch (tool) {
    case 'get_time_context': {
      assert.match(structured.now, /T.*\+/);
      const { time_since_last_prompt, current_session_length, active_length, state_unavailable } = structured;
      const known = [time_since_last_prompt, current_session_length, active_length];
      if (state_unavailable === undefined) {
        for (const length of known) assert.match(length, /^PT/);
        return 'all of it';
      }
      assert.deepEqual(known, [null, null, null]);
      return 'the time; `null` for prompt and session, and why in `state_unavailable`';
    }
    case 'idle_status':
      assert.equal(structured.consent_granted, true);
      return 'its answer';
    case 'request_break_if_needed':
      assert.equal(structured.result.prior_intent, INTENT);
      return 'its answer, from what was written before';
    default:
      return 'its answer';
  }
}

for (const trouble of TROUBLES) {
  const skip = trouble === 'read-only folder' && noReadOnlyFolder();
  test(`${trouble}: the five tools answer as the table in docs/reference/chronometric.md says`, { skip }, async (t) => {
    const { person, changes = {}, mend } = BENCHES[trouble](t);
    writeFileSync(person.profile, 'privacy:\n  os_idle_consent: true\n');
    // No desktop: what the probes answer is that there is none.
    const env = { REVEILLE_PROFILE: person.profile, XDG_RUNTIME_DIR: person.home, ...changes.env };
    const server = await startServer(t, person, { ...changes, env });
    const before = trouble === 'locked file' ? [] : readdirSync(person.dataDir).sort();
    const page = readFileSync(
      join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', 'chronometric.md'),
      'utf8',
    );
    const table = tableOf(page);
    // Each wait for a lock is of seconds.
    for (const round of trouble === 'locked file' ? [1] : [1, 2]) {
      for (const tool of CHRONOMETRIC_TOOLS) {
        const said = inWords(tool, await server.call(tool, ARGUMENTS[tool]));
        assert.equal(said, table.get(tool)?.[TROUBLES.indexOf(trouble)], `${tool}, round ${round}`);
      }
    }
    if (trouble === 'read-only folder') assert.deepEqual(readdirSync(person.dataDir).sort(), before);
    if (mend) {
      mend();
      const ended = await server.call('mark_session_end');
      assert.equal(ended.structured?.intent, INTENT, JSON.stringify(ended));
    }
    assert.equal(await server.end(), 0);
  });
}

/** The cells of the table, by tool. */
function tableOf(page: string): Map<string, string[]> {
  const section = page.split('\n## ').find((text) => text.startsWith('Unusable data folder')) ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return new Map(
    rows.map((line) => {
      const [tool, ...cells] = line.slice(2, -2).split(' | ');
      return [tool!.replaceAll('`', ''), cells] as const;
    }),
  );
}

test('idle_status answers what the probe says while nothing can be read of prompts, and whatever breaks', async () => {
  const broken = (): never => {
    throw new ReveilleError('unavailable', 'the file is locked');
  };
  const clock = new ManualClock();
  const parts = (readSoon: () => Promise<{ idleMs: number; source: string }>) =>
    createToolCalls({
      // Whatever it is asked, it cannot answer.
      state: new Proxy({}, { get: () => broken }) as Parameters<typeof createToolCalls>[0]['state'],
      profile: { ready: async () => {}, read: broken },
      idle: { read: readSoon, readSoon, close: async () => {} },
      clock,
      machineZone: () => 'Europe/Berlin',
    });
  const { signal } = new AbortController();
  const answers = parts(async () => ({ idleMs: 1000, source: 'x11' }));
  assert.deepEqual((await answers('idle_status', {}, signal)).structured, {
    consent_granted: true,
    os_idle_duration: 'PT1S',
    hyperfocus_signal: 'active',
    source: 'x11',
  });
  const fails = parts(() => Promise.reject(new Error('canary')));
  const { structured } = await fails('idle_status', {}, signal);
  assert.deepEqual(Object.keys(structured), ['consent_granted', 'hyperfocus_signal', 'unavailable']);
  assert.ok(!JSON.stringify(structured).includes('canary'));
});
