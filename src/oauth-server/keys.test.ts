import assert from 'node:assert/strict';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary.ts';
import { OauthKeys, rotated, type SigningKey, signingKeyAt } from './keys.ts';

const DAY = 86_400_000;
const START = Date.parse('2026-06-15T08:00:00Z');

let made = 0;
const make = (created_at: number): SigningKey => ({
  created_at,
  jwk: { kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig', kid: `key-${++made}`, x: '', y: '', d: '' },
});

test('a new key is published before it signs, and an old one stays as long as its tokens', () => {
  let keys: readonly SigningKey[] = [];
  let signing: SigningKey | undefined;
  const changes: { day: number; published: number }[] = [];
  for (let hour = 0; hour <= 24 * 100; hour++) {
    const now = START + hour * 3_600_000;
    const before = keys;
    keys = rotated(keys, now, make);
    const current = signingKeyAt(keys, now);
    assert.ok(keys.includes(current));
    if (signing && signing !== current) {
      changes.push({ day: hour / 24, published: keys.length });
      assert.ok(now - current.created_at >= DAY, 'published for a day');
      assert.ok(keys.includes(signing), 'the former key is still published');
      assert.ok(before.includes(current), 'it was published before');
    }
    assert.ok(keys.length <= 2, `${keys.length} keys`);
    signing = current;
  }
  assert.deepEqual(
    changes.map(({ day }) => day),
    [31, 61, 91],
  );
});

test('the keys are made once, in a private file, and a restart reads them', (t) => {
  const path = join(temporaryFolder(t), 'oauth-keys.json');
  const first = new OauthKeys(path, START);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const again = new OauthKeys(path, START + DAY);
  assert.deepEqual(again.at(START + DAY), first.at(START + DAY));
  assert.equal(again.cookieSecret, first.cookieSecret);
  assert.notEqual(first.cookieSecret, first.storageSecret);
  const { keys } = first.published(START);
  assert.equal(keys.length, 1);
  assert.ok(!('d' in keys[0]!), 'without the private part');
  assert.equal(first.at(START + 30 * DAY).length, 2);
  assert.equal(new OauthKeys(path, START + 30 * DAY).at(START + 30 * DAY).length, 2, 'a rotation is kept');
});

test('a file that others can read, or that is damaged, stops the start and is not changed', (t) => {
  const path = join(temporaryFolder(t), 'oauth-keys.json');
  new OauthKeys(path, START);
  chmodSync(path, 0o644);
  assert.throws(() => new OauthKeys(path, START), /can be used by others/);
  chmodSync(path, 0o600);
  writeFileSync(path, '{"signing":[]}');
  assert.throws(() => new OauthKeys(path, START), /is damaged and was not changed/);
  assert.equal(readFileSync(path, 'utf8'), '{"signing":[]}');
});
