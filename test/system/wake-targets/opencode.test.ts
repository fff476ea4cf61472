import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { always } from '../../support/stand-ins/http-agent.ts';
import { startStandInOpencode } from '../../support/stand-ins/opencode.ts';
import { atEnd } from '../../support/temporary.ts';
import { startTargetBench } from './router.ts';

const FIRE = '018f3b1c-0000-7000-8000-000000000001@1750000000000';

async function start(t: TestContext, spec: object = {}) {
  const opencode = await startStandInOpencode();
  atEnd(t, () => opencode.close());
  const bench = await startTargetBench(t);
  const machine = {
    provider: 'command',
    spec: { preset: 'opencode', url: opencode.url, ...spec },
    token: 'password-of-opencode',
  };
  await bench.put('alice', machine);
  return { opencode, bench, machine };
}

/** Lets the pauses between looks pass, until something has come about. */
async function hurry<T>(
  bench: { clock: { advance(ms: number): void } },
  what: string,
  look: () => Promise<T | undefined | false>,
) {
  return await eventually(what, async () => {
    bench.clock.advance(10_000);
    return await look();
  });
}

describe('opencode', () => {
  test('a conversation is a session, and the id of a message comes from its fire', async (t) => {
    const { opencode, bench } = await start(t, { cwd: '/srv/project' });
    const first = await bench.ring('alice', { fire_id: FIRE, conversation_id: 'daily' });
    assert.equal(first.status, 'done', first.error);
    assert.match(first.reply ?? '', /^heard \d+ bytes$/);
    assert.match(opencode.turns[0]!, /^msg_[0-9a-f]{12}[0-9A-Za-z]{14}$/);
    const second = await bench.ring('alice', { conversation_id: 'daily' });
    assert.equal(second.session, first.session);
    assert.equal(opencode.sessions.size, 1);
    // An agent may name its own session, too.
    const third = await bench.ring('alice', { conversation_id: first.session });
    assert.equal(third.session, first.session);
    for (const { headers, query } of opencode.seen.slice(1)) {
      assert.equal(headers.authorization, `Basic ${Buffer.from('opencode:password-of-opencode').toString('base64')}`);
      assert.equal(query.get('directory'), '/srv/project');
    }
  });

  test('a session that works on something else is waited for', async (t) => {
    const { opencode, bench } = await start(t);
    const { session } = await bench.ring('alice');
    opencode.busy.add(session!);
    const { json } = await bench.wake('alice');
    const id = json.data.turn_id!;
    await eventually(
      'it waits',
      async () => (await bench.turns('alice')).turns.find((turn) => turn.id === id)?.waits_for,
    );
    assert.equal(opencode.turns.length, 1);
    opencode.busy.clear();
    bench.clock.advance(5_000);
    const turn = await bench.turn('alice', id, 'done');
    assert.equal(turn.session, session);
    assert.equal(opencode.turns.length, 2);
  });

  test('an answer that was lost is found in the session', async (t) => {
    const { opencode, bench } = await start(t);
    opencode.misbehave = ({ method, path }, response) => {
      // The turn goes on; only its caller is gone.
      if (method === 'POST' && path.endsWith('/message')) queueMicrotask(() => response.destroy());
      return false;
    };
    const { json } = await bench.wake('alice');
    const turn = await hurry(bench, 'the turn is over', async () => {
      const found = (await bench.turns('alice')).turns.find(({ id }) => id === json.data.turn_id);
      return found?.finished_at !== undefined && found;
    });
    assert.equal(turn.status, 'done', turn.error);
    assert.match(turn.reply ?? '', /^heard/);
    assert.equal(opencode.turns.length, 1);
  });

  test('a message that provably did not arrive is sent again, under the same id', async (t) => {
    const { opencode, bench } = await start(t);
    let refused = 0;
    opencode.misbehave = ({ method, path }, response) => {
      if (method !== 'POST' || !path.endsWith('/message') || refused++ > 0) return false;
      response.destroy();
      return true;
    };
    const { json } = await bench.wake('alice', { fire_id: FIRE });
    const turn = await hurry(bench, 'the turn is over', async () => {
      const found = (await bench.turns('alice')).turns.find(({ id }) => id === json.data.turn_id);
      return found?.finished_at !== undefined && found;
    });
    assert.equal(turn.status, 'done', turn.error);
    assert.equal(turn.attempts, 2);
    const sent = opencode.seen.filter(({ method, path }) => method === 'POST' && path.endsWith('/message'));
    assert.equal(sent.length, 2);
    assert.equal(JSON.parse(sent[0]!.text).messageID, JSON.parse(sent[1]!.text).messageID);
    assert.equal(opencode.turns.length, 1);
  });

  test('no answer of the assistant, or an error in it, is a failure', async (t) => {
    const { opencode, bench } = await start(t);
    opencode.reply = () => ({ info: { error: { name: 'ProviderAuthError', data: { message: 'no key' } } }, parts: [] });
    assert.match((await bench.ring('alice')).error ?? '', /^opencode reports ProviderAuthError: no key$/);
    opencode.reply = () => undefined;
    const { json } = await bench.wake('alice');
    const turn = await hurry(bench, 'the turn is over', async () => {
      const found = (await bench.turns('alice')).turns.find(({ id }) => id === json.data.turn_id);
      return found?.finished_at !== undefined && found;
    });
    assert.equal(turn.status, 'failed');
    assert.match(turn.error ?? '', /ended without an answer/);
  });

  test('a turn that does not end in its time is unknown, and not begun anew', async (t) => {
    const { opencode, bench } = await start(t, { timeout_seconds: 100 });
    opencode.hold = new Promise(() => {});
    const { json } = await bench.wake('alice', { fire_id: FIRE });
    await eventually('it is asked', () => opencode.turns.length === 1);
    const turn = await hurry(bench, 'the turn is over', async () => {
      const found = (await bench.turns('alice')).turns.find(({ id }) => id === json.data.turn_id);
      return found?.finished_at !== undefined && found;
    });
    assert.equal(turn.status, 'unknown');
    assert.match(turn.error ?? '', /no answer within the time for a turn \(the session is still running\)/);
    assert.equal((await bench.wake('alice', { fire_id: FIRE })).status, 200);
    assert.equal(opencode.turns.length, 1);
  });

  test('a server that is not there refuses the wake, and a session that is gone fails the turn', async (t) => {
    const { opencode, bench } = await start(t);
    await bench.ring('alice', { conversation_id: 'daily' });
    opencode.sessions.clear();
    assert.match(
      (await bench.ring('alice', { conversation_id: 'daily' })).error ?? '',
      /opencode does not have the conversation daily any more/,
    );
    opencode.misbehave = always(401, 'no');
    assert.match(
      (await bench.wake('alice')).json.error.message,
      /cannot be used \(it answered 401: no\); start it with: opencode serve/,
    );
    await opencode.close();
    const refused = await bench.wake('alice');
    assert.equal(refused.status, 503);
    assert.match(refused.json.error.message, /ECONNREFUSED.*opencode serve/);
  });

  test('a turn goes on while its router is away', async (t) => {
    const { opencode, bench } = await start(t);
    const { promise, resolve } = Promise.withResolvers<void>();
    opencode.hold = promise;
    const { json } = await bench.wake('alice');
    await eventually('it is asked', () => opencode.turns.length === 1);
    await bench.close();
    const next = await startTargetBench(t, bench);
    resolve();
    const turn = await hurry(next, 'the turn is over', async () => {
      const found = (await next.turns('alice')).turns.find(({ id }) => id === json.data.turn_id);
      return found?.finished_at !== undefined && found;
    });
    assert.equal(turn.status, 'done', turn.error);
    assert.equal(opencode.turns.length, 1);
  });
});
