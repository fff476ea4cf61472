import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { machineZone } from './zone.ts';

test('TZ is the name of a zone or its file, as for system libraries', (t) => {
  for (const name of ['Europe/Berlin', 'Asia/Kathmandu', 'UTC', 'CET', 'EST5EDT', 'Japan'])
    for (const value of [name, `:${name}`, `posix/${name}`, `/no/such/zoneinfo/${name}`, `:/no/such/zoneinfo/${name}`])
      assert.equal(machineZone(value), name, value);
  const folder = mkdtempSync(join(tmpdir(), 'reveille-zone-'));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'zoneinfo', 'Europe'), { recursive: true });
  writeFileSync(join(folder, 'zoneinfo', 'Europe', 'Berlin'), '');
  symlinkSync('zoneinfo/Europe/Berlin', join(folder, 'localtime'));
  assert.equal(machineZone(`:${folder}/localtime`), 'Europe/Berlin');
});

test('an unknown value of TZ gives no zone, and never UTC', () => {
  const rules = ['CET-1CEST,M3.5.0,M10.5.0/3', 'EST5EDT,M3.2.0,M11.1.0', '<+0330>-3:30', 'JST-9', 'GMT0BST'];
  for (const value of [...rules, 'Nowhere/Land', 'BST', 'IST', ':/nowhere/localtime', '/etc/passwd', ' ', '+01:00'])
    assert.equal(machineZone(value), undefined, value);
});
