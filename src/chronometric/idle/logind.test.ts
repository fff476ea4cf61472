import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import type { IdleHost } from './idle.ts';
import { idleOfSession, logindProbe } from './linux.ts';

const NOW = Date.UTC(2026, 5, 15, 8, 10);
const MINUTE_MS = 60_000;

/** Output of `loginctl show-session` for a session whose desktop set the idle hint ten minutes ago. */
const AWAY = {
  Type: 'wayland',
  Class: 'user',
  Remote: 'no',
  Active: 'yes',
  IdleHint: 'yes',
  IdleSinceHint: `${(NOW - 10 * MINUTE_MS) * 1000}`,
};
const written = (properties: Record<string, string>) =>
  Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

function reasonOf(change: Record<string, string>): string {
  const reading = idleOfSession(written({ ...AWAY, ...change }), NOW);
  return 'unavailable' in reading ? reading.unavailable : String(reading.idleMs);
}

test('a session with an old idle hint has been idle at least since then', () => {
  assert.deepEqual(idleOfSession(written(AWAY), NOW), { idleMs: 10 * MINUTE_MS, source: 'logind' });
  assert.equal(reasonOf({ IdleSinceHint: `${(NOW - 5 * MINUTE_MS) * 1000}`, Type: 'x11' }), `${5 * MINUTE_MS}`);
});

test('an ambiguous hint is ignored', () => {
  assert.match(reasonOf({ IdleHint: 'no' }), /has no meaning/);
  assert.match(reasonOf({ IdleHint: 'no', IdleSinceHint: '0' }), /has no meaning/);
  assert.match(reasonOf({ IdleHint: 'maybe' }), /has no meaning/);
  assert.match(reasonOf({ IdleSinceHint: `${(NOW - 4 * MINUTE_MS) * 1000}` }), /recently/);
  assert.match(reasonOf({ Type: 'tty' }), /no desktop/);
  assert.match(reasonOf({ Type: 'unspecified' }), /no desktop/);
  assert.match(reasonOf({ Class: 'greeter' }), /not the session of a user/);
  assert.match(reasonOf({ Remote: 'yes' }), /another machine/);
  assert.match(reasonOf({ Active: 'no' }), /not the one on the screen/);
});

test('invalid output, a hint in the future and an incomplete answer are unavailable', () => {
  for (const since of ['0', '', '-1', '1e9', 'now', '9'.repeat(60)]) {
    assert.match(reasonOf({ IdleSinceHint: since }), /no time/);
  }
  assert.match(reasonOf({ IdleSinceHint: `${(NOW + MINUTE_MS) * 1000}` }), /in the future/);
  const whole = written(AWAY);
  for (const output of ['', 'Failed to connect\n', whole.slice(0, -3), whole.slice(0, 40), '=\n=\n']) {
    assert.deepEqual(idleOfSession(output, NOW), { unavailable: 'its answer is not complete' });
  }
});

test('the session is the one of the environment, or else the one that logind finds', async () => {
  const asked = async (environment: Record<string, string>) => {
    let session: string | undefined;
    const host: IdleHost = {
      platform: 'linux',
      environment,
      exists: (path) => path === '/usr/bin/loginctl',
      run: async (_path, args) => {
        session = args.at(-1);
        return written(AWAY);
      },
    };
    await logindProbe(host, new ManualClock(NOW)).read(new AbortController().signal);
    return session;
  };
  assert.equal(await asked({ XDG_SESSION_ID: 'c2' }), 'c2');
  assert.equal(await asked({}), 'auto');
  assert.equal(await asked({ XDG_SESSION_ID: '--host=elsewhere' }), 'auto');
});
