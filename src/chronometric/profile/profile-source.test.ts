import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type Clock, systemClock } from '../../kit/clock/clock.ts';
import { zoneAt } from './day-rules.ts';
import { profileSource } from './profile-file.ts';

const LINUX = process.platform === 'linux';
const consent = (given: boolean) => `privacy:\n  os_idle_consent: ${given}\n`;

function sourceBench(t: TestContext, clock: Clock = systemClock) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-profile-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'profile.yaml');
  const source = profileSource({ REVEILLE_PROFILE: path }, clock);
  return { folder, path, source, consents: () => source.read().profile.osIdleConsent };
}

/** A huge file that uses no space on the disk. */
function sparse(path: string): void {
  writeFileSync(path, '');
  truncateSync(path, 2 ** 40);
}

/** A clock that is a minute ahead, so that new files count as settled. */
const later: Clock = { ...systemClock, now: () => systemClock.now() + 60_000 };

describe('a profile on the disk', () => {
  test('is read again after every change', (t) => {
    const { path, source, consents } = sourceBench(t);
    writeFileSync(path, consent(true));
    assert.equal(consents(), true);
    writeFileSync(path, consent(false));
    assert.equal(consents(), false);
    // Within one tick of the file system's clock, and of the same size.
    for (let at = 0; at < 200; at++) {
      writeFileSync(path, `chronometric: {hyperfocus_break_minutes: ${100 + (at % 2)}}`);
      assert.equal(source.read().profile.rulesOf('monday').breakMinutes?.value, 100 + (at % 2));
    }
  });

  test('is read once without a change', (t) => {
    const { path, source } = sourceBench(t, later);
    writeFileSync(path, consent(true));
    const first = source.read();
    assert.equal(source.read(), first);
    utimesSync(path, 1000, 1000);
    assert.notEqual(source.read(), first);
  });

  test('is read again after a replacement with the same size and times', (t) => {
    const { folder, path, consents } = sourceBench(t, later);
    writeFileSync(path, consent(true));
    utimesSync(path, 1000, 1000);
    assert.equal(consents(), true);
    const draft = join(folder, 'draft');
    writeFileSync(draft, `${consent(false).trimEnd()}`);
    utimesSync(draft, 1000, 1000);
    renameSync(draft, path);
    assert.equal(consents(), false);
  });

  test('gives no consent while it is missing or half written, and counts again when it is restored', (t) => {
    const { path, source, consents } = sourceBench(t, later);
    writeFileSync(path, consent(true));
    assert.equal(consents(), true);
    unlinkSync(path);
    assert.match(source.read().unreadable!, /^REVEILLE_PROFILE names .*, which does not exist/);
    assert.equal(consents(), false);
    writeFileSync(path, `${consent(true)}chronometric: {zones: {`);
    assert.match(source.read().unreadable!, /profile\.yaml:\d+:\d+: /);
    assert.equal(zoneAt(source.read().profile, 'monday', 600), 'unknown');
    truncateSync(path, 0);
    assert.deepEqual([source.read().unreadable, consents()], [undefined, false]);
    writeFileSync(path, consent(true));
    assert.equal(consents(), true);
  });

  test('is located again on every call', (t) => {
    const { folder } = sourceBench(t);
    const source = profileSource({ HOME: folder }, later);
    assert.deepEqual([source.read().unreadable, source.read().profile.path], [undefined, undefined]);
    mkdirSync(join(folder, '.neurodock'));
    writeFileSync(join(folder, '.neurodock', 'profile.yaml'), consent(true));
    assert.equal(source.read().profile.osIdleConsent, true);
    mkdirSync(join(folder, '.config', 'reveille'), { recursive: true });
    writeFileSync(join(folder, '.config', 'reveille', 'profile.yaml'), consent(false));
    assert.equal(source.read().profile.osIdleConsent, false);
  });

  test('is unreadable with the reason when it is not a text file, without blocking', { timeout: 20_000 }, (t) => {
    const { folder, path, source } = sourceBench(t, later);
    const reason = () => source.read().unreadable?.replace(folder, '');
    const cases: [() => void, RegExp][] = [
      [() => mkdirSync(path), /it is a folder/],
      [() => symlinkSync('nowhere', path), /it is a link to a missing file/],
      [() => symlinkSync('profile.yaml', path), /it is a link to itself/],
      [() => writeFileSync(path, Uint8Array.of(0x61, 0xff)), /it must be UTF-8 text/],
      [() => writeFileSync(path, '#'.repeat(64 * 1024 + 1)), /it has more than the 64 KiB/],
      [() => sparse(path), /it has more than the 64 KiB/],
      ...(LINUX
        ? [
            [() => execFileSync('mkfifo', [path]), /it is not a regular file/] as [() => void, RegExp],
            [() => symlinkSync('/dev/zero', path), /it is not a regular file/] as [() => void, RegExp],
          ]
        : []),
    ];
    for (const [make, expected] of cases) {
      make();
      assert.match(reason()!, /^the profile \/profile\.yaml cannot be read: /);
      assert.match(reason()!, expected);
      rmSync(path, { recursive: true, force: true });
    }
    writeFileSync(path, `${'#'.repeat(64 * 1024 - 1)}\n`);
    assert.equal(reason(), undefined, 'exactly the maximum size');
  });

  test('is unreadable and gives no consent without read permission', (t) => {
    if (!LINUX) return;
    const { folder, path, source, consents } = sourceBench(t, later);
    writeFileSync(path, consent(true));
    assert.equal(consents(), true);
    chmodSync(path, 0o000);
    chmodSync(folder, 0o755);
    const isRoot = process.geteuid!() === 0;
    // Permissions do not apply to root.
    if (isRoot) process.seteuid!(65_534);
    try {
      assert.match(source.read().unreadable!, /cannot be read: this user may not read it$/);
      assert.equal(consents(), false);
    } finally {
      if (isRoot) process.seteuid!(0);
    }
    chmodSync(path, 0o600);
    assert.equal(consents(), true);
  });
});
