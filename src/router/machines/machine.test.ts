import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import {
  deleteMachine,
  type Machine,
  putMachine,
  restoreMachine,
  suspendMachine,
  viewOf,
  wakeable,
} from './machine.ts';
import type { MachinePut } from './machine-schema.ts';

const NOW = Date.parse('2026-06-15T08:10:00Z');
const LATER = NOW + 60_000;
const body: MachinePut = {
  provider: 'process',
  spec: { command: ['neo'], env: { MODEL: 'small', API_KEY: 'secret' } },
};

const put = (current?: Machine, over: Partial<MachinePut> = {}, now = NOW) =>
  putMachine(current, 'alice', { ...body, ...over } as MachinePut, now, () => 'minted');

const refusal = (code: string, pattern: RegExp, status?: number) => (thrown: unknown) =>
  thrown instanceof ReveilleError &&
  thrown.code === code &&
  pattern.test(thrown.message) &&
  (status === undefined || thrown.status === status);

describe('putting a machine', () => {
  test('makes an active one with its own token', () => {
    const machine = put();
    assert.equal(machine.state, 'active');
    assert.equal(machine.token, 'minted');
    assert.equal(put(undefined, { token: 'the-token-that-was-given' }).token, 'the-token-that-was-given');
    assert.equal(put(undefined, { state: 'provisioning' }).state, 'provisioning');
  });

  test('an equal body changes nothing; another body keeps token and creation time', () => {
    const machine = put();
    assert.equal(put(machine, {}, LATER), machine);
    const changed = put(machine, { idle_seconds: 60 }, LATER);
    assert.deepEqual(changed, { ...machine, idleSeconds: 60, updatedAt: LATER });
    assert.deepEqual(put(changed, {}, LATER), { ...machine, updatedAt: LATER }, 'a PUT replaces the whole machine');
  });

  test('of another program or address gives it a new token', () => {
    const bodies = [
      body,
      { provider: 'process', spec: { command: ['neo', '--other'] } },
      { provider: 'process', spec: { command: ['neo'], cwd: '/elsewhere' } },
      { provider: 'http', spec: { url: 'http://127.0.0.1:1/' } },
      { provider: 'http', spec: { url: 'http://127.0.0.1:2/' } },
      { provider: 'docker', spec: { container: 'neo', port: 1 } },
      { provider: 'docker', spec: { container: 'neo2', port: 1 } },
      { provider: 'docker', spec: { container: 'neo', port: 1, socket: '/run/other.sock' } },
      { provider: 'fly', spec: { app: 'a', machine_id: 'm' } },
      { provider: 'fly', spec: { app: 'b', machine_id: 'm' } },
      { provider: 'command', spec: { preset: 'webhook', url: 'https://one.example/' } },
      { provider: 'command', spec: { preset: 'webhook', url: 'https://two.example/' } },
      { provider: 'command', spec: { preset: 'a2a', url: 'https://two.example/' } },
    ] as MachinePut[];
    for (const first of bodies)
      for (const second of bodies) {
        const before = put(undefined, { ...first, token: 'the-token-of-the-first' });
        const { token } = put(before, second);
        assert.equal(token, first === second ? 'the-token-of-the-first' : 'minted', JSON.stringify([first, second]));
        assert.equal(put(before, { ...second, token: 'the-token-that-was-given' }).token, 'the-token-that-was-given');
      }
    const given = { spec: { command: ['neo'], port: 1, env: { MODEL: 'large' }, limits: { niceness: 3 } } };
    const before = put(undefined, { token: 'the-token-of-the-first' });
    assert.equal(
      put(before, given as Partial<MachinePut>).token,
      'the-token-of-the-first',
      'the same program keeps its token',
    );
  });

  test('ends the provisioning, but does not lift a suspension', () => {
    assert.equal(put(put(undefined, { state: 'provisioning' })).state, 'active');
    const suspended = suspendMachine(put(), NOW);
    assert.equal(put(suspended, { idle_seconds: 5 }).state, 'suspended');
    assert.throws(() => put(suspended, { state: 'active' }), refusal('conflict', /is suspended; restore it before/));
  });

  test('creates a deleted one again, with a new token', () => {
    const machine = put(deleteMachine(put(undefined, { token: 'the-old-token' }), NOW), {}, LATER);
    assert.deepEqual([machine.state, machine.token, machine.createdAt], ['active', 'minted', LATER]);
  });

  test('keeps the budget, unless the body has another one, also when it is deleted in between', () => {
    const budget = { usd_per_day: 2, wakes_per_hour: 3 };
    const machine = put(undefined, { budget });
    const other = { provider: 'command', spec: { preset: 'claude', cwd: '/' } } as MachinePut;
    assert.deepEqual(put(machine, other).budget, budget);
    assert.deepEqual(put(suspendMachine(machine, NOW), other).budget, budget);
    assert.deepEqual(put(deleteMachine(machine, NOW), other).budget, budget);
    assert.deepEqual(put(machine, { ...other, budget: {} }).budget, {}, 'no limits at all');
    assert.deepEqual(put(machine, { budget: { wakes_per_day: 1 } }).budget, { wakes_per_day: 1 });
    assert.equal(put().budget, null);
  });

  test('rejects the placeholder that the router shows instead of a secret', () => {
    const spec = { command: ['neo'], env: { API_KEY: '[redacted]' } };
    assert.throws(
      () => put(undefined, { spec } as Partial<MachinePut>),
      refusal('invalid_request', /spec\.env\.API_KEY/),
    );
  });
});

