import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alarmKeyOf, openRights, rightsOf, sealRights, taskTokenOf } from './person-rights.ts';

test('derived secrets are stable, and differ by token and by purpose', () => {
  const [one, other] = [rightsOf('rvp_0123_a'), rightsOf('rvp_0123_b')];
  assert.equal(rightsOf('rvp_0123_a'), one);
  const all = [one, other].flatMap((rights) => [rights, alarmKeyOf(rights).seedHex(), taskTokenOf(rights)]);
  assert.equal(new Set(all).size, all.length);
  // A new version must derive the same values, because keys are enrolled elsewhere.
  assert.equal(one, 'QuDMdqqlgZ3sD0kjuvdiQrjjcMUg_dls9mDav-wMru0');
  assert.equal(alarmKeyOf(one).publicKeyHex, '91ba801687fe4240c8a824ae9c8b81f18d643868ac465c59b4e8a2c3712cf8f5');
  assert.equal(taskTokenOf(one), 'rvs_stlPFodrinmWsZoWkIJI5CulmllukMJUX5LqqiWwymM');
});

test('sealed rights are opened only by the same secret, and only unchanged', () => {
  const rights = rightsOf('rvp_0123_a');
  const sealed = sealRights(rights, 'cookie');
  assert.notEqual(sealRights(rights, 'cookie'), sealed);
  assert.equal(openRights(sealed, 'cookie'), rights);
  assert.equal(openRights(sealed, 'another'), undefined);
  const bytes = Buffer.from(sealed, 'base64url');
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 1;
    assert.equal(openRights(changed.toString('base64url'), 'cookie'), undefined, `byte ${at}`);
  }
  for (const text of ['', 'x', '\u00e4', sealed.slice(0, 20)]) assert.equal(openRights(text, 'cookie'), undefined);
});
