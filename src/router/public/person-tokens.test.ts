import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { atEnd, temporaryFolder } from '../../../test/support/temporary.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { Registry } from '../machines/registry.ts';
import { ShiftingClock } from '../testing/shifting-clock.ts';
import { PersonTokens } from './person-tokens.ts';

function opened(t: TestContext, dataDir = temporaryFolder(t)) {
  const clock = new ShiftingClock();
  const registry = new Registry(dataDir, clock);
  const tokens = new PersonTokens({ registry, clock, log: silentLogger });
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= registry.close();
    return closed;
  };
  atEnd(t, close);
  return { clock, tokens, dataDir, close };
}

test('a credential belongs to one user, survives a restart, and only its digest is on disk', async (t) => {
  const { tokens, dataDir, close } = opened(t);
  const { id, token, user_id, state } = await tokens.add('ada', { name: 'laptop' });
  assert.deepEqual([user_id, state], ['ada', 'active']);
  assert.match(token, new RegExp(`^rvp_${id}_[\\w-]{43}$`));
  await tokens.add('bob', {});
  assert.deepEqual(tokens.holderOf(token), { userId: 'ada', tokenId: id });
  await close();
  for (const name of readdirSync(dataDir)) {
    const bytes = readFileSync(join(dataDir, name));
    assert.ok(!bytes.includes(token) && !bytes.includes(token.slice(17)), name);
  }
  const again = opened(t, dataDir);
  assert.deepEqual(again.tokens.holderOf(token), { userId: 'ada', tokenId: id });
});

test('each of 10,000 forged tokens is verified and rejected', async (t) => {
  const { tokens } = opened(t);
  const { token } = await tokens.add('ada', {});
  const forge = [
    () => `rvp_${randomBytes(6).toString('hex')}_${randomBytes(32).toString('base64url')}`,
    () => `${token.slice(0, 17)}${randomBytes(32).toString('base64url')}`,
    (n: number) => token.slice(0, n % token.length),
    (n: number) => `${token.slice(0, n % token.length)}\u0000${token.slice((n % token.length) + 1)}`,
    () => `${token}a`,
  ];
  for (let n = 0; n < 10_000; n++) assert.equal(tokens.holderOf(forge[n % forge.length]!(n)), undefined);
  assert.ok(tokens.holderOf(token));
});

test('an expired or revoked credential is rejected, and the list shows its state', async (t) => {
  const { tokens, clock } = opened(t);
  const short = await tokens.add('ada', { expires_at: clock.now() + 60_000 });
  const long = await tokens.issue('ada', { name: 'phone' });
  assert.ok(tokens.isValid({ tokenId: short.id }));
  clock.advance(61_000);
  assert.equal(tokens.holderOf(short.token), undefined);
  assert.equal((await tokens.revoke('ada', long.id)).state, 'revoked');
  assert.equal(tokens.holderOf(long.token), undefined);
  assert.ok(!tokens.isValid({ tokenId: long.id }));
  const states = tokens.list({ limit: 10 }).map(({ name, state }) => [name, state]);
  assert.deepEqual(states.sort(), [
    ['credential', 'expired'],
    ['phone', 'revoked'],
  ]);
  // No credential is valid, so the user can be added again.
  assert.ok(tokens.holderOf((await tokens.add('ada', {})).token));
});

test('an impossible creation or revocation is rejected with a remedy', async (t) => {
  const { tokens, clock } = opened(t);
  const made = await tokens.add('ada', {});
  await assert.rejects(tokens.add('ada', {}), { code: 'conflict', message: /reveille user token ada/ });
  await assert.rejects(tokens.issue('bob', {}), { code: 'not_found', message: /reveille user add bob/ });
  await assert.rejects(tokens.add('bob', { expires_at: clock.now() - 1 }), {
    message: /^expires_at must be in the future/,
  });
  await assert.rejects(tokens.revoke('bob', made.id), { code: 'not_found' });
  await assert.rejects(tokens.revokeAll('bob'), { code: 'not_found' });
  for (let n = 1; n < 64; n++) await tokens.issue('ada', {});
  await assert.rejects(tokens.issue('ada', {}), { code: 'conflict', message: /64 valid credentials/ });
  assert.equal((await tokens.revokeAll('ada')).length, 64);
  assert.equal(tokens.holderOf(made.token), undefined);
});