describe('the state of a machine', () => {
  test('changes from active to suspended and back, and repeating a change has no effect', () => {
    const active = put();
    const suspended = suspendMachine(active, LATER);
    assert.deepEqual([suspended.state, suspended.updatedAt], ['suspended', LATER]);
    assert.equal(suspendMachine(suspended, LATER + 1), suspended);
    assert.equal(restoreMachine(suspended, LATER).state, 'active');
    assert.equal(restoreMachine(active, LATER), active);
  });

  test('is final after deletion, without secrets', () => {
    const deleted = deleteMachine(put(), LATER);
    assert.equal(deleted.token, '');
    assert.ok(!JSON.stringify(deleted).includes('secret'));
    assert.equal(deleteMachine(deleted, LATER + 1), deleted);
    assert.throws(() => restoreMachine(deleted, LATER), refusal('conflict', /is deleted/));
    assert.throws(() => suspendMachine(deleted, LATER), refusal('conflict', /is deleted/));
  });

  test('cannot be restored while it is provisioning', () => {
    const provisioning = put(undefined, { state: 'provisioning' });
    assert.throws(() => restoreMachine(provisioning, NOW), refusal('conflict', /is provisioning/));
  });

  test('decides the answer to a wake', () => {
    const active = put();
    assert.equal(wakeable(active, 'alice', 5), active);
    const wakeOf = (machine: Machine | undefined) => () => wakeable(machine, 'alice', 5);
    assert.throws(wakeOf(undefined), refusal('not_found', /no machine for alice/, 404));
    assert.throws(wakeOf(deleteMachine(active, NOW)), refusal('not_found', /is deleted/, 410));
    assert.throws(wakeOf(suspendMachine(active, NOW)), refusal('forbidden', /is suspended/, 451));
    const provisioning = put(undefined, { state: 'provisioning' });
    assert.throws(wakeOf(provisioning), (thrown: unknown) => (thrown as ReveilleError).retryAfterSeconds === 5);
  });
});

test('a view has neither the token nor the values of variables', () => {
  assert.deepEqual(viewOf(put(undefined, { idle_seconds: 60 }), 'asleep'), {
    user_id: 'alice',
    provider: 'process',
    spec: { command: ['neo'], env: { MODEL: '[redacted]', API_KEY: '[redacted]' } },
    state: 'active',
    idle_seconds: 60,
    created_at: '2026-06-15T08:10:00.000Z',
    updated_at: '2026-06-15T08:10:00.000Z',
    running: 'asleep',
  });
});

test('the nonce of a Fly lease is not shown, its placeholder is rejected, and a tombstone does not keep it', () => {
  const spec = { app: 'agents', machine_id: 'e286', lease_nonce: '5c35f65c9f95' };
  const machine = putMachine(undefined, 'alice', { provider: 'fly', spec }, NOW, () => 'minted');
  const view = viewOf(machine, 'asleep');
  assert.deepEqual(view.spec, { ...spec, lease_nonce: '[redacted]' });
  assert.throws(
    () =>
      putMachine(machine, 'alice', { provider: 'fly', spec: { ...spec, lease_nonce: '[redacted]' } }, NOW, () => ''),
    refusal('invalid_request', /spec\.lease_nonce must be the value itself/),
  );
  assert.ok(!JSON.stringify(deleteMachine(machine, LATER)).includes('5c35f65c9f95'));
});
