import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { describe, test } from 'node:test';
import { ToolCallFailure } from '../../../src/mcp-host/tool-call-failure.ts';
import { eventually } from '../../support/eventually.ts';
import { hostile, startPool, tame, textOf } from './bench.ts';

/** A pool with a server that misbehaves and one that does not, and what shows that the second still works. */
async function beside(t: Parameters<typeof startPool>[0], mode: string, options: Parameters<typeof startPool>[2] = {}) {
  const pool = await startPool(t, [hostile(mode), { ...hostile('tame'), alias: 'good' }], options);
  const work = (signal?: AbortSignal) => pool.call('hostile', 'work', {}, signal ? { signal } : {});
  const otherWorks = async () => assert.equal((await pool.call('good', 'work', {})).isError, false);
  const backAgain = (restarts: number) =>
    eventually(
      'it is there again',
      () => pool.servers()[0]!.restarts >= restarts && pool.servers()[0]!.state === 'ready',
    );
  return { pool, work, otherWorks, backAgain };
}

function fails(reason: string, mayHaveRun: boolean, message: RegExp) {
  return (thrown: unknown) => {
    assert.ok(thrown instanceof ToolCallFailure, String(thrown));
    assert.deepEqual([thrown.reason, thrown.mayHaveRun], [reason, mayHaveRun], thrown.message);
    assert.match(thrown.message, message);
    return true;
  };
}

describe('a call of a server', () => {
  for (const [mode, ending] of [
    ['dies-in-call', /the server exited with code 7/],
    ['killed-in-call', /the server exited with code 137/],
  ] as const) {
    test(`that ${mode} fails as one that may have run, and the server comes back`, async (t) => {
      const { pool, work, otherWorks, backAgain } = await beside(t, mode);
      await assert.rejects(work(), fails('connection', true, ending));
      await assert.rejects(work(), fails('connection', false, /it is restarted in the background/));
      assert.match(pool.warnings().join(), /^server "hostile" exited with code/);
      await otherWorks();
      await backAgain(1);
      assert.deepEqual(pool.warnings(), []);
    });
  }

  test('that answers twice takes the first answer, and the next call its own', async (t) => {
    const { pool, work, otherWorks } = await beside(t, 'answers-twice');
    for (let round = 0; round < 3; round++) assert.equal(textOf(await work()), 'first');
    await otherWorks();
    assert.equal(pool.servers()[0]!.state, 'ready');
    assert.match(readFileSync(pool.servers()[0]!.log, 'utf8'), /unknown message ID/);
  });

  test('that never answers fails after its time, and the server, which is alive, stays', async (t) => {
    const tools = [{ name: 'work', timeout_ms: 300 }];
    const pool = await startPool(t, [hostile('never-answers', { tools })]);
    await assert.rejects(pool.call('hostile', 'work', {}), fails('timeout', true, /no answer within 300 ms/));
    assert.deepEqual([pool.servers()[0]!.state, pool.servers()[0]!.restarts], ['ready', 0]);
  });

  test('that is cancelled is not taken for one that timed out', async (t) => {
    const { work, otherWorks } = await beside(t, 'never-answers');
    const stop = new AbortController();
    const call = work(stop.signal);
    stop.abort();
    await assert.rejects(call, fails('cancelled', true, /was cancelled/));
    await assert.rejects(work(AbortSignal.abort()), fails('cancelled', false, /before it was sent/));
    await otherWorks();
  });

  test('that does not even answer a ping is started again', async (t) => {
    const { work, otherWorks, backAgain } = await beside(t, 'hangs-in-call', {
      callTimeoutMs: 200,
      healthTimeoutMs: 300,
    });
    await assert.rejects(work(), fails('timeout', true, /no answer within 200 ms/));
    await otherWorks();
    await backAgain(1);
  });

  test('that answers with what is no result, or an error, is told in-band', async (t) => {
    const { work } = await beside(t, 'wrong-result');
    const wrong = await work();
    assert.deepEqual([wrong.isError, textOf(wrong).includes('not a tool result')], [true, true]);
    const refusing = await startPool(t, [hostile('refuses-call')]);
    const refused = await refusing.call('hostile', 'work', {});
    assert.deepEqual([refused.isError, textOf(refused)], [true, 'the server refused the call: a must be a number']);
  });
  test('that does not keep to the schema of its output has its result handed on: it has run', async (t) => {
    const { work } = await beside(t, 'breaks-its-word');
    for (let round = 0; round < 2; round++) {
      const result = await work();
      assert.deepEqual([result.isError, textOf(result).includes('"name":"work"')], [false, true]);
    }
  });
});

describe('a server that prints', () => {
  test('garbage between its messages works all the same, and the garbage is in its log', async (t) => {
    const { pool, work } = await beside(t, 'garbage-first');
    assert.equal((await work()).isError, false);
    assert.match(readFileSync(pool.servers()[0]!.log, 'utf8'), /stdout Welcome to the server!/);
  });

  for (const [mode, why] of [
    ['floods-garbage', /wrote more than \d+ bytes to stdout that are not MCP messages/],
    ['floods-notices', /sent too many unsolicited messages/],
  ] as const) {
    test(`so much that it ${mode} is ended and started again`, async (t) => {
      const { work, otherWorks, backAgain } = await beside(t, mode);
      await assert.rejects(work(), fails('connection', true, why));
      await otherWorks();
      await backAgain(1);
    });
  }

  test('a line without end does not fill the memory', async (t) => {
    const { pool, otherWorks } = await beside(t, 'endless-line');
    assert.match(pool.warnings().join(), /sent a message of more than \d+ bytes/);
    await otherWorks();
  });

  test('much to stderr fills neither the disk nor the pipe', async (t) => {
    const { pool, work } = await beside(t, 'floods-stderr');
    assert.equal(textOf(await work()), 'done');
    const { log } = pool.servers()[0]!;
    const bytes = [log, `${log}.1`].reduce((sum, path) => sum + (existsSync(path) ? statSync(path).size : 0), 0);
    assert.ok(bytes < 2.2 * 1024 * 1024, `${bytes}`);
  });

  test('a secret of its own to stderr has it taken out of log and warning', async (t) => {
    const variables = { HOSTILE_API_KEY: 'api-key-of-the-tests-123' };
    const env = ['HOSTILE_API_KEY=$env:HOSTILE_API_KEY'];
    const pool = await startPool(t, [hostile('dies-at-once', { env })], { variables });
    assert.match(pool.warnings().join(), /\[hidden\]/);
    assert.doesNotMatch(pool.warnings().join(), /of-the-tests/);
    assert.doesNotMatch(readFileSync(pool.servers()[0]!.log, 'utf8'), /of-the-tests/);
  });
});

describe('a server that dies while nobody calls it', () => {
  test('is started again, again and again', async (t) => {
    const pool = await startPool(t, [tame()]);
    for (const restarts of [1, 2]) {
      process.kill(-pool.servers()[0]!.pid!, 'SIGKILL');
      await eventually(
        'it is noticed',
        () => pool.servers()[0]!.state === 'down' || pool.servers()[0]!.restarts === restarts,
      );
      await eventually('it is there again', () => pool.servers()[0]!.state === 'ready');
      assert.equal(textOf(await pool.call('tame', 'echo', { text: 'hi' })), 'hi');
    }
  });
});
